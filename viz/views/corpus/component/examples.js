// Examples of a head: the tokens around its strongest cell, with arcs from the query to what it attends to.

import { Arcs } from "../../../explorer/js/arcs.js";
import { inkedColour } from "../../../explorer/js/colours.js";
import { element, span } from "../../../explorer/js/elements.js";
import { precise } from "../../../explorer/js/numbers.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("examples");

const FAINT = 0.01; // below, an arc could not be seen
const NARROW = 560; // pixels of the list, below which fewer tokens are shown
const NARROWEST = 260; // pixels of a column
const BETWEEN = 60; // pixels from column to column, with the signs for tokens that are left out
const NEAR = 3; // tokens that are shown there on both sides of query and key

export class ExampleList {
  constructor(root) {
    this.root = root;
    this.resize = new ResizeObserver(() => {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.measure());
    });
    this.resize.observe(root);
  }

  receive() {
    const { message } = this;
    this.narrow = this.root.clientWidth < NARROW;
    const drawn = (some) => some.map((one) => this.example(this.narrow ? nearOf(one) : one));
    const listed = (some) => element("ol", { class: "examples" }, ...some.map(({ item }) => item));
    const [best, chance] = [drawn(message.examples), drawn(message.chance)];
    this.drawn = [...best, ...chance];
    this.root.dataset.title = message.title;
    this.root.replaceChildren(element("h3", { "data-testid": "examples-title" }, message.title), listed(best));
    if (chance.length > 0) this.root.append(element("h3", {}, say("chance_beside")), listed(chance));
    this.measure();
  }

  example(one) {
    const { palette } = this;
    const weights = new Map(one.shown.map((at, n) => [at, one.row ? one.row[n] : at === one.key ? one.weight : 0]));
    const chips = one.shown.map((at, n) => {
      const face = span("face", one.tokens[n]);
      const weight = weights.get(at);
      if (weight >= FAINT) {
        const { background, ink } = inkedColour(palette.scale.weight, weight, 0, 1);
        Object.assign(face.style, { background, color: ink });
      }
      if (at === one.query) face.classList.add("query");
      if (at === one.key) face.classList.add("key");
      const isGap = n > 0 && at !== one.shown[n - 1] + 1;
      return { chip: span("chip", face), gap: isGap ? span("gap", "…") : null };
    });
    const arcs = new Arcs(() => {});
    const line = element("div", { class: "tokens" }, arcs.svg);
    for (const { chip, gap } of chips) line.append(...(gap ? [gap, chip] : [chip]));
    const from = one.shown.indexOf(one.query);
    const drawn = one.shown
      .map((at, to) => ({ from, to, weight: weights.get(at), token: at }))
      .filter(({ weight }) => weight >= FAINT);
    const said = `${one.head}: ${one.said}, weight ${precise(one.weight)}${one.scored ? `, ${one.scored}` : ""}`;
    const link = one.href ? element("a", { href: one.href, target: "_blank", rel: "noopener", "aria-label": say("open_explorer", { said }) }, say("open_explorer_2")) : null;
    const left = one.left > 0.005 ? span("left", say("row_weight_goes", { left: precise(one.left) })) : null;
    const words = element("p", { class: "said" }, said, ...(left ? [left] : []), ...(link ? [" ", link] : []));
    return { item: element("li", { "data-testid": "example" }, line, words), arcs, chips: chips.map(({ chip }) => chip), drawn };
  }

  /** The arcs follow the chips, which the browser lays out. */
  measure() {
    const { clientWidth } = this.root;
    if (clientWidth < 60) return;
    if (this.narrow !== clientWidth < NARROW) {
      this.receive();
      return;
    }
    const widest = Math.max(NARROWEST, ...(this.drawn ?? []).map(({ chips }) => lengthOf(chips)));
    this.root.style.setProperty("--columns", Math.max(Math.floor(clientWidth / (widest + BETWEEN)), 1));
    for (const { arcs, chips, drawn } of this.drawn ?? []) {
      arcs.svg.setAttribute("width", 0);
      arcs.measure(chips);
      arcs.draw(drawn, this.palette);
    }
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
  }
}

/** Pixels of the chips in one line. */
function lengthOf(chips) {
  return chips.reduce((sum, chip) => sum + chip.offsetWidth + 1, 0);
}

/** The same example with the tokens beside query and key alone. */
function nearOf(one) {
  const isNear = (at) => Math.min(Math.abs(at - one.query), Math.abs(at - one.key)) <= NEAR;
  const kept = (list) => list.filter((_, n) => isNear(one.shown[n]));
  const hidden = one.row ? one.row.filter((_, n) => !isNear(one.shown[n])).reduce((sum, weight) => sum + weight, 0) : 0;
  const row = one.row && kept(one.row);
  return { ...one, shown: kept(one.shown), tokens: kept(one.tokens), row, left: one.left + hidden };
}
