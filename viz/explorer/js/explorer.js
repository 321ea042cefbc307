// The attention explorer: one attention layer, explored in the browser.
//
// Python sends the layer once, of a large one the values when they are shown. Everything else is derived here
// (derive.js), so a change of head, stage or cell is one redraw and no journey. So is a layer that has been here
// before; another one comes from Python. State lives in one object a mount; `choose` changes it, the drawing
// shows what it says, and Python hears of the choice a quarter of a second later, of the last one only.
//
// main.js mounts it in a page of Streamlit's, viz/notebook/js/main.js in a notebook.

import { isMissing } from "./around.js";
import { cellName } from "./card.js";
import { paletteOf } from "./colours.js";
import { Controls } from "./controls.js";
import { hasHead, topPositions } from "./derive.js";
import { stagesIn } from "./detail.js";
import { Drawing } from "./drawing.js";
import { moveAmongRadios } from "./elements.js";
import { contains, PLOTLY_TOKENS, windowAround, windowBetween, within } from "./geometry.js";
import { CHOOSE, tellShown } from "./head_events.js";
import { foreseen, keepAhead, layersOf, remember, remembered } from "./held.js";
import { followLecture } from "./lecture.js";
import { Python, REPORTED } from "./python.js";
import { rowOf } from "./steps.js";
import { areWords, subjectOf } from "./subject.js";
import { axisLength, cellOf, headName } from "./view.js";
import { whenRead } from "./when_read.js";

const SHOW_VALUES = new Set(["value", "output"]); // stages for which Python sends a large layer's values
const START = { order: "largest", span: "layer", dimension: 0, window: null, run: "changed", card: null, isMine: false, left: null };
// What is chosen, by mount: the one place of it. Streamlit may mount a place anew, with this script run anew.
const states = (globalThis[Symbol.for("attention-explorer-states")] ??= new Map());

export class Explorer {
  /** `parent`: the element or shadow root that holds the skeleton. `channel`: through what it hears and tells of
   *  heads (head_events.js). `tallest`: how tall a picture may be, in pixels; null: as tall as the window lets it.
   *  `isExplained`: whether it opens with how the number is computed. */
  constructor(parent, { channel = window, tallest = null, isExplained = false } = {}) {
    Object.assign(this, { parent, channel, tallest });
    this.root = parent.querySelector(".explorer");
    this.root.classList.toggle("explained", isExplained);
    this.parts = whenRead((name) => this.root.querySelector(`.${name}`));
    this.python = new Python();
    this.mountedUntil = new AbortController();
    this.drawing = new Drawing(this, this.actions());
    this.root.onkeydown = moveAmongRadios;
    this.controls = new Controls(this.parts, (change) => this.choose(change));
    this.asked = (event) => this.take(event);
    channel.addEventListener(CHOOSE, this.asked);
    const { signal } = this.mountedUntil;
    document.addEventListener("click", ({ target }) => this.turn(target), { capture: true, signal });
    for (const event of ["pointerover", "focusin"]) {
      document.addEventListener(event, ({ target }) => this.approach(target), { signal });
    }
    followLecture(this, signal);
  }

  /** New data or a new theme. */
  receive(data) {
    const palette = paletteOf(this.parent.host ?? this.parent, data.theme, this.palette);
    if (data === this.received && palette === this.palette) return;
    if (this.isOutdated(data) || this.python.isOvertaken(data)) return;
    if (Object.keys(data.turns ?? {}).length) keepAhead([data, ...data.ahead]);
    const layers = layersOf(data);
    if (!layers) {
      this.python.open(data, data.layer.name, true, true);
      return;
    }
    remember(data);
    const before = this.received;
    this.state = stateOf(data.mount);
    this.received = data;
    const news = { ...layers, palette, said: wordsOf(data, layers) };
    if (Object.entries(news).every(([name, fact]) => this[name] === fact)) return;
    const isOther = this.show(data, news);
    if (data.revision !== before?.revision) this.adopt(data);
    this.clamp();
    if (before ? isOther && data.run !== before.run : data.hero.opens) this.showNews(before);
    this.offered = stagesIn(data.hero.detail, this.stages, this.state.stage);
    this.drawing.load(data.assets);
    this.controls.build(this);
    this.drawing.draw();
    this.tellHead();
  }

  /** The name of the switch of the page that an element belongs to; undefined for any other. */
  switchAt(target) {
    return Object.keys(this.received?.turns ?? {}).find((name) => target.closest?.(`[class*="st-key-${name}"] label`));
  }

  /** The pointer or the keyboard comes to a switch: asks for the runs to which the switches lead. */
  approach(target) {
    if (!this.switchAt(target)) return;
    this.python.askAhead(this.received, (run) => foreseen(this.received, run) !== null);
  }

  /** A click, maybe on a switch of the page: shows the run to which it leads at once, where Python has sent it ahead. Python
   *  answers as ever, with the same message if all is as it was foreseen. */
  turn(target) {
    const { run: from, turns = {} } = this.received ?? {};
    const name = this.switchAt(target);
    if (!name) return;
    const input = target.closest("label").querySelector("input");
    const checked = target === input ? input.checked : !input.checked; // its label is clicked before it
    if (input.disabled || checked === turns[name].on) return;
    const found = foreseen(this.received, turns[name].run);
    if (!found) return;
    this.drawing.leaveNumbers();
    this.receive(found);
    this.turned = { from, input, checked };
  }

  /** Whether a message is of the run that was left by a switch which still stands as the reader has turned it. */
  isOutdated({ run }) {
    const { from, input, checked } = this.turned ?? {};
    const isOutdated = run === from && input.isConnected && input.checked === checked;
    if (!isOutdated) this.turned = null;
    return isOutdated;
  }

  /** Takes over what a message shows, and returns whether its numbers are others: a server that starts anew sends the
   *  same ones as another run. Another layer is drawn whole, and quickly first. */
  show({ layers, stages, queries, keys }, { layer, baseline, palette, said }) {
    const isOther = layer.digest !== this.layer?.digest || baseline?.digest !== this.baseline?.digest;
    if (isOther) this.state.window = null;
    if (layer !== this.layer || baseline !== this.baseline) this.quick = true;
    const labels = { query: queries, key: keys };
    Object.assign(this, { layer, baseline, palette, said, layers, stages, labels });
    return isOther;
  }

  /** Takes Python's selection, which counts with a new revision only. The reader's own stays where it was
   *  chosen under this one: the place was then mounted anew before Python heard of it, so it is told again. */
  adopt({ selection, revision }) {
    const { state } = this;
    if (state.revision !== revision) Object.assign(state, selection, { revision, window: null, left: null });
    if (REPORTED.some((field) => state[field] !== selection[field])) this.report();
  }

  /** Chooses what there is to see: after a change of the mechanism the cell that it is about, of another text
   *  for which nobody chose a cell the last token's largest weight. */
  showNews(shown) {
    this.state.run = "changed";
    if (!this.isHere) return;
    const { received, state } = this;
    const isOther = received.queries.full.join("\n") !== shown?.queries.full.join("\n");
    if (isOther) Object.assign(state, { isMine: false, left: null });
    const cell = isOther ? received.hero.opens && this.cellOfNews() : this.cellOfChange();
    if (!cell) return;
    Object.assign(state, cell);
    this.report();
  }

  cellOfNews() {
    return (this.baseline && this.cellOfChange()) || this.largestOfLast();
  }

  /** The cell with the largest weight of the last token that is a word. */
  largestOfLast() {
    const { layer, labels } = this;
    const [{ weights }] = this.drawing.runs();
    const word = areWords(labels.query).lastIndexOf(true);
    const query = word < 0 ? layer.queries - 1 : word;
    const [key] = topPositions(rowOf(weights, query, layer.keys), 1);
    return { query, key };
  }

  /** The cell that a change is about: in the row that the reader has chosen, where one was. Where the change is taken
   *  back, the one before it. */
  cellOfChange() {
    const { layer, state, labels } = this;
    const [derived, before] = this.drawing.runs();
    if (!before) {
      const { left } = state;
      state.left = null;
      return left;
    }
    const scene = { layer, derived, before, queries: labels.query, keys: labels.key };
    state.left ??= { query: state.query, key: state.key };
    return subjectOf(scene, state.isMine ? state.query : null);
  }

  clamp() {
    const { state, layer } = this;
    state.head = within(state.head, layer.heads);
    state.query = within(state.query, layer.queries);
    state.key = within(state.key, layer.keys);
    if (!this.stages.some(({ name }) => name === state.stage)) state.stage = "weights";
    state.dimension = within(state.dimension, axisLength("dimension", this.stage, layer));
  }

  close() {
    this.mountedUntil.abort();
    this.python.close();
    this.drawing.close();
    this.channel.removeEventListener(CHOOSE, this.asked);
  }

  /** Changes the choice, draws it, and reports it later. `isOwn`: whether it is the reader's own. */
  choose(change, { isOwn = true } = {}) {
    const before = { ...this.state };
    if (isOwn && ("query" in change || "key" in change)) Object.assign(this.state, { isMine: true, left: null });
    Object.assign(this.state, change);
    this.clamp();
    if (this.state.card !== cellName(this.state)) this.state.card = null;
    if (this.state.stage !== before.stage) this.state.window = null;
    if (this.state.stage !== before.stage || this.state.head !== before.head) this.quick = true; // within one frame
    const { row, column } = cellOf(this.stage, this.state);
    if (this.state.window && !contains(this.state.window, row, column)) {
      this.state.window = this.windowHere();
    }
    this.drawing.draw();
    if (REPORTED.some((name) => this.state[name] !== before[name])) this.report();
    if (this.state.head !== before.head) this.tellHead();
  }

  /** Shows the head that is chosen in the work bar, where this picture can. */
  take(event) {
    const { place, head } = event.detail;
    const isOther = place !== this.layer.name;
    if (isOther && !this.layers.some(({ name }) => name === place)) return;
    event.preventDefault();
    if (!isOther) return this.choose({ head });
    this.state.head = head;
    this.python.report(this.state, true); // before the layer, whose tokens may move the cell
    this.open(place);
  }

  /** Tells the work bar which head this picture shows. */
  tellHead(place = this.layer.name) {
    tellShown({ place, head: this.state.head }, this.channel);
  }

  /** Tells Python of the choice: at once where Python must send what it is drawn from. */
  report() {
    this.python.report(this.state, !this.isHere);
  }

  /** Opens another layer: the work bar names it at once, the picture follows when it is here. */
  open(name) {
    const { python, received } = this;
    python.open(received, name, true);
    this.tellHead(name);
    if (name !== this.layer.name) this.root.dataset.ready = "false";
    const found = remembered(received, name);
    if (!found) return;
    this.receive(found);
    python.open(received, name, !this.isHere);
  }

  /** What the picture's pointer and keys do. */
  actions() {
    const zoom = () => this.isLong && this.choose({ window: this.windowHere() });
    return {
      choose: ({ row, column }) => {
        const isSink = this.stage.sink && column === this.layer.keys; // it is no key that can be chosen
        const place = { [this.stage.rows]: row, ...(isSink ? {} : { [this.stage.columns]: column }) };
        this.choose(isSink ? place : { ...place, ...this.cardOn({ query: row, key: column }) });
        if (!this.state.window) zoom();
      },
      zoom: (one, other) => {
        const window = windowBetween(one, other);
        const { row, column } = this.drawing.picture.largestIn(window);
        this.choose({ [this.stage.rows]: row, [this.stage.columns]: column, window, card: null });
      },
      move: (rows, columns) => {
        const axis = rows ? this.stage.rows : this.stage.columns;
        this.choose({ [axis]: this.state[axis] + rows + columns });
        this.parts.unseen.textContent = this.drawing.picture.words(cellOf(this.stage, this.state));
      },
      follow: ({ rings, place, head }) => this.follow(rings, place, head),
      enter: () => {
        this.choose(this.cardOn(this.state));
        zoom();
      },
      leave: () => this.choose(this.state.card ? { card: null } : { window: null }),
      whole: () => this.choose({ card: null, window: null }),
      hasCard: ({ row, column }) => this.state.card === cellName({ query: row, key: column }),
      setSpan: (span) => this.choose({ span }),
    };
  }

  /** Opens the card of a cell. */
  cardOn(cell) {
    return this.drawing.picture.isOfTokens ? { card: cellName(cell) } : {};
  }

  /** Rings what words name, or opens the layer and head that they name. */
  follow(rings, place, head) {
    if (head !== null) this.choose({ head });
    if (place !== null && place !== this.layer.name) this.open(place);
    if (!rings.length) return;
    if (!this.drawing.picture.isOfTokens) this.choose({ stage: "weights" });
    this.drawing.picture.ring(rings);
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
    if (!hasHead(this.layer, this.state.head) || (!complete && SHOW_VALUES.has(this.state.stage))) return false;
    return [this.layer, this.baseline].every((run) => !run || !isMissing(run, this.stage));
  }

  get stage() {
    return this.stages.find(({ name }) => name === this.state.stage);
  }

  get headName() {
    return headName(this.state.head, this.layer.label);
  }
}

function stateOf(mount) {
  if (!states.has(mount)) states.set(mount, { ...START });
  return states.get(mount);
}

/** What a message says, but for the numbers of its layers. */
function wordsOf(data, { layer, baseline }) {
  const here = (run) => run && [run.digest, Object.values(run.around).map(({ numbers }) => numbers !== null)];
  return JSON.stringify({ ...data, ahead: [], layer: here(layer), baseline: here(baseline) });
}
