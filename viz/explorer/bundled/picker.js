function whenRead(make){return new Proxy({},{get:(made,name)=>made[name]??=make(name)})}var STEPS=256;function rgb(colour){let hex=/^#([0-9a-f]{6})/i.exec(colour);if(hex)return[0,2,4].map(start=>parseInt(hex[1].slice(start,start+2),16));let short=/^#([0-9a-f]{3})$/i.exec(colour);if(short)return[...short[1]].map(digit=>parseInt(digit+digit,16));let parts=colour.match(/[\d.]+/g);return parts&&parts.length>=3?parts.slice(0,3).map(Number):[255,255,255]}function pixel(...channels){return new Uint32Array(Uint8Array.of(...channels,255).buffer)[0]}function css([red,green,blue]){return`rgb(${red}, ${green}, ${blue})`}function luminance([red,green,blue]){let[r,g,b]=[red,green,blue].map(channel=>{let share=channel/255;return share<=.04045?share/12.92:((share+.055)/1.055)**2.4});return .2126*r+.7152*g+.0722*b}function paletteOf(host,theme,known){let style=getComputedStyle(host),read=(name,otherwise)=>{let value=style.getPropertyValue(name).trim();return value&&value!=="unset"?value:otherwise},background=read("--st-background-color","#ffffff"),signature=[background,read("--st-text-color",""),read("--st-code-font","")].join();if(signature===known?.signature)return known;let dark=luminance(rgb(background))<.4,palette={signature,dark,background,text:read("--st-text-color",dark?"#eeeeee":"#222222"),mono:read("--st-code-font","monospace"),masked:theme.masked,ink:{},hue:{}};palette.scale=whenRead(name=>scaleOf(theme.quantities[name][dark?"dark":"light"],background));for(let[name,quantity]of Object.entries(theme.quantities))palette.ink[name]=quantity.ink[dark?1:0],palette.hue[name]=quantity.hue;return palette}function scaleOf(stops,background){let filled=stops.map(([place,colour])=>[place,rgb(colour||background)]),colours=Array.from({length:STEPS},(_,n)=>colourAt(filled,n/(STEPS-1))),ramp=filled.map(([place,colour])=>`${css(colour)} ${place*100}%`);return{colours,pixels:Uint32Array.from(colours,colour=>pixel(...colour)),plotly:filled.map(([place,colour])=>[place,css(colour)]),gradient:`linear-gradient(to right, ${ramp.join(", ")})`}}function colourAt(stops,share){let next=Math.
max(stops.findIndex(([place])=>place>=share),1),[[from,first],[to,second]]=stops.slice(next-1),way=(share-from)/(to-from);return first.map((channel,n)=>Math.round(channel+(second[n]-channel)*way))}function colourPixels(pixels,values,scale,{low,high}){let last=STEPS-1,[slope,start]=high>low?[last/(high-low),.5]:[0,last/2+.5];for(let n=0;n<pixels.length;n++){let value=values[n];if(Number.isNaN(value))continue;let at=(value-low)*slope+start;pixels[n]=scale.pixels[at>last?last:at>0?at|0:0]}}function element(tag,attributes={},...children){let made=document.createElement(tag);for(let[name,value]of Object.entries(attributes))value==null||value===!1||(typeof value=="function"?made[name]=value:name==="style"?made.style.cssText=value:made.setAttribute(name,value===!0?"":value));return made.append(...children.filter(child=>child!==null)),made}function button(testid,onclick,attributes,...children){return element("button",{type:"button","data-testid":testid,onclick,...attributes},...children)}function radio(testid,onclick,attributes,...children){return button(testid,onclick,{role:"radio",...attributes},...children)}var Drawn=class{facts=new Map;differs(part,...facts){let before=this.facts.get(part);return before&&facts.every((fact,n)=>fact===before[n])?!1:(this.facts.set(part,facts),!0)}};function afterFrame(task){let later=null,frame=requestAnimationFrame(()=>later=setTimeout(task));return()=>{cancelAnimationFrame(frame),clearTimeout(later)}}function check(radios,chosen){let changed=radios.filter((radio2,n)=>radio2.ariaChecked!==String(n===chosen));for(let radio2 of changed)radio2.ariaChecked=String(radio2===radios[chosen]);afterFrame(()=>{for(let radio2 of changed)radio2.tabIndex=radio2.ariaChecked==="true"?0:-1})}var KEY_STEPS={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1};function moveAmongRadios(event){let group=event.target.closest("[role=radiogroup]");if(!group)return;let radios=[...group.querySelectorAll("[role=radio]")],at=radios.indexOf(event.target),next={Home:0,End:radios.length-1}[event.key]??(at+KEY_STEPS[event.key]+radios.length)%radios.length;radios[next]&&(event.preventDefault(),radios[next].click(),radios[next].focus())}function choiceOf(label,{options,chosen,choose,name}){let values=Object.keys(options),radios=values.map(value=>radio(`${name}-${value}`,()=>choose(value),{},options[value]));return check(radios,values.indexOf(chosen)),element("span",{class:"switch",role:"radiogroup","aria-label":label},...radios)}var CHOOSE="choose-head",SHOWN="head-shown";function isShownAtOnce(detail,channel=window){return!channel.dispatchEvent(new CustomEvent(CHOOSE,{detail,cancelable:!0}))}var ARRAYS={floats:Float32Array,bytes:Uint8Array},origins=new WeakMap;function unpacked(block,known,before){let length=new DataView(block.buffer,block.byteOffset).getUint32(0,!0),words=new TextDecoder().decode(block.subarray(4,4+length));if(known&&origins.get(known)?.words===words)return known;let{buffer}=block.slice(4+length),earlier=before?origins.get(before).buffer:new ArrayBuffer(0),arrayOf=({kind,start,count})=>start>=earlier.byteLength?new ARRAYS[kind](buffer,start-earlier.byteLength,count):new ARRAYS[kind](earlier,start,count),message=withArrays(JSON.parse(words),arrayOf);return origins.set(message,{words,buffer}),message}function withArrays(value,arrayOf){if(value===null||typeof value!="object")return value;if(value.kind in ARRAYS)return arrayOf(value);for(let[name,part]of Object.entries(value)){let made=withArrays(part,arrayOf);made!==part&&(value[name]=made)}return value}var browser_explorer_default=`[around_details]
length_vector = "Length of the vector of {$scene}: {$after}."
rotation_changes_direction = "A rotation changes the direction of a vector, not its length: "
length_vector_before = "Length of the vector of {$scene}: {$before} before, {$after} after."
differ_rounding_only = "{$turned}the two differ by rounding only."
before_norm_over = "Before the norm, {$scene}: {$size}, over {$width} numbers."
length_vector_before_after = "Length of its vector: {$before} before, {$after} after."
length_head_before = "Length of the {$rows} of {$token} in this head: {$before} before, {$after} after."
head_switched_off = " This head is switched off, so they are zero."
columns_numbers_head = "Columns {$first} to {$block} are the {$block_2} numbers of head {$head} for "
heads_write = "what {$length} heads write here"
stream_receives_another = "What the stream receives is another vector here: more follows before it is added."

[check]
summed_over_dimensions = "summed over the dimensions, "
whole_run_being = "; the whole run is being checked."
check_weights_v = "Check: weights · V, {$what}recomputed here from the recorded Q, K and V of {$head_name},"
equals_model_own = " equals the model's own output to "
differs_model_own = " differs from the model's own output by up to "
over_whole_run_largest = "; over the whole run the largest difference is "
pass_ran = " The pass ran on {$device}."

[code]
style_code = "Style of the code"
code_stage = "Code of this stage"
save_whole_trace = "{$file} (Save: the whole trace)"
page_code_weights = "{$file} (the page Code: weights)"
needs_pytorch = "It needs PyTorch and {$map}."
code_stage_2 = "There is no code for this stage here."

[header]
tokens_row_shown = "Tokens: the row that is shown"
sink_weight_goes = "The sink: weight that goes to no token"
probability_model_gave = "The probability that the model gave each token, after those before it"
probability_after_tokens = ": its probability after the tokens before it was {$was}{$now}"

[headline]
may_look_nothing = " may look at nothing."
spreads_attention_largest = " spreads its attention; the largest part, "
weight_head_changes = "{$name}no weight of this head changes."
attention = " of its attention to "
now_hidden = ", now hidden; it was {$was}."
before_mask_hid = "Before, the mask hid "
loss_stays = "The loss stays at {$first}."
loss = "The loss {$old} from {$first} to "

[more]
save_table_code = "Save, table, code, check"

[numbers]
numbers_lie_beyond = "{$some} of {$all} numbers lie beyond"

[panel]
q_compared_every = "q, which is compared with every key: the scores."
k_compared_every = "k, which is compared with every query: the scores."
v_token_passes_tokens = "v, which this token passes on to the tokens that attend to it."
x_token_vector_layer = "x is the token's vector as this layer reads it. The bias, and the turn of rotary positions, count"
model_vector_used = " where the model has them: this is the vector as it was used."
sum_k_products_grows = "A sum of d_k products grows with d_k. Dividing by √d_k keeps its size the same, so that the softmax"
may_attend_score = "{$query} may attend to {$key}. The score stays as it is."
lies_outside_window = "lies outside of the window of {$window} of"
entropy_row_nats = "entropy of the row (nats)"
largest_weight_row = "largest weight of the row"
mean_entropy_rows = "mean entropy, all rows"
change = "What the change does to {$scene}"

[picture]
plotly_could_not = "Plotly could not be loaded. This picture is drawn without it."
plotly_could_not_draw = "Plotly could not draw the picture"
colour_shows_weight = "; colour shows the weight it gets all the same"
colours_span = "What the colours span"
difference_before_dropout = "no difference before dropout, which acts between these weights and the output"
difference_both_runs = "no difference: both runs are equal here"
back_whole_picture = "Back to the whole picture"
value_largest_size = "the value of largest size"
every_position_cell = "Every position has its cell. "
click_place_draw = "Click a place, or draw a box around it, to see it larger."
picture_could_not = "The picture could not be saved."
sink_head = "sink of this head"

[row]
every_key_query = "Every key of this query is masked, so all its weights are 0."

[runs]
hold_key_b = "Hold it, or the key B"

[score_stages]
run_not_cap_scores = "This run does not cap its scores."
cap_takes = "The cap is {$cap}. It takes {$before} to {$after}, "
tanh_almost_straight = "tanh is almost a straight line near 0 and never passes ±1, so no score passes the cap."
run_adds_bias = "This run adds no bias."
query_own_place = "at the query's own place"
key_stands_head = "The key stands {$where}. For {$token_name} and {$token_name_2} this head adds {$added}."
depends_distance_only = "It depends on the distance only: every cell of a diagonal gets the same."

[terms]
weights_row_set = "Weights of this row were set by hand. The others share what is left to 1, in their own proportions."
dropout_weights_after = "Dropout is on: these are the weights after it, some zero, the others enlarged."
every_key_row_masked = "Every key of this row is masked. There is nothing to share out: all weights are 0."
sum_row = "sum of the row"
sum_keys = "sum of the keys"
sink_adds_e_largest = "The sink adds e^({$sink} − the largest) ≈ {$of_sink}: {$sum} in all. "
order_terms = "Order of the terms"
`;function sections(file){let read={};for(let line of file.split(`
`)){let[,section,key,text]=line.match(/^\[(\w+)\]$|^(\w+) = (".*")$/)??[];section?read.last=read[section]={}:key&&(read.last[key]=JSON.parse(text))}return read}function saying(file){let read=sections(file);return section=>(key,slots={})=>read[section][key].replace(/\{\$(\w+)\}/g,(_,name)=>slots[name])}var sentencesOf=saying(browser_explorer_default);var say=sentencesOf("numbers");function paintPixels(canvas,{values,rows,columns},scale,range){canvas.width=columns,canvas.height=rows;let context=canvas.getContext("2d"),image=context.createImageData(columns,rows);colourPixels(new Uint32Array(image.data.buffer),values,scale,range),context.putImageData(image,0,0)}var drawn=new Drawn;var browser_head_picker_default=`[picker]
rows_layers_arrow = "Rows are layers. Arrow keys move the choice."
output_set_zero = ", its output is set to zero"
`;var sentencesOf2=saying(browser_head_picker_default);var say2=sentencesOf2("picker"),HIDDEN=255,MOST=64,ONE=250,LONGEST=14,STEPS2={ArrowLeft:[0,-1],ArrowRight:[0,1],ArrowUp:[-1,0],ArrowDown:[1,0]},pickers=new WeakMap;function mount({data,parentElement,setTriggerValue}){let picker=pickers.get(parentElement);picker?.root!==parentElement.querySelector(".picker")&&(picker?.close(),picker=new Picker(parentElement),pickers.set(parentElement,picker)),picker.trigger=setTriggerValue;let mounted=picker.mounted={};return picker.receive(unpacked(data,picker.received)),()=>picker.mounted===mounted&&picker.close()}function lightLayer(place){for(let drawn2 of document.querySelectorAll(".ticks[data-stack]")){let ticks=[...drawn2.querySelectorAll("i")],layer=ticks.findIndex((_,n)=>place.startsWith(`${drawn2.dataset.stack}.${n}.`));ticks.forEach((tick,n)=>tick.className=n===layer?"lit":"tick");let said=layer<0?"":`, layer ${layer} is chosen`;drawn2.setAttribute("aria-label",`${ticks.length} layers${said}`)}}function headsOf({families}){return JSON.stringify(families.map(({title,layers,heads,zeroed})=>[title,layers,heads,zeroed]))}var Picker=class{drawn=new Drawn;constructor(parent,channel=window){Object.assign(this,{parent,channel}),this.root=parent.querySelector(".picker"),this.opener=this.root.querySelector(".opener"),this.panel=this.root.querySelector(".panel"),this.opener.onclick=()=>this.panel.togglePopover(),this.panel.ontoggle=({newState})=>this.toggled(newState==="open"),this.panel.onkeydown=event=>this.move(event),this.shown=({detail})=>this.choose(detail),channel.addEventListener(SHOWN,this.shown)}close(){this.dropPaint?.(),this.channel.removeEventListener(SHOWN,this.shown),pickers.delete(this.parent)}receive(data){let palette=paletteOf(this.parent.host??this.parent,data.theme,this.palette);if(!(data!==this.received)&&palette===this.palette)return;let[heads,chosen]=[headsOf(data),JSON.stringify(data.chosen)],isBuilt=this.heads===heads;data.docked&&this.dock(),isBuilt||this.build(data.families),(!isBuilt||chosen!==this.told)&&
this.choose(data.chosen),Object.assign(this,{received:data,palette,heads,told:chosen}),!(!this.drawn.differs("maps",data.run,palette,data.families.some(({maps})=>maps))&&isBuilt)&&(this.dropPaint?.(),this.dropPaint=afterFrame(()=>this.paint()))}dock(){this.panel.removeAttribute("popover"),this.panel.setAttribute("role","group"),this.root.classList.add("docked")}build(families){this.buttons=[],this.chosen=null;let rowOf=({name,label,full},{heads,zeroed})=>{let isZeroed=head=>zeroed.some(([place,other])=>place===name&&other===head),buttons=Array.from({length:heads},(_,head)=>this.buttonOf(name,full,head,isZeroed(head)));this.buttons.push(buttons);let opensLayer={class:"layer",role:"rowheader","data-testid":`layer-${name}`,onclick:()=>this.pick({place:name,head:this.chosen?.head??0})},layer=element("span",opensLayer,label),all=element("div",{class:"heads",role:"none"},...buttons);return element("div",{class:"row",role:"row",style:`--heads:${heads}`},layer,all)};this.isDocked=this.root.classList.contains("docked"),this.parts=families.map(family=>{let{title,layers,heads}=family,form=this.isDocked&&layers.length*heads>MOST?"long":null,rows=layers.map(layer=>rowOf(layer,family)),grid=element("div",{class:form,role:"grid","aria-label":title,style:`--layers:${layers.length}`},...rows);return element("section",{},families.length>1&&!this.isDocked?element("h3",{},title):null,grid)}),this.stacks=families.length>1&&this.isDocked?this.stacksOf(families):null;let hint=element("p",{class:"hint"},say2("rows_layers_arrow"));this.panel.replaceChildren(...[this.stacks,...this.parts,hint].filter(Boolean))}stacksOf(families){let options=Object.fromEntries(families.map(({title},n)=>[n,title.replace(" self-attention","")]));return choiceOf("Stack",{options,chosen:null,choose:n=>this.pick({place:families[n].layers[0].name,head:0}),name:"stack"})}buttonOf(place,full,head,isZeroed){let words=isZeroed?say2("output_set_zero"):"",made=element("button",{type:"button",class:isZeroed?"head zeroed":
"head",role:"gridcell","aria-label":`${full}H${head}${words}`,"aria-selected":"false",tabindex:-1,"data-testid":`${place}-${head}`,onclick:()=>this.pick({place,head})},element("canvas",{"aria-hidden":"true",width:1,height:1}),`H${head}`);return Object.assign(made,{place,head,full})}paint(){for(let{layers,heads,maps,rows,columns}of this.received.families)maps&&layers.forEach(({name},layer)=>{for(let head=0;head<heads;head++){let start=(layer*heads+head)*rows*columns,bytes=maps.subarray(start,start+rows*columns),values=Float32Array.from(bytes,byte=>byte===HIDDEN?NaN:byte/ONE),canvas=this.found({place:name,head}).firstChild;paintPixels(canvas,{values,rows,columns},this.palette.scale.weight,{low:0,high:1})}})}found({place,head}){return this.buttons.flat().find(one=>one.place===place&&one.head===head)}choose({place,head}){let chosen=this.found({place,head});if(!chosen||chosen===this.chosen)return;let mark=(button2,is)=>{button2.setAttribute("aria-selected",String(is)),button2.tabIndex=is?0:-1;for(let one of button2.parentElement.querySelectorAll(".head"))one.dataset.testid=is?`head-${one.head}`:`${one.place}-${one.head}`};if(this.chosen&&mark(this.chosen,!1),mark(chosen,!0),this.chosen=chosen,this.buttons.forEach(row=>row[0].closest(".row").classList.toggle("here",row.includes(chosen))),this.stacks){for(let part of this.parts)part.hidden=!part.contains(chosen);check([...this.stacks.children],this.parts.findIndex(part=>!part.hidden))}let name=`${chosen.full}H${head}`;this.root.querySelector(".name").textContent=name.length>LONGEST?`H${head}`:name,this.opener.setAttribute("aria-label",`Head ${chosen.full}H${head}. Choose another`),lightLayer(place)}pick(detail){this.choose(detail),isShownAtOnce(detail,this.channel)||this.trigger("head",detail)}move(event){if(event.target.closest("[role=radiogroup]"))return moveAmongRadios(event);event.key==="Escape"&&this.opener.focus();let[down,right]=STEPS2[event.key]??[];if(down===void 0)return;event.preventDefault();let row=this.buttons.
findIndex(buttons=>buttons.includes(this.chosen)),next=this.buttons[row+down],at=Math.min(this.buttons[row].indexOf(this.chosen)+right,(next?.length??0)-1);next?.[at]&&(this.pick({place:next[at].place,head:next[at].head}),next[at].focus())}toggled(open){if(this.opener.setAttribute("aria-expanded",String(open)),!open)return;this.trigger("opened",!0);let{bottom,right}=this.opener.getBoundingClientRect(),left=Math.max(8,Math.min(right,innerWidth-8)-this.panel.offsetWidth);Object.assign(this.panel.style,{top:`${bottom+6}px`,left:`${left}px`}),this.chosen?.focus()}};export{Picker,mount as default};
