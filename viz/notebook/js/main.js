// Mounts the explorer in a notebook: maps the model and the element that anywidget hands over to what the explorer
// asks for.
//
// The traits of the model are the one place of the choice. What the reader chooses is set there, and so Python
// hears of it. What Python sets there, or another view of the same widget, moves the picture.

import { element } from "../../explorer/js/elements.js";
import { Explorer } from "../../explorer/js/explorer.js";
import { unpacked } from "../../explorer/js/message.js";
import { REPORTED } from "../../explorer/js/python.js";
import { Picker } from "../../shell/head_picker/picker.js";
import { katexOf } from "./katex.js";
import { Theme } from "./theme.js";
import { sentencesOf } from "./sentences.js";

export { default } from "../../explorer/js/main.js"; // so the app and notebooks have one script

const say = sentencesOf("main");

const TALLEST = 620; // pixels of a picture: the window of a notebook says nothing about its room
const ASSETS = { plotly: null }; // nothing is fetched
let mounts = 0;

/** `parts`: script, style sheets and skeletons, as viz/notebook/library.py names them; or, for KaTeX's, how to load it
 *  (`loadKatex`). `bar`: where the choice of a head stands, if not above the picture. `tallest`: pixels of the picture;
 *  null: as many as the window has. `isExplained`: whether it opens with how the number is computed. `beside`: of a layer and
 *  a head what else the hero says. Returns how to end it. */
export function mount({ model, el, parts, bar = null, tallest = TALLEST, isExplained = false, beside = () => ({}) }) {
  const view = new View(model, el, parts, { bar, tallest, isExplained, beside });
  return () => view.close();
}

/** What a trait holds: a packed message, or one that is unpacked already. */
function messageIn(sent, known) {
  if (!ArrayBuffer.isView(sent)) return sent;
  return unpacked(new Uint8Array(sent.buffer, sent.byteOffset, sent.byteLength), known);
}

function differ(one, other) {
  return Object.keys(one).some((name) => one[name] !== other?.[name]);
}

/** An element with a shadow root: the notebook's style sheets end there. */
function shaded(html, css) {
  const host = element("div");
  const root = host.attachShadow({ mode: "open" });
  root.innerHTML = html; // a skeleton of ours
  root.append(element("style", {}, css));
  return { host, root };
}

class View {
  blocks = { _layers: {}, _layer: {} }; // as Python has sent them, with their messages: of all layers, of the chosen
  revision = 0; // grows whenever others move the reader
  listened = [];

  constructor(model, el, parts, { bar: outside, tallest, isExplained, beside }) {
    Object.assign(this, { model, beside, mount: `notebook-${Date.now()}-${(mounts += 1)}` });
    const { loadKatex = () => katexOf(parts.katex, parts.katexStyle) } = parts;
    this.assets = { ...ASSETS, loadKatex };
    const bar = shaded(parts.bar, parts.barStyle);
    const picture = shaded(parts.explorer, parts.explorerStyle);
    // JupyterLab leaves the keys alone below an element that says so.
    const attributes = { "data-lm-suppress-shortcuts": "true", onkeydown: (event) => event.stopPropagation() };
    this.host = element("div", attributes, bar.host, picture.host);
    el.append(this.host);
    outside?.replaceChildren(bar.host);
    this.bar = bar.host;
    bar.root.querySelector(".about").textContent = model.get("_about");
    const channel = new EventTarget();
    this.explorer = new Explorer(picture.root, { channel, tallest, isExplained });
    this.picker = new Picker(bar.root, channel);
    this.connect();
    this.theme = new Theme(this.host, () => this.dress());
  }

  connect() {
    this.explorer.python.connect({
      tell: (choice) => this.tell(choice),
      open: ({ name }) => this.open(name),
      check: () => this.model.send({ kind: "check" }),
      detail: (detail) => this.model.set("detail", detail),
    });
    this.picker.trigger = (name) => name === "opened" && this.askForMaps();
    for (const name of [...REPORTED, "place", "detail", ...Object.keys(this.blocks)]) this.listen(name, () => this.showSoon());
    this.listen("_heads", () => this.showHeads());
  }

  listen(name, take) {
    this.model.on(`change:${name}`, take);
    this.listened.push([`change:${name}`, take]);
  }

  /** Takes over the notebook's colours, and shows what the traits say. */
  dress() {
    this.heads ??= messageIn(this.model.get("_heads"));
    this.theme.dress(this.heads.theme, [this.bar]);
    this.showHeads();
    this.show();
  }

  showHeads() {
    this.heads = messageIn(this.model.get("_heads"), this.heads);
    const chosen = { place: this.model.get("place"), head: this.model.get("head") };
    this.picker.receive({ ...this.heads, chosen });
  }

  askForMaps() {
    if (this.heads.families.some(({ maps }) => !maps)) this.model.send({ kind: "maps" });
  }

  /** Several traits may change at once. */
  showSoon() {
    this.waiting ??= Promise.resolve().then(() => {
      this.waiting = null;
      if (this.host.isConnected) this.show();
    });
  }

  /** Shows what the traits say. A layer that has not arrived follows when it has. */
  show() {
    const { model, explorer } = this;
    this.read();
    const place = model.get("place");
    if (place !== this.place) {
      this.place = place;
      explorer.python.forget();
    }
    const message = this.messageOf(place);
    if (!message) return;
    const selection = Object.fromEntries(REPORTED.map((name) => [name, model.get(name)]));
    if (differ(selection, this.selection)) this.revision += 1;
    this.selection = selection;
    const run = model.get("_run");
    const hero = { ...message.heroes[model.get("detail") ?? "full"], ...this.beside(place, selection.head) };
    explorer.receive({ ...message, hero, run, mount: this.mount, assets: this.assets, selection, revision: this.revision });
  }

  read() {
    for (const [name, { block }] of Object.entries(this.blocks)) {
      const sent = this.model.get(name);
      if (sent !== block) this.blocks[name] = { block: sent, messages: messageIn(sent).layers };
    }
  }

  /** What Python has sent last of a layer. */
  messageOf(place) {
    const { _layers: all, _layer: chosen } = this.blocks;
    return [...chosen.messages, ...all.messages].find(({ layer }) => layer.name === place);
  }

  /** Tells what the reader has chosen, unless others have moved the reader since. With a layer that is being
   *  opened the choice is told too: the one before need not have it. */
  tell({ revision }) {
    if (revision === this.revision && !this.explorer.python.opening) this.set({ selection: this.choice });
  }

  get choice() {
    return Object.fromEntries(REPORTED.map((name) => [name, this.explorer.state[name]]));
  }

  /** Opens another layer. */
  open(place) {
    const { explorer } = this;
    this.place = place;
    this.set({ selection: this.choice, place });
    this.show();
    const { label } = explorer.layers.find(({ name }) => name === place);
    const awaited = say("fetching_python_needs", { label });
    if (explorer.layer.name !== place) explorer.drawing.picture.waitFor(awaited);
    else if (explorer.isHere) explorer.drawing.picture.waitFor("");
  }

  set({ selection, ...more }) {
    this.selection = selection;
    for (const [name, value] of Object.entries({ ...selection, ...more })) this.model.set(name, value);
    this.model.save_changes();
  }

  close() {
    for (const [event, take] of this.listened) this.model.off(event, take);
    this.theme.close();
    this.explorer.close();
    this.picker.close();
    this.bar.remove();
    this.host.remove();
  }
}
