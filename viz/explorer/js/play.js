// One row of scores becomes weights and an output, in beats that can be scrubbed.
//
// `t` runs from 0 to the number of beats, whose ends are whole numbers. `Play.show(t)` draws any moment by itself, so
// playing, stepping and scrubbing are the same. Within a beat only transforms and opacities change, which a
// browser does without a new layout; numbers and vectors change where a beat begins.

import { beatsOf } from "./beats.js";
import { topPositions } from "./derive.js";
import { rowOf } from "./steps.js";
import { button, element, span } from "./elements.js";
import { eased, inSteps } from "./motion.js";
import { precise } from "./numbers.js";
import { paintPixels } from "./paint.js";
import { SINK } from "./view.js";

const SHOWN = 24; // keys at most: of a longer row those with the largest weights
const SECONDS = 1.8; // of one beat
const ROW = 21; // pixels from one row to the next, as in play.css

/** The keys that are shown, in the order of the text. */
function shownKeys(weights) {
  const all = weights.length;
  if (all <= SHOWN) return Array.from({ length: all }, (_, key) => key);
  return topPositions(weights, SHOWN).sort((a, b) => a - b);
}

/** A vector as a strip of colours, which screen readers pass over. */
function strip(name) {
  return element("canvas", { class: name, height: 1, "aria-hidden": "true" });
}

export class Play {
  /** `close`: what the button at its right does. */
  constructor(holder, close) {
    this.holder = holder;
    this.title = element("h3", { class: "beat", "data-testid": "beat" });
    this.says = element("p", { class: "beatsays", "data-testid": "beat-says" });
    this.query = strip("vector asking");
    this.rows = element("div", { class: "beatrows", "data-testid": "beat-rows" });
    this.output = strip("vector output");
    this.result = element("div", { class: "beatrow result" }, span("", "output"), this.output);
    this.button = button("play", () => this.toggle());
    this.slider = element("input", {
      ...{ type: "range", min: 0, step: "any", value: 0, "aria-label": "Moment" },
      ...{ "data-testid": "scrub", oninput: () => this.scrub(Number(this.slider.value)) },
    });
    this.closing = button("play-close", close, {}, "Close");
    const foot = element("div", { class: "beatfoot" }, this.button, this.slider, this.closing);
    holder.replaceChildren(this.title, this.says, this.rows, this.result, foot);
    holder.onkeydown = (event) => this.key(event);
    this.stop = () => {};
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.t = 0;
    this.pause();
  }

  /** From the start, and at once where things may move. */
  open(scene) {
    this.t = 0;
    this.draw(scene);
    this.button.focus();
    if (!this.still.matches) this.start();
  }

  /** Another row, layer or theme: the same moment of it. */
  draw(scene) {
    const { layer, derived, cell, palette, keys } = scene;
    this.palette = palette;
    this.beats = beatsOf(derived, layer, cell.query);
    this.falls = this.beats.findIndex(({ moves }) => moves === "falls");
    this.slider.max = this.end;
    this.shown = shownKeys(rowOf(derived.weights, cell.query, layer.keys));
    this.isMasked = (key) => key < layer.keys && derived.hidden?.[cell.query * layer.keys + key];
    this.lines = this.shown.map((key) => this.line(key, keys.full[key], scene));
    if (derived.sink !== null) this.lines.push(this.line(layer.keys, SINK, scene));
    this.rows.replaceChildren(this.query, ...this.lines.map(({ row }) => row));
    const whole = this.shown.length === layer.keys;
    this.rest = whole ? "" : ` Shown: the ${SHOWN} keys with the largest weights, of ${layer.keys}.`;
    this.paint(this.query, rowOf(derived.query, cell.query, layer.width), "query", layer);
    this.result.hidden = !derived.output;
    if (derived.output) {
      this.paint(this.output, rowOf(derived.output, cell.query, layer.valueWidth), "output", layer);
    }
    this.beat = null;
    this.show(this.t);
  }

  /** One key: its bar, its key vector, and its value vector twice, since one copy flows into the output. After the
   *  keys comes the sink, with a bar alone. */
  line(key, label, { layer, derived }) {
    const bar = element("i", { class: "bar" });
    const [offer, vector, flow] = ["vector offer", "vector held", "vector flow"].map(strip);
    const number = span("beatnumber");
    const track = span("track", offer, bar, vector, flow);
    const masked = this.isMasked(key) ? " masked" : "";
    const row = element("div", { class: `beatrow${masked}` }, span("", label), track, number);
    if (key === layer.keys) return { key, row, bar, offer, vector, flow, number }; // the sink has no vectors
    this.paint(offer, rowOf(derived.key, key, layer.width), "key", layer);
    for (const copy of derived.value ? [vector, flow] : []) {
      this.paint(copy, rowOf(derived.value, key, layer.valueWidth), "value", layer);
    }
    return { key, row, bar, offer, vector, flow, number };
  }

  /** A vector as one row of coloured pixels, which CSS makes as wide as the track. */
  paint(canvas, vector, quantity, { range }) {
    const row = { values: vector, rows: 1, columns: vector.length };
    paintPixels(canvas, row, this.palette.scale[quantity], { low: -range[quantity], high: range[quantity] });
  }

  get end() {
    return this.beats.length;
  }

  /** Draws the moment t. */
  show(t) {
    this.t = Math.min(Math.max(t, 0), this.end);
    const beat = Math.max(Math.ceil(this.t) - 1, 0);
    if (beat !== this.beat) this.begin(beat);
    const passed = this.t - beat;
    const { moves } = this.beats[beat];
    if (moves === "meets") this.slide(passed);
    else this.grow(beat, eased(passed));
    if (moves === "falls") this.rows.style.setProperty("--fallen", eased(passed));
    if (moves === "mixed") this.mix(eased(passed));
    this.slider.value = this.t;
  }

  /** q slides along the keys; the score of each one it has met is filled. */
  slide(passed) {
    const at = passed * this.shown.length;
    this.query.style.transform = `translateY(${Math.min(at, this.shown.length - 1) * ROW}px)`;
    this.lines.forEach(({ key, bar, number }, n) => {
      const met = eased(Math.min(Math.max(at - n, 0), 1));
      bar.style.transform = `scaleX(${this.beats[0].bars[key] * met})`;
      number.style.opacity = met;
    });
  }

  /** From the bars of the beat before to those of this one. */
  grow(beat, share) {
    const [from, to] = [this.beats[beat - 1].bars, this.beats[beat].bars];
    for (const { key, bar } of this.lines) {
      bar.style.transform = `scaleX(${from[key] + (to[key] - from[key]) * share})`;
    }
  }

  /** Each value becomes as thick as its weight, then a copy of it flows into the output. */
  mix(share) {
    const { bars } = this.beats.at(-1);
    const [thin, flown] = [Math.min(share * 2, 1), Math.max(share * 2 - 1, 0)];
    this.lines.forEach(({ key, bar, vector, flow }, n) => {
      const thick = `scaleY(${bars[key]})`;
      bar.style.opacity = 1 - thin;
      vector.style.opacity = thin;
      vector.style.transform = thick;
      flow.style.opacity = flown > 0 && flown < 1 ? 0.8 : 0;
      flow.style.transform = `translateY(${(this.lines.length - n) * ROW * flown}px) ${thick}`;
    });
    this.output.style.opacity = flown;
  }

  /** The words, numbers and vectors of a beat. */
  begin(beat) {
    this.beat = beat;
    const { title, says, numbers, quantity } = this.beats[beat];
    this.title.textContent = `${beat + 1} of ${this.end} · ${title}`;
    this.says.textContent = says + this.rest;
    this.slider.setAttribute("aria-valuetext", this.title.textContent);
    Object.assign(this.holder.dataset, { beat, shares: beat > this.falls });
    this.rows.style.setProperty("--bar", this.palette.hue[quantity]);
    this.rows.style.setProperty("--fallen", beat > this.falls ? 1 : 0);
    this.output.style.opacity = 0;
    for (const { key, bar, vector, flow, number } of this.lines) {
      number.textContent = precise(numbers[key]);
      number.style.opacity = bar.style.opacity = 1;
      vector.style.opacity = flow.style.opacity = 0;
    }
  }

  toggle() {
    if (this.playing) this.pause();
    else if (this.still.matches) this.step(1);
    else this.start();
  }

  start() {
    this.playing = true;
    this.button.textContent = "Pause";
    if (this.t >= this.end) this.show(0);
    this.stop = inSteps((passed) => {
      this.show(this.t + passed / 1000 / SECONDS);
      if (this.t >= this.end) this.pause();
      return this.playing;
    });
  }

  pause() {
    this.playing = false;
    this.stop();
    this.button.textContent = this.still.matches ? "Next" : "Play";
  }

  scrub(t) {
    this.pause();
    this.show(t);
  }

  /** To the end of the next beat, or of the one before. */
  step(by) {
    this.pause();
    const at = by > 0 ? Math.floor(this.t) + 1 : Math.ceil(this.t) - 1;
    this.show(at > this.end ? 0 : at);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key === " " && event.target !== this.closing) this.toggle();
    else if (event.key in steps) this.step(steps[event.key]);
    else return;
    event.preventDefault();
  }
}
