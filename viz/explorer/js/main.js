// The attention explorer: one attention layer, explored in the browser.
//
// Python sends the layer once, of a large one the values when they are shown. Everything else is derived here
// (derive.js), so a change of head, stage or cell is one redraw and no journey. Another layer of the run is
// fetched from its address. State lives in one object a mount; `choose` changes it, `render` draws what it
// says, and a report of the choice follows a quarter of a second later, the last one only.
//
// Layers of the picture, from below: Plotly or our canvas (cells and tick labels), hatching, marks (SVG),
// tooltip. All of them use the boxes of geometry.js. Only the lowest is slow, so only a change of head, stage,
// window, theme or size draws it again; choosing a cell moves marks. What has just arrived from Python is
// shown on the canvas at once, and by Plotly right after that.
//
// This file is joined with its neighbours into one script (bundle.py says why).

import { paletteOf } from "./colours.js";
import { Controls } from "./controls.js";
import { deriveHead, hasHead } from "./derive.js";
import { element, keepingFocus } from "./elements.js";
import { drawEquation, filledTemplate } from "./equations.js";
import { contains, PLOTLY_TOKENS, windowAround } from "./geometry.js";
import { layerOf } from "./held.js";
import { fetchCheck, fetchLayer, loadKatex, loadPlotly } from "./libraries.js";
import { unpacked } from "./message.js";
import { magnitude } from "./numbers.js";
import { cellNumbers, drawDetails, drawEffect, drawTopKeys } from "./panel.js";
import { Picture } from "./picture.js";
import { Sentence } from "./sentence.js";
import { drawTable } from "./table.js";
import { axisLength, cellOf, figureOf } from "./view.js";

const REPORT_DELAY = 250; // milliseconds
const DERIVED_CELLS = 2 ** 24; // cells of derived matrices kept; beyond, older heads are dropped
const FORESEEN_CELLS = 2 ** 18; // up to this size, all heads of a layer are derived in advance
const TALLEST = 460; // pixels of a picture's box
const NARROWEST = 120;
const AGREES = 1e-4; // of the largest output: recomputed and recorded numbers count as equal
const REPORTED = ["head", "stage", "query", "key"];
const SHOW_VALUES = new Set(["value", "output"]); // stages for which Python sends a large layer's values
const explorers = new WeakMap();
// What the reader chose last, by mount. Streamlit may mount a place anew, with this script run anew.
const choices = (globalThis[Symbol.for("attention-explorer-choices")] ??= new Map());

export default function mount({ data, parentElement, setStateValue, setTriggerValue }) {
  let explorer = explorers.get(parentElement);
  if (explorer?.root !== parentElement.querySelector(".explorer")) {
    explorer = new Explorer(parentElement);
    explorers.set(parentElement, explorer);
  }
  explorer.report = (selection) => setStateValue("selection", selection);
  explorer.ask = (name, fetched) => setTriggerValue("layer", { name, fetched });
  const mounted = (explorer.mounted = {});
  explorer.receive(unpacked(data, explorer.received));
  // Where data follow each other quickly, Streamlit ends the earlier mount after the later one.
  return () => explorer.mounted === mounted && explorer.close();
}

class Explorer {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".explorer");
    this.resized = true;
    this.state = { side: "reads", order: "largest", span: "layer", dimension: 0, window: null };
    this.derived = new Map();
    const part = (name) => this.root.querySelector(`.${name}`);
    this.parts = new Proxy({}, { get: (found, name) => (found[name] ??= part(name)) });
    this.picture = new Picture(this.root, this.parts, this.actions());
    this.controls = new Controls(
      this.parts,
      (change) => this.choose(change),
      (name) => this.open(name),
    );
    this.sentence = new Sentence(this.parts.sentence);
    this.resize = new ResizeObserver(() => {
      this.resized = true;
      this.schedule();
    });
    this.resize.observe(this.parts.stage);
    this.parts.numbers.ontoggle = () => this.drawTable();
  }

  /** New data or a new theme. The selection of Python counts only with a new revision. */
  receive(data) {
    const known = this.received;
    const palette = paletteOf(this.parent.host ?? this.parent, data.theme, this.palette);
    if (data === known && palette === this.palette) return;
    if (this.isOvertaken(data)) return;
    const layer = layerOf(data.layer);
    const baseline = data.baseline && layerOf(data.baseline);
    if (layer === null || (data.baseline && baseline === null)) {
      this.fetch(data, data.layer.name);
      return;
    }
    const said = JSON.stringify({ ...data, layer: layer.digest, baseline: baseline?.digest });
    const nothingNew = said === this.said && palette === this.palette;
    this.received = data;
    if (nothingNew && layer === this.layer && baseline === this.baseline) return;
    this.said = said;
    this.palette = palette;
    this.adoptLayers(layer, baseline);
    this.layers = data.layers;
    this.stages = data.stages;
    this.labels = { query: data.queries, key: data.keys };
    if (!known || data.revision !== known.revision) this.adopt(data);
    this.clamp();
    this.loadLibraries(data.assets);
    this.controls.build(this);
    this.render();
  }

  /** The layers of a message, unless they are shown already. */
  adoptLayers(layer, baseline) {
    if (layer === this.layer && baseline === this.baseline) return;
    const same = layer.digest === this.layer?.digest && baseline?.digest === this.baseline?.digest;
    if (!same) this.state.window = null;
    Object.assign(this, { layer, baseline, quick: true });
  }

  /** Python's selection, or the reader's own if it was chosen under the same revision: the place was
   *  then mounted anew before Python heard of it, so it is told again. */
  adopt({ mount: name, revision, selection }) {
    const { revision: under, ...chosen } = choices.get(name) ?? {};
    Object.assign(this.state, under === revision ? chosen : selection, { window: null });
    if (REPORTED.some((field) => this.state[field] !== selection[field])) this.reportLater();
  }

  clamp() {
    const { state, layer } = this;
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    state.head = within(state.head, layer.heads);
    state.query = within(state.query, layer.queries);
    state.key = within(state.key, layer.keys);
    if (!this.stages.some(({ name }) => name === state.stage)) state.stage = "weights";
    state.dimension = within(state.dimension, axisLength("dimension", this.stage, layer));
  }

  loadLibraries(assets) {
    if (this.loading) return;
    this.loading = true;
    loadKatex(assets).then((loaded) => {
      this.katex = loaded?.katex ?? null;
      const place = this.root.getRootNode();
      if (loaded && !place.adoptedStyleSheets.includes(loaded.sheet)) {
        place.adoptedStyleSheets = [...place.adoptedStyleSheets, loaded.sheet];
      }
      this.schedule();
    });
    loadPlotly(assets).then((plotly) => {
      this.picture.plotly = plotly;
      this.schedule();
    });
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.later);
    clearTimeout(this.telling);
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.paint);
    this.resize.disconnect();
    this.picture.plotly?.purge(this.parts.plotly);
    explorers.delete(this.parent);
  }

  /** Changes the choice, draws it, and reports it later. */
  choose(change) {
    const before = { ...this.state };
    Object.assign(this.state, change);
    this.clamp();
    if (this.state.stage !== before.stage) this.state.window = null;
    const { row, column } = cellOf(this.stage, this.state);
    if (this.state.window && !contains(this.state.window, row, column)) {
      this.state.window = this.windowHere();
    }
    this.render();
    if (REPORTED.some((name) => this.state[name] !== before[name])) this.reportLater();
  }

  reportLater() {
    const { head, stage, query, key } = this.state;
    const selection = { head, stage, query, key, revision: this.received.revision };
    choices.set(this.received.mount, selection);
    clearTimeout(this.timer);
    const wait = this.isHere ? REPORT_DELAY : 0;
    this.timer = setTimeout(() => this.report(selection), wait);
  }

  /** Opens another layer: its button is marked at once, the picture follows when it is here. */
  open(name) {
    const { received, layer } = this;
    this.controls.markLayer(this.layers, name);
    if (name !== layer.name) this.root.dataset.ready = "false";
    this.fetch(received, name);
  }

  /** Draws a layer of the run in a message from its address, and tells Python afterwards; where there is
   *  nothing at the address, Python sends it. */
  async fetch(data, name) {
    this.opening = { name, address: data.address };
    clearTimeout(this.telling);
    const { head, stage } = { ...data.selection, ...this.state };
    const found = await fetchLayer(data.address, { layer: name, head, stage });
    if (this.opening?.name !== name || !this.root.isConnected) return; // another one was chosen meanwhile
    if (!found) {
      this.opening = null;
      this.ask(name, []);
      return;
    }
    const { layers } = data;
    this.receive({ ...data, ...found, layers });
    const parts = [found.layer, found.baseline].filter(Boolean).map(({ part }) => part);
    this.opening = { name, address: data.address };
    this.telling = setTimeout(() => this.ask(name, parts), REPORT_DELAY);
  }

  /** Whether the reader has opened another layer of this run since Python sent this. */
  isOvertaken({ address, layer }) {
    const { opening } = this;
    const overtaken = opening?.address === address && opening.name !== layer.name;
    if (!overtaken) this.opening = null;
    return overtaken;
  }

  /** What the picture's pointer and keys do. */
  actions() {
    const zoom = () => this.isLong && this.choose({ window: this.windowHere() });
    return {
      choose: ({ row, column }) => {
        this.choose({ [this.stage.rows]: row, [this.stage.columns]: column });
        if (!this.state.window) zoom();
      },
      move: (rows, columns) => {
        const axis = rows ? this.stage.rows : this.stage.columns;
        this.choose({ [axis]: this.state[axis] + rows + columns });
        this.parts.unseen.textContent = this.picture.words(cellOf(this.stage, this.state));
      },
      enter: zoom,
      leave: () => this.choose({ window: null }),
      setSpan: (span) => this.choose({ span }),
      painted: () => this.settle(),
    };
  }

  /** The exact window around the chosen cell. */
  windowHere() {
    const { stage, layer } = this;
    const { row, column } = cellOf(stage, this.state);
    const length = (axis) => axisLength(axis, stage, layer);
    return windowAround(length(stage.rows), length(stage.columns), row, column);
  }

  get isLong() {
    return Math.max(this.layer.queries, this.layer.keys) > PLOTLY_TOKENS;
  }

  /** Whether Python has sent what the chosen head and stage are drawn from. */
  get isHere() {
    const complete = this.layer.value !== null && this.baseline?.value !== null;
    return hasHead(this.layer, this.state.head) && (complete || !SHOW_VALUES.has(this.state.stage));
  }

  get stage() {
    return this.stages.find(({ name }) => name === this.state.stage);
  }

  get headName() {
    return `${this.layer.label}H${this.state.head}`;
  }

  /** What is derived of a head, kept also while another layer or another run is shown. */
  derivedOf(layer, head) {
    const key = `${layer.part} ${head}`;
    const one = this.derived.get(key) ?? deriveHead(layer, head);
    const most = Math.max(2, Math.floor(DERIVED_CELLS / (4 * layer.queries * layer.keys)));
    this.derived.delete(key);
    while (this.derived.size >= most) this.derived.delete(this.derived.keys().next().value);
    this.derived.set(key, one);
    return one;
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.received && this.render());
  }

  /** Draws the picture now and everything beside it right after the browser has shown it. */
  render() {
    const { state, root } = this;
    this.measure();
    for (const name of REPORTED) root.dataset[name] = state[name];
    root.dataset.queries = this.layer.queries;
    root.dataset.ready = "false";
    this.beside = false;
    this.controls.mark(this);
    if (!this.isHere) {
      const sent = hasHead(this.layer, state.head);
      this.picture.say(`Fetching ${sent ? "the values of " : ""}head ${state.head} …`);
      return;
    }
    if (this.available < NARROWEST) return; // in a tab that is not open
    keepingFocus(root, () => this.drawPicture());
    this.afterPaint(() => keepingFocus(root, () => this.drawRest()));
  }

  /** How wide the picture may be. Asking for it is slow while something on the page is changed. */
  measure() {
    const compared = this.baseline !== null; // gives the picture another width
    if (!this.resized && compared === this.root.classList.contains("compared")) return;
    this.root.classList.toggle("compared", compared);
    this.available = this.parts.stage.clientWidth;
    this.resized = false;
  }

  /** Runs a task once the next frame is on the screen; only the last one counts. */
  afterPaint(task) {
    cancelAnimationFrame(this.paint);
    clearTimeout(this.later);
    this.paint = requestAnimationFrame(() => (this.later = setTimeout(task)));
  }

  /** Plotly's picture, where the canvas was quicker; the stages, the panel, the sentence, the check and
   *  the table. */
  drawRest() {
    if (this.available < NARROWEST) return; // its tab was closed before this could be drawn
    this.quick = false;
    this.drawPicture();
    const [derived, before] = this.runs();
    this.controls.drawStages(this, derived, before);
    this.controls.drawHeadMaps(this, (...of) => this.derivedOf(...of));
    const scene = this.scene(derived, before);
    this.drawPanel(scene);
    this.sentence.draw(scene);
    this.drawCheck();
    this.drawTable();
    this.beside = true;
    this.settle();
    this.foresee();
    this.checkRun();
  }

  /** Has a long run checked, once its picture is here. */
  async checkRun() {
    const { address, check } = this.received;
    if (check !== null || this.checking?.address === address) return;
    const checking = (this.checking = { address, found: null, waiting: true });
    this.drawCheck();
    Object.assign(checking, { found: await fetchCheck(address), waiting: false });
    this.drawCheck();
  }

  /** Derives the other heads while nothing else is to do, so that a switch only has to draw. */
  foresee() {
    const { layer } = this;
    if (this.foreseen === layer || layer.queries * layer.keys > FORESEEN_CELLS) return;
    this.foreseen = layer;
    const derive = (head) => {
      if (this.layer !== layer || !hasHead(layer, head)) return;
      this.derivedOf(layer, head).weights;
      whenIdle(() => derive(head + 1));
    };
    whenIdle(() => derive(layer.first));
  }

  /** Says that everything is drawn, once it is. */
  settle() {
    const { dataset } = this.root;
    dataset.ready = String(dataset.painted === "true" && this.beside);
  }

  /** What is derived of the chosen head, in the shown run and in the baseline, if there is one. */
  runs() {
    const { layer, baseline, state } = this;
    return [this.derivedOf(layer, state.head), baseline && this.derivedOf(baseline, state.head)];
  }

  drawPicture() {
    const { stage, state, palette, available, picture, isLong } = this;
    const { window, span } = state;
    const [derived, before] = this.runs();
    const byPlotly = picture.plotly && !isLong && !this.quick;
    const drawn = [derived, before, palette, stage, window, span, available, byPlotly];
    if (!this.drawn || drawn.some((part, n) => part !== this.drawn[n])) {
      this.drawn = drawn;
      const figure = figureOf({
        stage,
        layer: this.layer,
        baseline: this.baseline,
        labels: this.labels,
        derived,
        before,
        window,
        span,
        room: { available, tallest: TALLEST },
        title: stage.title.replaceAll("{head}", this.headName),
      });
      const file = `attention-${this.headName}-${stage.name}`;
      picture.draw(figure, { stage, labels: this.labels, palette, file, isLong, byPlotly, span });
    }
    picture.mark(cellOf(stage, state));
  }

  /** Everything the panel and the sentence draw from. */
  scene(derived, before) {
    const { stage, state, layer, baseline, labels, palette } = this;
    const { row, column } = cellOf(stage, state);
    const panels = this.picture.figure.panels.slice(0, 2);
    return {
      ...{ stage, layer, baseline, derived, before, palette },
      ...{ cell: state, order: state.order, side: state.side },
      ...{ queries: labels.query, keys: labels.key },
      cellValues: panels.map((panel) => panel.values[row * panel.columns + column]),
      choose: (change) => this.choose(change),
      setOrder: (order) => this.choose({ order }),
      setSide: (side) => this.choose({ side }),
    };
  }

  drawPanel(scene) {
    const { parts, stage, state, palette, katex } = this;
    const formula = this.received.formulas[stage.name];
    if (katex === undefined) {
      parts.general.textContent = formula.plain;
    } else {
      const general = filledTemplate(formula.general, {}, palette.ink);
      if (general !== this.general) drawEquation(parts.general, katex, general, formula.plain);
      this.general = general;
      const { name, values } = cellNumbers(stage.name, this.layer, scene.derived, state, state.order);
      const numeric = filledTemplate(formula.numeric[name], values, palette.ink);
      drawEquation(parts.numeric, katex, numeric, this.picture.words(cellOf(stage, state)));
    }
    drawEffect(parts.effect, scene);
    drawDetails(parts.details, scene);
    drawTopKeys(parts.top, scene);
  }

  /** How far what is recomputed here lies from the model's own, and the same of the whole run. */
  drawCheck() {
    const [derived] = this.runs();
    const { address, check, device } = this.received;
    const { found, waiting } = this.checking?.address === address ? this.checking : {};
    const whole = check ?? found ?? null;
    const drawn = [derived, whole, waiting, device];
    if (drawn.every((part, n) => part === this.checked?.[n])) return;
    this.checked = drawn;
    const { largest: gap, size } = derived.gap;
    const agrees = gap <= AGREES * Math.max(1, size);
    const what = derived.value ? "" : "summed over the dimensions, ";
    const figure = (value) => element("strong", { class: "number" }, magnitude(value));
    const ofRun = waiting ? ["; the whole run is being checked."] : ["."];
    this.parts.check.replaceChildren(
      element("span", { class: agrees ? "tick" : "cross", "aria-hidden": "true" }, agrees ? "✓" : "✗"),
      `Check: weights · V, ${what}recomputed here from the recorded Q, K and V of ${this.headName},`,
      agrees ? " equals the model's own output to " : " differs from the model's own output by up to ",
      figure(gap),
      ...(whole === null ? ofRun : ["; over the whole run the largest difference is ", figure(whole), "."]),
      ...(device ? [` The pass ran on ${device}.`] : []),
    );
  }

  drawTable() {
    const { numbers } = this.parts;
    const { figure } = this.picture;
    if (!numbers.open || !figure) return;
    drawTable(numbers.querySelector(".scroll"), figure, cellOf(this.stage, this.state));
  }
}

function whenIdle(task) {
  if (globalThis.requestIdleCallback) requestIdleCallback(task);
  else setTimeout(task, 50);
}
