var Model=class extends EventTarget{#listeners=new Map;constructor(state,widget_manager2=null){super(),Object.assign(this,{state,widget_manager:widget_manager2})}get(name){return this.state[name]}set(name,value){this.state[name]!==value&&(this.state[name]=value,this.dispatchEvent(new Event(`change:${name}`)),this.dispatchEvent(new Event("change")))}on(event,listener){let heard=()=>listener();this.#listeners.set(listener,heard),this.addEventListener(event,heard)}off(event,listener){this.removeEventListener(event,this.#listeners.get(listener))}save_changes(){}send(){}};var browser_notebook_default=`[main]
fetching_python_needs = "Fetching {$label} from Python, which needs a running kernel …"

[offline]
widget_drawn_only = "This widget is drawn only where a network is."
`;var browser_explorer_default=`[around_details]
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
`)){let[,section,key,text]=line.match(/^\[(\w+)\]$|^(\w+) = (".*")$/)??[];section?read.last=read[section]={}:key&&(read.last[key]=JSON.parse(text))}return read}function saying(file){let read=sections(file);return section=>(key,slots={})=>read[section][key].replace(/\{\$(\w+)\}/g,(_,name)=>slots[name])}var sentencesOf=saying(browser_explorer_default);var sentencesOf2=saying(browser_notebook_default);var say=sentencesOf2("offline"),STATES="script[type='application/vnd.jupyter.widget-state+json']",VIEWS="script[type='application/vnd.jupyter.widget-view+json']",widget_manager={get_model:async id=>modelOf(id)};function whole({state,buffers=[]}){for(let{path,data}of buffers){let bytes=Uint8Array.from(atob(data),letter=>letter.charCodeAt(0)),parent=path.slice(0,-1).reduce((part,name)=>part[name],state);parent[path.at(-1)]=new DataView(bytes.buffer)}return state}var states=JSON.parse(document.querySelector(STATES)?.textContent??"{}").state??{},models=new Map;function modelOf(id){return models.has(id)||models.set(id,new Model(whole(states[id]),widget_manager)),models.get(id)}async function programOf(model){if(!model.get("_esm"))return null;let style=document.head.appendChild(document.createElement("style"));style.textContent=model.get("_css")??"";let address=URL.createObjectURL(new Blob([model.get("_esm")],{type:"text/javascript"})),{default:exported}=await import(address),program=typeof exported=="function"?await exported():exported;return await program.initialize?.({model}),program}var programs=new Map;for(let view of document.querySelectorAll(VIEWS)){let id=JSON.parse(view.textContent).model_id,el=view.parentElement.appendChild(document.createElement("div"));programs.has(id)||programs.set(id,programOf(modelOf(id))),programs.get(id).then(program=>{program?program.render({model:modelOf(id),el,signal:new AbortController().signal}):el.textContent=say("widget_drawn_only")})}
