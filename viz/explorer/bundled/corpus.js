function whenRead(make){return new Proxy({},{get:(made,name)=>made[name]??=make(name)})}var STEPS=256;function rgb(colour){let hex=/^#([0-9a-f]{6})/i.exec(colour);if(hex)return[0,2,4].map(start=>parseInt(hex[1].slice(start,start+2),16));let short=/^#([0-9a-f]{3})$/i.exec(colour);if(short)return[...short[1]].map(digit=>parseInt(digit+digit,16));let parts2=colour.match(/[\d.]+/g);return parts2&&parts2.length>=3?parts2.slice(0,3).map(Number):[255,255,255]}function pixel(...channels){return new Uint32Array(Uint8Array.of(...channels,255).buffer)[0]}function css([red,green,blue]){return`rgb(${red}, ${green}, ${blue})`}function luminance([red,green,blue]){let[r,g,b]=[red,green,blue].map(channel=>{let share=channel/255;return share<=.04045?share/12.92:((share+.055)/1.055)**2.4});return .2126*r+.7152*g+.0722*b}function paletteOf(host,theme,known){let style=getComputedStyle(host),read=(name,otherwise)=>{let value=style.getPropertyValue(name).trim();return value&&value!=="unset"?value:otherwise},background=read("--st-background-color","#ffffff"),signature=[background,read("--st-text-color",""),read("--st-code-font","")].join();if(signature===known?.signature)return known;let dark=luminance(rgb(background))<.4,palette={signature,dark,background,text:read("--st-text-color",dark?"#eeeeee":"#222222"),mono:read("--st-code-font","monospace"),masked:theme.masked,ink:{},hue:{}};palette.scale=whenRead(name=>scaleOf(theme.quantities[name][dark?"dark":"light"],background));for(let[name,quantity]of Object.entries(theme.quantities))palette.ink[name]=quantity.ink[dark?1:0],palette.hue[name]=quantity.hue;return palette}function scaleOf(stops,background){let filled=stops.map(([place,colour])=>[place,rgb(colour||background)]),colours=Array.from({length:STEPS},(_,n)=>colourAt(filled,n/(STEPS-1))),ramp=filled.map(([place,colour])=>`${css(colour)} ${place*100}%`);return{colours,pixels:Uint32Array.from(colours,colour=>pixel(...colour)),plotly:filled.map(([place,colour])=>[place,css(colour)]),gradient:`linear-gradient(to right, ${ramp.join(", ")})`}}function colourAt(stops,share){let next=Math.
max(stops.findIndex(([place])=>place>=share),1),[[from,first],[to,second]]=stops.slice(next-1),way=(share-from)/(to-from);return first.map((channel,n)=>Math.round(channel+(second[n]-channel)*way))}function step(value,low,high){let share=high>low?(value-low)/(high-low):.5;return Math.round(Math.min(Math.max(share,0),1)*(STEPS-1))}function inkedColour(scale,value,low,high){let colour=scale.colours[step(value,low,high)];return{background:css(colour),ink:luminance(colour)>.3?"#17151c":"#ffffff"}}var ARRAYS={floats:Float32Array,bytes:Uint8Array},origins=new WeakMap;function unpacked(block,known,before){let length=new DataView(block.buffer,block.byteOffset).getUint32(0,!0),words=new TextDecoder().decode(block.subarray(4,4+length));if(known&&origins.get(known)?.words===words)return known;let{buffer}=block.slice(4+length),earlier=before?origins.get(before).buffer:new ArrayBuffer(0),arrayOf=({kind,start,count})=>start>=earlier.byteLength?new ARRAYS[kind](buffer,start-earlier.byteLength,count):new ARRAYS[kind](earlier,start,count),message=withArrays(JSON.parse(words),arrayOf);return origins.set(message,{words,buffer}),message}function withArrays(value,arrayOf){if(value===null||typeof value!="object")return value;if(value.kind in ARRAYS)return arrayOf(value);for(let[name,part]of Object.entries(value)){let made=withArrays(part,arrayOf);made!==part&&(value[name]=made)}return value}function element(tag,attributes={},...children){let made=document.createElement(tag);for(let[name,value]of Object.entries(attributes))value==null||value===!1||(typeof value=="function"?made[name]=value:name==="style"?made.style.cssText=value:made.setAttribute(name,value===!0?"":value));return made.append(...children.filter(child=>child!==null)),made}function span(name,...children){return element("span",{class:name},...children)}var SVG="http://www.w3.org/2000/svg";function shape(tag,attributes,...children){let made=document.createElementNS(SVG,tag);for(let[name,value]of Object.entries(attributes))made.setAttribute(name,value);return made.append(...children),made}var browser_explorer_default=`[around_details]
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
`)){let[,section,key,text]=line.match(/^\[(\w+)\]$|^(\w+) = (".*")$/)??[];section?read.last=read[section]={}:key&&(read.last[key]=JSON.parse(text))}return read}function saying(file){let read=sections(file);return section=>(key,slots={})=>read[section][key].replace(/\{\$(\w+)\}/g,(_,name)=>slots[name])}var sentencesOf=saying(browser_explorer_default);var say=sentencesOf("numbers"),MINUS="−",DIGITS=7;function decimals(value,digits){if(value===1/0)return"∞";if(value===-1/0)return MINUS+"∞";if(!Number.isFinite(value))return"–";let smallest=.5*10**-digits;if(value!==0&&Math.abs(value)<smallest||Math.abs(value)>=1e6)return powerOfTen(value);let certain=Math.min(digits,DIGITS-Math.trunc(Math.abs(value)).toString().length);return value.toFixed(certain).replace("-",MINUS)}function powerOfTen(value,digits=2){let[mantissa,exponent]=value.toExponential(digits-1).split("e");return`${mantissa.replace(/\.0$/,"")}e${Number(exponent)}`.replaceAll("-",MINUS)}function precise(value){return decimals(value,4)}var say2=sentencesOf("score_stages"),SCORE_STAGES=[{name:"capped",field:"cap",absent:say2("run_not_cap_scores"),change:({cap})=>score=>cap*Math.tanh(score/cap),slots:()=>({}),details:({layer},before,after)=>[say2("cap_takes",{cap:layer.cap,before:precise(before),after:precise(after)})+`${precise(Math.abs(before-after))} closer to 0.`,say2("tanh_almost_straight")]},{name:"biased",field:"bias",absent:say2("run_adds_bias"),change:(layer,head)=>{let bias=biasOf(layer,head);return(score,query,key)=>score+bias(query,key)},slots:(layer,{head,query,key})=>({bias:biasOf(layer,head)(query,key)}),details:({layer,cell,tokenName})=>{let away=cell.query-cell.key,tokens=Math.abs(away)===1?"1 token":`${Math.abs(away)} tokens`,where=away===0?say2("query_own_place"):`${tokens} ${away>0?"before":"after"} the query`,added=precise(biasOf(layer,cell.head)(cell.query,cell.key));return[say2("key_stands_head",{where,token_name:tokenName("query"),token_name_2:tokenName("key"),added}),...layer.biasBy==="distance"?[say2("depends_distance_only")]:[]]}}];function biasOf({bias,biasBy,biasSizes,first,queries,keys},head){if(bias===null)return()=>0;let[heads,rows]=biasSizes,start=(heads>1?head-first:0)*(biasBy==="distance"?queries+keys-1:rows*keys);return biasBy==="distance"?(query,key)=>bias[start+key-query+queries-1]:(query,key)=>bias[start+(rows>1?query*keys:0)+key]}var LARGE=2**22;var WIDEST=12;var HIGHEST=44;function arcPath(from,to,highest){let[x1,y1]=[from.left+from.width/2,from.top],[x2,y2]=[to.left+to.width/2,to.top],away=Math.hypot(x2-x1,y2-y1),rise=-Math.min(10+away*.22,highest);return from===to?`M${x1-5},${y1} C${x1-16},${y1+rise*2} ${x1+16},${y1+rise*2} ${x1+5},${y1}`:`M${x1},${y1} C${x1},${y1+rise*1.33} ${x2},${y2+rise*1.33} ${x2},${y2}`}var Arcs=class{constructor(point,highest=HIGHEST){this.highest=highest,this.svg=shape("svg",{class:"arcs","aria-hidden":"true"}),this.svg.onpointerover=({target})=>point(this.arcs[this.paths.indexOf(target)]??null),this.svg.onpointerout=()=>point(null),this.paths=[],this.arcs=[]}measure(chips){let boxes=chips.map(chip=>({left:chip.offsetLeft,top:chip.offsetTop,width:chip.offsetWidth,height:chip.offsetHeight})),{scrollWidth,scrollHeight}=this.svg.parentElement;this.stand(boxes,scrollWidth,scrollHeight)}stand(boxes,width,height){this.boxes=boxes,this.svg.setAttribute("width",width),this.svg.setAttribute("height",height)}draw(arcs,palette){for(this.arcs=arcs;this.paths.length<arcs.length;){let path=shape("path",{fill:"none","stroke-linecap":"round"});this.paths.push(path),this.svg.append(path)}this.paths.forEach((path,n)=>{let arc=arcs[n];path.style.display=arc?"":"none",arc&&this.place(path,arc,palette)})}place(path,{from,to,weight,token},palette){path.setAttribute("d",arcPath(this.boxes[from],this.boxes[to],this.highest)),path.setAttribute("stroke",token===0?palette.masked:palette.ink.weight),path.setAttribute("stroke-width",weight*WIDEST),path.setAttribute("stroke-opacity",.25+.75*weight),Object.assign(path.dataset,{token,weight})}light(pair){this.svg.classList.toggle("lighting",pair!==null),this.paths.forEach((path,n)=>{let arc=this.arcs[n];path.classList.toggle("lit",!!(arc&&pair&&arc.from===pair.from&&arc.to===pair.to))})}};var browser_corpus_default=`[examples]
chance_beside = "By chance, beside them"
open_explorer = "Open in the explorer: {$said}"
open_explorer_2 = "Open in the explorer ↗"
row_weight_goes = ", {$left} of the row's weight goes to tokens that are not shown"
`;var sentencesOf2=saying(browser_corpus_default);var say3=sentencesOf2("examples"),FAINT=.01,NARROW=560,NARROWEST=260,BETWEEN=60,NEAR=3,ExampleList=class{constructor(root){this.root=root,this.resize=new ResizeObserver(()=>{cancelAnimationFrame(this.frame),this.frame=requestAnimationFrame(()=>this.measure())}),this.resize.observe(root)}receive(){let{message}=this;this.narrow=this.root.clientWidth<NARROW;let drawn=some=>some.map(one=>this.example(this.narrow?nearOf(one):one)),listed=some=>element("ol",{class:"examples"},...some.map(({item})=>item)),[best,chance]=[drawn(message.examples),drawn(message.chance)];this.drawn=[...best,...chance],this.root.dataset.title=message.title,this.root.replaceChildren(element("h3",{"data-testid":"examples-title"},message.title),listed(best)),chance.length>0&&this.root.append(element("h3",{},say3("chance_beside")),listed(chance)),this.measure()}example(one){let{palette}=this,weights=new Map(one.shown.map((at,n)=>[at,one.row?one.row[n]:at===one.key?one.weight:0])),chips=one.shown.map((at,n)=>{let face=span("face",one.tokens[n]),weight=weights.get(at);if(weight>=FAINT){let{background,ink}=inkedColour(palette.scale.weight,weight,0,1);Object.assign(face.style,{background,color:ink})}at===one.query&&face.classList.add("query"),at===one.key&&face.classList.add("key");let isGap=n>0&&at!==one.shown[n-1]+1;return{chip:span("chip",face),gap:isGap?span("gap","…"):null}}),arcs=new Arcs(()=>{}),line=element("div",{class:"tokens"},arcs.svg);for(let{chip,gap}of chips)line.append(...gap?[gap,chip]:[chip]);let from=one.shown.indexOf(one.query),drawn=one.shown.map((at,to)=>({from,to,weight:weights.get(at),token:at})).filter(({weight})=>weight>=FAINT),said=`${one.head}: ${one.said}, weight ${precise(one.weight)}${one.scored?`, ${one.scored}`:""}`,link=one.href?element("a",{href:one.href,target:"_blank",rel:"noopener","aria-label":say3("open_explorer",{said})},say3("open_explorer_2")):null,left=one.left>.005?span("left",say3("row_weight_goes",{left:precise(one.left)})):null,words=element("p",{class:"\
said"},said,...left?[left]:[],...link?[" ",link]:[]);return{item:element("li",{"data-testid":"example"},line,words),arcs,chips:chips.map(({chip})=>chip),drawn}}measure(){let{clientWidth}=this.root;if(clientWidth<60)return;if(this.narrow!==clientWidth<NARROW){this.receive();return}let widest=Math.max(NARROWEST,...(this.drawn??[]).map(({chips})=>lengthOf(chips)));this.root.style.setProperty("--columns",Math.max(Math.floor(clientWidth/(widest+BETWEEN)),1));for(let{arcs,chips,drawn}of this.drawn??[])arcs.svg.setAttribute("width",0),arcs.measure(chips),arcs.draw(drawn,this.palette)}close(){cancelAnimationFrame(this.frame),this.resize.disconnect()}};function lengthOf(chips){return chips.reduce((sum,chip)=>sum+chip.offsetWidth+1,0)}function nearOf(one){let isNear=at=>Math.min(Math.abs(at-one.query),Math.abs(at-one.key))<=NEAR,kept=list=>list.filter((_,n)=>isNear(one.shown[n])),hidden=one.row?one.row.filter((_,n)=>!isNear(one.shown[n])).reduce((sum,weight)=>sum+weight,0):0,row=one.row&&kept(one.row);return{...one,shown:kept(one.shown),tokens:kept(one.tokens),row,left:one.left+hidden}}var parts=new WeakMap;function mount({data,parentElement}){let root=parentElement.querySelector(".corpus"),part=parts.get(parentElement);part?.root!==root&&(part=new ExampleList(root),parts.set(parentElement,part)),part.message=unpacked(data,part.message),part.palette=paletteOf(parentElement.host??parentElement,part.message.theme,part.palette);for(let name of["query","key"])root.style.setProperty(`--ring-${name}`,part.palette.hue[name]);return part.receive(),root.dataset.ready="true",()=>{part.close(),parts.delete(parentElement)}}export{mount as default};
