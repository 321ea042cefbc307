// Runs the widgets of a saved notebook in a page that has neither a kernel nor a network.
//
// nbconvert writes each widget's place and all widgets' states into its page, and asks a content delivery
// network for what draws them. An anywidget brings its own program in its state: it needs only a model to read
// from and an element to draw in. A widget of another kind is named, not drawn.

import { Model } from "./model.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("offline");

const STATES = "script[type='application/vnd.jupyter.widget-state+json']";
const VIEWS = "script[type='application/vnd.jupyter.widget-view+json']";

const widget_manager = { get_model: async (id) => modelOf(id) };

/** The state with its bytes, which are saved beside it, put where they belong. */
function whole({ state, buffers = [] }) {
  for (const { path, data } of buffers) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const parent = path.slice(0, -1).reduce((part, name) => part[name], state);
    parent[path.at(-1)] = new DataView(bytes.buffer);
  }
  return state;
}

/** A widget's model by its id: each is made once, whoever asks for it. */
const states = JSON.parse(document.querySelector(STATES)?.textContent ?? "{}").state ?? {};
const models = new Map();
function modelOf(id) {
  if (!models.has(id)) models.set(id, new Model(whole(states[id]), widget_manager));
  return models.get(id);
}

/** How to draw a model's widget; null for one that brings no program. */
async function programOf(model) {
  if (!model.get("_esm")) return null;
  const style = document.head.appendChild(document.createElement("style"));
  style.textContent = model.get("_css") ?? "";
  const address = URL.createObjectURL(new Blob([model.get("_esm")], { type: "text/javascript" }));
  const { default: exported } = await import(address);
  const program = typeof exported === "function" ? await exported() : exported;
  await program.initialize?.({ model });
  return program;
}

const programs = new Map(); // by the id of the model, which may be shown in several places
for (const view of document.querySelectorAll(VIEWS)) {
  const id = JSON.parse(view.textContent).model_id;
  const el = view.parentElement.appendChild(document.createElement("div"));
  if (!programs.has(id)) programs.set(id, programOf(modelOf(id)));
  programs.get(id).then((program) => {
    if (program) program.render({ model: modelOf(id), el, signal: new AbortController().signal });
    else el.textContent = say("widget_drawn_only");
  });
}
