// The sentence as chips, shaded by how much the chosen query attends to each token, or each token to the chosen key.
// A short one has arcs too.

import { ARC_TOKENS, Arcs, arcsOf } from "./arcs.js";
import { ChipLine } from "./chips.js";
import { choiceOf, Drawn, element, span, toggle } from "./elements.js";
import { groupAt, groupsOf, isOneText } from "./groups.js";
import { precise } from "./numbers.js";

/** The chips stay while the tokens stay; only their shades, names and rings change. */
export class Sentence {
  drawn = new Drawn();

  /** `point` takes the cell { query, key } under the pointer, a whole row { query }, or null. */
  constructor(holder, point) {
    this.point = point;
    this.name = element("strong");
    this.head = element("p", { class: "sentencehead" });
    this.lines = element("div");
    this.note = element("p", { class: "arcnote" });
    holder.replaceChildren(this.head, this.lines, this.note);
  }

  /** `scene.side` is "reads" or "read-by", `scene.unit` "token" or "word"; `scene.several` are the chosen queries,
   *  null where it is one. */
  draw(scene) {
    const { side, unit, several, withoutFirst, queries, keys, layer, available } = scene;
    const axis = side === "reads" ? "query" : "key";
    const hasWords = [queries, keys].some(({ word }) => word.length > new Set(word).size);
    const isOne = isOneText(layer);
    this.groups = { query: groupsOf(queries.word, unit), key: groupsOf(keys.word, unit) };
    const facts = [side, unit, several !== null, withoutFirst, hasWords];
    if (this.drawn.differs("head", ...facts)) this.drawHead(scene, hasWords);
    this.drawName(scene, axis);
    if (this.drawn.differs("chips", queries, keys, isOne, side, unit, several !== null)) {
      this.build(scene, axis, isOne);
      this.drawn.differs("boxes", null);
    }
    const chosen = this.chosen(scene);
    this.chips.forEach((line) => line.draw({ ...scene, groups: this.groups, chosen }));
    this.note.textContent = this.noteOf(scene);
    Object.assign(this, { scene, axis });
    if (!this.arcs) return;
    if (this.drawn.differs("boxes", available)) {
      this.arcs.measure(this.chips[0].chips.map(({ chip }) => chip));
    }
    this.drawArcs(this.ringed());
  }

  /** The numbers of the chosen groups, of queries and of keys. */
  chosen({ cell, side, several }) {
    const { query, key } = this.groups;
    const asking = side === "reads" ? (several ?? [cell.query]) : [cell.query];
    const distinct = new Set(asking.map((position) => groupAt(query, position)));
    return { query: [...distinct].sort((a, b) => a - b), key: [groupAt(key, cell.key)] };
  }

  drawName(scene, axis) {
    const { several, side, cell, palette } = scene;
    const labels = side === "reads" ? scene.queries : scene.keys;
    const group = this.groups[axis][groupAt(this.groups[axis], cell[axis])];
    const named = group.map((position) => labels.short[position]).join("");
    const isMean = several?.length > 1 && side === "reads";
    this.name.textContent = isMean ? `${several.length} tokens, their mean` : `${group[0]} “${named}”`;
    this.name.style.color = palette.ink[axis];
  }

  drawHead(scene, hasWords) {
    const { side, unit, several, withoutFirst, change } = scene;
    const here = () => this.scene.cell.query;
    const choice = (name, label, options, chosen, choose) =>
      choiceOf(label, { options, chosen, choose, name });
    const sides = { reads: "attends to", "read-by": "is attended to by" };
    const units = { token: "tokens", word: "whole words" };
    const picks = (isSeveral) => change({ several: isSeveral ? [here()] : null });
    const parts = [
      several ? null : "Token ",
      this.name,
      choice("side", "Direction", sides, side, (chosen) => change({ side: chosen, several: null })),
      hasWords ? choice("unit", "Unit", units, unit, (chosen) => change({ unit: chosen })) : null,
      side === "reads" ? toggle("several", "Choose several tokens", several !== null, picks) : null,
      toggle("hide-first", "Hide the first token", withoutFirst, (on) => change({ withoutFirst: on })),
    ];
    this.head.replaceChildren(...parts.filter((part) => part !== null));
  }

  /** What the picture leaves out, and how to read it. */
  noteOf(scene) {
    const { withoutFirst, unit, side } = scene;
    const arcs =
      "An arc is as wide as its weight. Above: what the token attends to. Below: what attends to it.";
    const left = "The first token is hidden here, so what is shown of a row no longer sums to 1.";
    const words = "Weights on the tokens of one word are added up; where the chosen word has several tokens, the mean of their rows is shown.";
    const shades = `The tokens are shaded by weight${side === "reads" ? "" : ": what each gives to the chosen one"}.`;
    const notes = [this.arcs ? arcs : shades, unit === "word" && words, withoutFirst && left, sinkNote(scene)];
    return notes.filter(Boolean).join(" ");
  }

  /** Cross-attention has a line of queries and a line of keys; otherwise one line is both. */
  build(scene, axis, isOne) {
    this.arcs = null;
    if (isOne) {
      const only = new ChipLine(scene, axis, { shaded: true, selectable: true, groups: this.groups[axis] });
      this.chips = [only];
      this.lines.replaceChildren(only.element);
      if (scene.layer.keys <= ARC_TOKENS) this.addArcs();
      return;
    }
    this.chips = ["query", "key"].map((one) => {
      const part = { shaded: one !== axis, selectable: one === axis, groups: this.groups[one] };
      return new ChipLine(scene, one, part);
    });
    const names = ["queries", "keys"].map((name) => span("linename", name));
    this.lines.replaceChildren(
      ...this.chips.map((line, n) => element("div", { class: "line" }, names[n], line.element)),
    );
  }

  addArcs() {
    const [{ element: holder, chips }] = this.chips;
    this.arcs = new Arcs((arc) => this.pointAt(arc));
    holder.classList.add("arced");
    holder.append(this.arcs.svg);
    chips.forEach(({ chip }, group) => {
      chip.onpointerenter = () => this.look(group);
      chip.onpointerleave = () => this.look(null);
    });
  }

  /** The numbers of the ringed groups of the one line: the chosen queries, or the chosen key. */
  ringed() {
    return this.chosen(this.scene)[this.axis];
  }

  drawArcs(chosen) {
    const { groups, scene } = this;
    this.arcs.draw(arcsOf({ ...scene, groups: groups.query, chosen }), groups.query, scene.palette);
  }

  /** Shows the arcs of the group under the pointer, and rings its row. */
  look(group) {
    this.drawArcs(group === null ? this.ringed() : [group]);
    this.point(group === null ? null : { [this.axis]: this.groups[this.axis][group][0] });
  }

  /** Lights an arc, and rings its cell. */
  pointAt(arc) {
    this.arcs.light(arc);
    const cell = arc && { query: this.groups.query[arc.from][0], key: this.groups.key[arc.to][0] };
    this.point(cell);
  }

  /** Shows the arcs of the row under the pointer, and lights that of the cell; null: back to the chosen ones. */
  light(cell) {
    if (!this.arcs) return;
    const { query, key } = this.groups;
    const pair = cell && { from: groupAt(query, cell.query), to: groupAt(key, cell.key) };
    const ringed = this.ringed();
    const isShown = !pair || ringed.includes(this.axis === "query" ? pair.from : pair.to);
    this.drawArcs(isShown ? ringed : [pair.from]);
    this.arcs.light(pair);
  }
}

/** What a sink takes of the chosen row, where the head has one. */
function sinkNote({ derived, cell, side, several }) {
  if (derived.sink === null || side !== "reads" || several !== null) return "";
  const weight = derived.sinkWeights[cell.query];
  return `The sink of this head takes ${precise(weight)} of this row; its arcs sum to ${precise(1 - weight)}.`;
}
