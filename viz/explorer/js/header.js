// The tokens above a map, each over its own column: arcs of the chosen row, and how sure the model was of each token.

import { ARC_TOKENS, Arcs, arcsOf } from "./arcs.js";
import { check, Drawn, element, radio, span } from "./elements.js";
import { contains, wordStarts } from "./geometry.js";
import { upTo } from "./fade.js";
import { eased } from "./motion.js";
import { brief, precise } from "./numbers.js";
import { isOneText, LONG, SINK } from "./view.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("header");

export const [HEADER, LOW_HEADER] = [136, 104]; // pixels; the lower one in the lecture view, and on a phone
const [LETTER, LINE, AROUND] = [7.85, 19, 8]; // pixels of a letter and of a line of letters, and around a token
const LEAST = 0.01; // how sure the model was at least, where its ghost is drawn
const UPRIGHT = 13; // pixels of a column whose token stands upright
const ARCS = 36; // pixels for them at least
const LONGEST = 9; // letters of a token that stands upright
const SURE = 22; // pixels of the line that says how sure the model was, or of the numbers of the dimensions
const [APART, RISES] = [25, 300]; // milliseconds from one bar to the next, and until it stands

/** How the tokens of columns so many pixels wide are written: beside each other, in two lines by turns, or upright.
 *  `every`: how many columns a token takes. */
export function arrangement(labels, width) {
  const longest = Math.max(...labels.map((label) => label.length)) * LETTER + AROUND;
  if (longest <= width) return { form: "flat", height: LINE, every: 1 };
  if (longest <= 2 * width) return { form: "staggered", height: 2 * LINE, every: 1 };
  const height = Math.min(longest, LONGEST * LETTER + AROUND);
  return { form: "upright", height, every: Math.ceil(UPRIGHT / width) };
}

export class Header {
  drawn = new Drawn();

  /** `point` takes the cell { query, key } or row { query } under the pointer, or null. */
  constructor(holder, point) {
    Object.assign(this, { holder, point });
    const arc = (found) => {
      this.arcs.light(found);
      point(found && { query: found.from, key: found.to });
    };
    [this.ghosts, this.arcs] = [new Arcs(() => {}), new Arcs(arc)];
    this.ghosts.svg.classList.add("ghosts");
  }

  /** How many pixels it takes above a map whose tokens may stand upright. Without arcs it is as low as in a lecture. */
  height(root, layer, { short }) {
    const upright = Math.min(Math.max(...short.map((label) => label.length)), LONGEST) * LETTER + AROUND;
    const isLow = ["projected", "narrow"].some((name) => root.classList.contains(name)) || !isOneText(layer);
    return Math.max(isLow ? LOW_HEADER : HEADER, Math.ceil(upright) + SURE + ARCS);
  }

  /** `scene.hero.sure`: the probabilities of the tokens, { before, after }, or null. `figure`: the map. */
  draw(scene, figure) {
    const { layer, keys, hero } = scene;
    this.isOne = isOneText(layer);
    this.isAbove = figure.columnAxis === "key" && figure.rowAxis === "query"; // each token its own column
    const isShown = (this.isAbove || this.isOne) && figure.layout.header > 0;
    this.holder.hidden = !isShown;
    if (!isShown) return;
    this.scene = scene;
    const place = JSON.stringify([figure.layout, figure.window, figure.sink]); // each figure has objects of its own
    if (this.drawn.differs("tokens", keys, place, hero.sure, this.isOne, this.isAbove)) this.build(figure);
    this.mark();
    this.drawArcs(scene.cell.query);
  }

  build(figure) {
    const { layout, window: whole } = figure;
    const [box] = layout.boxes;
    const { scene, holder, isAbove } = this;
    const { row, rows } = whole;
    const window = isAbove ? whole : { ...whole, column: row, columns: rows }; // of vectors the rows are tokens
    const across = isAbove ? box.width : Math.min(box.width, box.height); // as wide as a map of tokens
    const width = across / window.columns;
    const shown = scene.keys.short.slice(window.column, window.column + window.columns);
    this.first = window.column;
    this.end = window.column + window.columns;
    const sink = isAbove && figure.sink !== null && contains(window, window.row, figure.sink) ? [SINK] : [];
    const { form, height, every } = arrangement([...shown, ...sink], width);
    this.labelled = new Set(
      scene.keys.full.length > LONG
        ? wordStarts(scene.keys.word, window.column, window.columns, every)
        : shown.map((_, n) => window.column + n).filter((_, n) => n % every === 0),
    );
    const sure = isAbove ? scene.hero.sure : null;
    const foot = layout.header - height - (sure || !isAbove ? SURE : 0) - 4;
    holder.className = `header ${form}`;
    holder.style.cssText = `left:${box.left}px;width:${across}px;top:${box.top - layout.header}px;height:${layout.header}px`;
    const place = (position) => `left:${(position - window.column) * width}px;width:${width}px`;
    const line = (position) => {
      const low = form === "staggered" && (position - window.column) % 2 ? LINE : 0;
      return `${place(position)};top:${foot + low}px;height:${form === "upright" ? height : LINE}px`;
    };
    this.tokens = shown.map((label, n) => {
      const position = window.column + n;
      const style = line(position);
      const axis = this.isOne ? "query" : "key";
      const choose = () => this.scene.change({ [axis]: position });
      const chip = radio(`column-${position}`, choose, { class: "column", style }, span("face", label));
      chip.onpointerenter = () => this.look(position);
      chip.onpointerleave = () => this.look(null);
      return chip;
    });
    const name = this.isOne ? say("tokens_row_shown") : "Keys";
    const group = element("div", { role: "radiogroup", "aria-label": name }, ...this.tokens);
    const bars = sure ? shown.map((_, n) => sureBar(sure, window.column + n, place(window.column + n))) : [];
    const boxes = scene.keys.short.map((_, position) => {
      return { left: (position - window.column) * width, top: foot - 2, width, height: 0 };
    });
    for (const arcs of [this.ghosts, this.arcs]) {
      arcs.highest = Math.max(foot / 1.1, 20);
      arcs.stand(boxes, across, layout.header);
    }
    const title = say("sink_weight_goes");
    const names = sink.map((name) => span("face", name));
    const above = names.map((name) => element("span", { class: "column sinkname", title, style: line(figure.sink) }, name));
    const meaning = say("probability_model_gave");
    const label = sure ? [element("span", { class: "surelabel", title: meaning }, "probability")] : [];
    holder.replaceChildren(this.ghosts.svg, this.arcs.svg, group, ...above, ...bars, ...label);
    const [from, to] = [this.bars?.to ?? [], sure ? sure.after.map((share) => share ?? 0) : []];
    this.bars = { from: from.length === to.length ? from : to, to, parts: bars.map((bar) => bar.querySelector(".now")) };
  }

  /** The bars on their way from what they were to what they are, one after the other from the left. Returns how many
   *  milliseconds that takes. */
  rise(passed) {
    const { from, to, parts } = this.bars ?? { parts: [] };
    parts.forEach((part, n) => {
      const at = this.first + n;
      const share = eased(upTo(passed - n * APART, RISES) / RISES);
      part.style.setProperty("--share", from[at] + (to[at] - from[at]) * share);
    });
    return parts.length * APART + RISES;
  }

  /** Marks the chosen query and key. */
  mark() {
    const { tokens, scene, labelled, first, isOne } = this;
    const { cell, palette } = scene;
    check(tokens, (isOne ? cell.query : cell.key) - first);
    tokens.forEach((token, n) => {
      const position = first + n;
      const axis = isOne && position === cell.query ? "query" : position === cell.key ? "key" : null;
      token.classList.toggle("plate", axis !== null);
      token.style.setProperty("--plate-ink", axis ? palette.ink[axis] : "");
      token.classList.toggle("left-out", axis === null && !labelled.has(position));
      token.ariaLabel = `${scene.keys.full[position]}${saysSure(scene.hero.sure, position)}`;
      token.title = token.ariaLabel;
    });
  }

  drawArcs(query) {
    const { scene, isOne } = this;
    const { derived, before, layer, palette } = scene;
    const hasArcs = isOne && layer.keys <= ARC_TOKENS;
    const of = (run) => {
      if (!run || !hasArcs) return [];
      const isShown = (position) => position >= this.first && position < this.end;
      return arcsOf({ derived: run, layer }, query).filter(({ from, to }) => isShown(from) && isShown(to));
    };
    this.ghosts.draw(of(before), palette);
    this.arcs.draw(of(derived), palette);
  }

  /** Shows the arcs of the token under the pointer, and rings its row. */
  look(position) {
    if (!this.isOne) return;
    this.drawArcs(position ?? this.scene.cell.query);
    this.point(position === null ? null : { query: position });
  }

  /** Lights the arc of the cell under the pointer on the map. */
  light(cell) {
    if (this.holder.hidden) return;
    this.drawArcs(cell ? cell.query : this.scene.cell.query);
    this.arcs.light(cell && { from: cell.query, to: cell.key });
  }
}

/** How sure the model was of a token, with the unchanged run as a ghost. */
function sureBar({ before, after }, position, place) {
  const bar = element("i", { class: "sure", style: place });
  const part = (name, share) => element("b", { class: name, style: `--share:${share ?? 0}` });
  bar.append(part("now", after[position]), ...(before?.[position] >= LEAST ? [part("ghost", before[position])] : []));
  return bar;
}

function saysSure(sure, position) {
  const now = sure?.after[position] ?? null;
  if (now === null) return "";
  const was = sure.before ? `${brief(sure.before[position])} → ` : "";
  return say("probability_after_tokens", { was, now: precise(now) });
}
