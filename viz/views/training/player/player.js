// The checkpoint player: one head's map at every checkpoint, and what was measured along the way.
//
// Python sends all checkpoints at once, so slider and play never wait for the server.

import { paletteOf } from "../../../explorer/js/colours.js";
import { element, span, table } from "../../../explorer/js/elements.js";
import { Readout } from "../../../explorer/js/readout.js";
import { whenRead } from "../../../explorer/js/when_read.js";
import { chartOf, movementOf, numeral } from "./chart.js";
import { cellAt, drawMap, layoutOf } from "./map.js";
import { saveNumbers, savePicture } from "./save.js";

const MOVED = "training-player-moved"; // the name of an event of the window
const PAUSE = 650; // milliseconds between two checkpoints
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const players = new WeakMap();
// What the reader chose last, in each player: Streamlit may mount a place anew.
const chosen = (globalThis[Symbol.for("training-player-steps")] ??= new Map());

export default function mount({ data, parentElement }) {
  let player = players.get(parentElement);
  if (player?.root !== parentElement.querySelector(".player")) {
    player = new Player(parentElement);
    players.set(parentElement, player);
  }
  player.receive(data);
  return () => player.close();
}

class Player {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".player");
    this.parts = whenRead((name) => this.root.querySelector(`.${name}`));
    this.readout = new Readout(this.parts.readout);
    this.readout.line.ariaLive = "off"; // `unseen` says it
    this.cell = this.kept = null; // pointed at, clicked
    this.at = 0;
    this.resize = new ResizeObserver(() => this.schedule());
    this.resize.observe(this.parts.picture);
    this.follow = ({ detail: { step, by } }) => {
      if (by !== this && this.data?.together) this.show(this.nearest(step));
    };
    window.addEventListener(MOVED, this.follow);
    this.listen();
  }

  listen() {
    const { play, slider, map, numbers, png, csv } = this.parts;
    const named = () => `training-${this.data.title.replace(/\W+/g, "-")}`;
    png.onclick = () =>
      savePicture(`${named()}-step-${this.step}`, this.parts.title.textContent, map, this.palette);
    csv.onclick = () => saveNumbers(named(), this.data);
    slider.oninput = () => {
      this.pause();
      this.move(Number(slider.value));
    };
    play.onclick = () => (this.timer ? this.pause() : this.play());
    numbers.ontoggle = () => this.drawTable();
    map.onpointermove = (event) => this.pick(cellAt(this.layout, event.offsetX, event.offsetY));
    map.onclick = () => (this.kept = this.cell);
    map.onpointerleave = () => this.pick(this.kept);
    map.onkeydown = (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const [row, column] = this.told;
      const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
      this.pick([
        within(row + move[0], this.data.queries.length),
        within(column + move[1], this.data.keys.length),
      ]);
      this.kept = this.cell;
      this.parts.unseen.textContent = this.readout.line.textContent;
    };
  }

  /** New data or a new theme. A player that grows stays at its end while the reader is there. */
  receive(data) {
    const known = this.received;
    const atEnd = !known || this.at === known.steps.length - 1;
    if (data.weights !== known?.weights || data.key !== known?.key) {
      const [allowed, framed] = [data.allowed, data.framed].map((text) => text && decoded(text));
      this.data = { ...data, allowed, framed, maps: weightsOf(data.weights, allowed) };
      this.cell = this.kept = null;
    }
    this.received = data;
    Object.assign(this.data, { charts: data.charts, movement: data.movement, measures: data.measures });
    const last = data.steps.length - 1;
    const before = chosen.get(data.key);
    const kept = before === undefined ? -1 : data.steps.indexOf(before);
    // A training that is opened for the first time forms while the reader looks on.
    const forms = kept < 0 && !known && !data.together && data.lastStep === data.steps[last] && !STILL.matches;
    this.at = data.key === known?.key && atEnd ? last : kept >= 0 ? kept : forms ? 0 : last;
    this.parts.slider.max = last;
    this.palette = paletteOf(this.parent.host ?? this.parent, data.theme, this.palette);
    this.drawLegend();
    this.show(this.at);
    if (forms) this.play();
  }

  close() {
    this.pause();
    cancelAnimationFrame(this.frame);
    window.removeEventListener(MOVED, this.follow);
    this.resize.disconnect();
    players.delete(this.parent);
  }

  play() {
    if (this.at === this.data.steps.length - 1) this.move(0);
    this.timer = setInterval(() => {
      if (this.at < this.data.steps.length - 1) this.move(this.at + 1);
      if (this.at === this.data.steps.length - 1) this.pause();
    }, PAUSE);
    this.parts.play.textContent = "Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.parts.play.textContent = "▶ Play";
  }

  pick(cell) {
    this.cell = cell;
    this.drawMap();
    this.drawCell();
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.data && this.draw());
  }

  show(at) {
    this.at = Math.min(Math.max(at, 0), this.data.steps.length - 1);
    chosen.set(this.data.key, this.step);
    this.draw();
    const step = `step ${this.step} of ${this.data.lastStep}`;
    this.parts.unseen.textContent = [step, ...this.measured()].join(", ");
  }

  /** Shows what the reader has chosen; the other player of two goes to the step that is nearest. */
  move(at) {
    this.show(at);
    if (!this.data.together) return;
    window.dispatchEvent(new CustomEvent(MOVED, { detail: { step: this.step, by: this } }));
  }

  /** The place of the checkpoint that is nearest to a step. */
  nearest(step) {
    const gaps = this.data.steps.map((one) => Math.abs(one - step));
    return gaps.indexOf(Math.min(...gaps));
  }

  get step() {
    return this.data.steps[this.at];
  }

  /** (query, key) of the chosen checkpoint. */
  get weights() {
    const size = this.data.queries.length * this.data.keys.length;
    return this.data.maps.subarray(this.at * size, (this.at + 1) * size);
  }

  draw() {
    const { parts, data, root } = this;
    Object.assign(root.dataset, { step: this.step, ready: "true" });
    root.classList.toggle("lecture", "lecture" in document.documentElement.dataset);
    parts.slider.value = this.at;
    parts.slider.style.setProperty("--done", this.at / Math.max(this.data.steps.length - 1, 1));
    parts.slider.setAttribute("aria-valuetext", `step ${this.step}`);
    parts.step.textContent = `checkpoint ${this.at + 1} of ${data.steps.length}`;
    parts.title.textContent = `${data.title} at step ${this.step}`;
    this.drawMap();
    this.drawCell();
    parts.measures.replaceChildren(
      ...data.measures.flatMap(({ name, values }) => [
        element("span", {}, name),
        span("value", numeral(values[this.at], 4)),
      ]),
    );
    const choose = (step) => {
      this.pause();
      this.move(this.nearest(step));
    };
    const width = Math.max(parts.curves.clientWidth, 240);
    const now = { width, step: this.step, lastStep: data.lastStep, palette: this.palette, choose };
    this.parts.curves.replaceChildren(...data.charts.map((chart) => chartOf(chart, now)));
    const moved = data.movement ? movementOf(data.movement, this.at, this.palette) : [];
    parts.movement.replaceChildren(...moved);
    this.drawTable();
  }

  drawMap() {
    const { map, picture } = this.parts;
    const available = picture.clientWidth;
    if (available < 60) return; // in a tab that is not open
    const { data, palette, cell, weights } = this;
    this.layout = layoutOf(data, available, map.getContext("2d"), palette.mono);
    drawMap(map, { data, weights, layout: this.layout, palette, cell });
    map.setAttribute("aria-label", `${this.parts.title.textContent}: ${this.measured().join(", ")}`);
  }

  measured() {
    return this.data.measures.map(({ name, values }) => `${name} ${numeral(values[this.at], 4)}`);
  }

  /** The cell that the readout tells: the one that is pointed at, or what the last query attends to most. */
  get told() {
    if (this.cell) return this.cell;
    const row = this.weights.subarray(-this.data.keys.length);
    return [this.data.queries.length - 1, row.indexOf(Math.max(...row))];
  }

  drawCell() {
    const { data, told, step } = this;
    const [query, key] = told;
    const tokens = `${data.queries[query]} → ${data.keys[key]}`;
    this.readout.say(`${data.head}: ${tokens}, step ${step}, weight ${this.written(query, key)}`);
  }

  /** The weight of a cell as text. */
  written(row, column) {
    const at = row * this.data.keys.length + column;
    const masked = this.data.allowed !== null && !this.data.allowed[at];
    return masked ? "masked" : numeral(this.weights[at], 4);
  }

  drawLegend() {
    const { scale, masked, framed, why } = this.parts;
    scale.style.background = this.palette.scale.weight.gradient;
    masked.hidden = this.data.allowed === null;
    framed.hidden = this.data.framed === null;
    why.textContent = this.data.framedWhy;
  }

  drawTable() {
    const { numbers, scroll } = this.parts;
    if (!numbers.open) return;
    const { queries, keys } = this.data;
    const rows = queries.map((query, row) => [query, ...keys.map((_, column) => this.written(row, column))]);
    scroll.replaceChildren(table(["query \\ key", ...keys], rows));
  }
}

function decoded(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** The weights of all checkpoints, from the float32 of those cells that are allowed; 0 in the others. */
function weightsOf(text, allowed) {
  const sent = new Float32Array(decoded(text).buffer);
  if (allowed === null) return sent;
  const open = Array.from(allowed.keys()).filter((cell) => allowed[cell]);
  const maps = new Float32Array((sent.length / open.length) * allowed.length);
  sent.forEach((weight, n) => {
    maps[Math.floor(n / open.length) * allowed.length + open[n % open.length]] = weight;
  });
  return maps;
}
