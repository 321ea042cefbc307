// One row of scores becomes weights and an output, in six beats that can be scrubbed.
//
// `t` runs from 0 to 6, the ends of the beats are whole numbers. `Play.show(t)` draws any moment by itself, so
// playing, stepping and scrubbing are the same. Within a beat only transforms and opacities change, which a
// browser does without a new layout; numbers change where a beat begins.

import { exponentialsOf, extent, rowOf, topPositions } from "./derive.js";
import { button, element, span } from "./elements.js";
import { precise } from "./numbers.js";
import { paintPixels } from "./paint.js";

const BEATS = 6;
const SHOWN = 24; // keys at most: of a longer row those with the largest weights
const SECONDS = 1.8; // of one beat
const HATCHED = 2; // the beat in which the mask falls

/** What each beat shows of a row: a title, a sentence, and of each key its number and its bar. */
function beatsOf(derived, layer, query) {
  const row = (matrix) => rowOf(matrix, query, layer.keys);
  const [scores, scaled, masked] = [derived.scores, derived.scaled, derived.masked].map(row);
  const { exponentials, sum, largest } = exponentialsOf(masked);
  const weights = row(derived.weights);
  const unit = Math.max(extent(scores), extent(scaled), Number.MIN_VALUE);
  const along = (numbers) => Array.from(numbers, (value) => (Number.isFinite(value) ? value / unit : 0));
  const masks = derived.hidden === null ? "No key is masked in this layer." : "Masked keys lose their score.";
  const all = precise(sum);
  const beat = (title, says, numbers, quantity, bars = Array.from(numbers)) => ({ title, says, numbers, quantity, bars });
  const score = (title, says, numbers) => beat(title, says, numbers, "score", along(numbers));
  return [
    score("Query meets keys", "Each score is the dot product of the query with one key.", scores),
    score("Scale", `Each score is multiplied by ${precise(layer.scale)}.`, scaled),
    score("Mask", masks, masked),
    beat(
      "Exponentials",
      `e to the power of each score, less the largest, ${precise(largest)}. They sum to ${all}.`,
      exponentials,
      "weight",
    ),
    beat(
      "Divide by the sum",
      `Each is divided by ${all}: these are the weights, and they sum to 1.`,
      weights,
      "weight",
    ),
    beat("Mix the values", "Each value vector, times its weight, goes into the output.", weights, "value"),
  ];
}

/** The keys that are shown, in the order of the text. */
function shownKeys(weights) {
  const all = weights.length;
  if (all <= SHOWN) return Array.from({ length: all }, (_, key) => key);
  return topPositions(weights, SHOWN).sort((a, b) => a - b);
}

/** Slow at both ends. */
function eased(share) {
  return share * share * (3 - 2 * share);
}

export class Play {
  /** `close`: what the button at its right does. */
  constructor(holder, close) {
    this.holder = holder;
    this.title = element("h3", { class: "beat", "data-testid": "beat" });
    this.says = element("p", { class: "beatsays", "data-testid": "beat-says" });
    this.rows = element("div", { class: "beatrows", "data-testid": "beat-rows" });
    this.output = element("canvas", { class: "vector output", height: 1, "aria-hidden": "true" });
    this.result = element("div", { class: "beatrow result" }, span("", "output"), this.output);
    this.button = button("play", () => this.toggle());
    this.slider = element("input", {
      ...{ type: "range", min: 0, max: BEATS, step: "any", value: 0, "aria-label": "Moment" },
      ...{ "data-testid": "scrub", oninput: () => this.scrub(Number(this.slider.value)) },
    });
    this.closing = button("play-close", close, {}, "Close");
    const foot = element("div", { class: "beatfoot" }, this.button, this.slider, this.closing);
    holder.replaceChildren(this.title, this.says, this.rows, this.result, foot);
    holder.onkeydown = (event) => this.key(event);
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
    this.shown = shownKeys(rowOf(derived.weights, cell.query, layer.keys));
    this.isMasked = (key) => derived.hidden?.[cell.query * layer.keys + key];
    this.lines = this.shown.map((key) => this.line(key, keys.full[key], scene));
    this.rows.replaceChildren(...this.lines.map(({ row }) => row));
    const whole = this.shown.length === layer.keys;
    this.rest = whole ? "" : ` Shown: the ${SHOWN} keys with the largest weights, of ${layer.keys}.`;
    this.drawOutput(scene);
    this.beat = null;
    this.show(this.t);
  }

  line(key, label, scene) {
    const bar = element("i", { class: "bar" });
    const vector = element("canvas", { class: "vector", height: 1, "aria-hidden": "true" });
    const number = span("beatnumber");
    const track = span("track", bar, vector);
    const masked = this.isMasked(key) ? " masked" : "";
    const row = element("div", { class: `beatrow${masked}` }, span("", label), track, number);
    const { layer, derived } = scene;
    if (derived.value) this.paint(vector, rowOf(derived.value, key, layer.valueWidth), layer.range.value);
    return { key, row, bar, vector, number };
  }

  drawOutput({ layer, derived, cell }) {
    this.result.hidden = !derived.output;
    if (!derived.output) return;
    this.paint(this.output, rowOf(derived.output, cell.query, layer.valueWidth), layer.range.output);
  }

  /** A vector as one row of coloured pixels, which CSS makes as wide as the track. */
  paint(canvas, vector, largest) {
    const row = { values: vector, rows: 1, columns: vector.length };
    paintPixels(canvas, row, this.palette.scale.value, { low: -largest, high: largest });
  }

  /** Draws the moment t. */
  show(t) {
    this.t = Math.min(Math.max(t, 0), BEATS);
    const beat = Math.max(Math.ceil(this.t) - 1, 0);
    if (beat !== this.beat) this.begin(beat);
    const share = eased(this.t - beat);
    const { bars } = this.beats[beat];
    const before = beat === 0 ? null : this.beats[beat - 1].bars;
    const isMixing = beat === BEATS - 1;
    this.lines.forEach(({ key, row, bar, vector, number }, n) => {
      const here = beat === 0 ? Math.min(Math.max(share * this.lines.length - n, 0), 1) : share;
      const from = before?.[key] ?? 0;
      bar.style.transform = `scaleX(${from + (bars[key] - from) * here})`;
      number.style.opacity = beat === 0 ? here : 1;
      row.style.setProperty("--fallen", beat > HATCHED ? 1 : beat === HATCHED ? share : 0);
      if (!isMixing) return;
      vector.style.transform = `scaleY(${bars[key]})`;
      vector.style.opacity = share;
      bar.style.opacity = 1 - share;
    });
    this.output.style.opacity = isMixing ? share : 0;
    this.slider.value = this.t;
  }

  /** The words and numbers of a beat. */
  begin(beat) {
    this.beat = beat;
    const { title, says, numbers, quantity } = this.beats[beat];
    this.title.textContent = `${beat + 1} of ${BEATS} · ${title}`;
    this.says.textContent = says + this.rest;
    this.slider.setAttribute("aria-valuetext", this.title.textContent);
    this.holder.dataset.beat = beat;
    this.rows.style.setProperty("--bar", this.palette.hue[quantity]);
    for (const { key, bar, vector, number } of this.lines) {
      number.textContent = precise(numbers[key]);
      bar.style.opacity = 1;
      vector.style.opacity = 0;
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
    if (this.t >= BEATS) this.show(0);
    let before = null;
    const tick = (now) => {
      if (!this.playing) return;
      this.show(this.t + (before === null ? 0 : (now - before) / 1000 / SECONDS));
      before = now;
      if (this.t >= BEATS) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
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
    this.show(at > BEATS ? 0 : at);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key === " " && event.target !== this.closing) this.toggle();
    else if (event.key in steps) this.step(steps[event.key]);
    else return;
    event.preventDefault();
  }
}
