// The sentence as chips, shaded by how much the chosen query attends to each token, or each token to the chosen key.

import { ARC_TOKENS, Arcs, arcsOf } from "./arcs.js";
import { inkedColour } from "./colours.js";
import { check, choiceOf, Drawn, element, radio, span } from "./elements.js";
import { precise } from "./numbers.js";

const NUMBERED = 16; // up to this many tokens the weight stands under each chip

/** The chips stay while the tokens stay; only their shades, names and rings change. */
export class Sentence {
  drawn = new Drawn();

  constructor(holder) {
    this.name = element("strong");
    this.head = element("p", { class: "sentencehead" });
    this.lines = element("div");
    holder.replaceChildren(this.head, this.lines);
  }

  /** `scene.side` is "reads" or "read-by". */
  draw(scene) {
    const { side, queries, keys, cell, palette } = scene;
    const axis = side === "reads" ? "query" : "key";
    const labels = side === "reads" ? queries : keys;
    this.name.textContent = `${cell[axis]} “${labels.short[cell[axis]]}”`;
    this.name.style.color = palette.ink[axis];
    if (this.drawn.differs("side", side)) this.drawHead(scene);
    if (this.drawn.differs("chips", queries, keys, side)) this.build(scene, axis);
    this.chips.forEach((line) => line.draw(scene));
    if (this.arcs) this.drawArcs(scene, scene.cell.query);
  }

  addArcs() {
    const { element: chips } = this.chips[0];
    this.arcs = new Arcs();
    chips.classList.add("arced");
    chips.append(this.arcs.svg);
  }

  /** The arcs of a token: the chosen one, or the one under the pointer. */
  drawArcs(scene, token) {
    const { chips } = this.chips[0];
    const draw = (shown) => this.arcs.draw(arcsOf({ ...scene, token: shown }), shown, scene.palette);
    this.arcs.measure(chips.map(({ chip }) => chip));
    draw(token);
    chips.forEach(({ chip }, position) => {
      chip.onpointerenter = () => draw(position);
      chip.onpointerleave = () => draw(token);
    });
  }

  drawHead({ side, setSide }) {
    const options = { reads: "reads", "read-by": "is read by" };
    const sides = { options, chosen: side, choose: setSide, name: "side" };
    const direction = choiceOf("Direction of looking", sides);
    this.head.replaceChildren("Token ", this.name, direction, "the tokens below, shaded by weight.");
  }

  /** Cross-attention has a line of queries and a line of keys; otherwise one line is both. */
  build(scene, axis) {
    const { kind, queries, keys } = scene.layer;
    this.arcs = null;
    if (kind !== "cross" && queries === keys) {
      this.chips = [new ChipLine(scene, axis, { shaded: true, selectable: true })];
      this.lines.replaceChildren(this.chips[0].element);
      if (keys <= ARC_TOKENS) this.addArcs();
      return;
    }
    this.chips = ["query", "key"].map(
      (one) => new ChipLine(scene, one, { shaded: one !== axis, selectable: one === axis }),
    );
    const names = ["queries", "keys"].map((name) => span("linename", name));
    this.lines.replaceChildren(
      ...this.chips.map((line, n) => element("div", { class: "line" }, names[n], line.element)),
    );
  }
}

/** One line of chips. `shaded`: coloured by weight. `selectable`: a click chooses its token. */
class ChipLine {
  constructor(scene, axis, { shaded, selectable }) {
    Object.assign(this, { axis, shaded, selectable });
    this.labels = (axis === "query" ? scene.queries : scene.keys).full;
    const isNumbered = shaded && this.labels.length <= NUMBERED;
    this.chips = this.labels.map((text, position) => {
      const face = span("face", text);
      const number = isNumbered ? span("number") : null;
      const choose = () => scene.choose({ [axis]: position });
      const chip = selectable
        ? radio(`chip-${axis}-${position}`, choose, { class: "chip" }, face, number)
        : span("chip", face, number);
      return { chip, face, number };
    });
    const attributes = {
      class: "chips",
      role: selectable ? "radiogroup" : "group",
      "aria-label": `${axis === "query" ? "Queries" : "Keys"}${shaded ? ", shaded by weight" : ""}`,
      "data-testid": `chips-${axis}`,
    };
    this.element = element("div", attributes, ...this.chips.map(({ chip }) => chip));
  }

  draw(scene) {
    const chosen = this.selectable ? scene.cell[this.axis] : -1;
    this.chips.forEach((parts, position) => {
      const weight = this.shaded ? shownWeight(scene, position) : null;
      this.shade(parts, scene.palette, position, weight, position === chosen);
    });
    if (this.selectable) check(this.chips.map(({ chip }) => chip), chosen);
  }

  shade({ chip, face, number }, palette, position, weight, chosen) {
    const hidden = weight === "masked";
    const isShaded = typeof weight === "number";
    const colours = isShaded ? inkedColour(palette.scale.weight, weight, 0, 1) : null;
    face.className = `face${hidden ? " masked" : ""}${chosen ? " ringed" : ""}`;
    face.style.background = colours?.background ?? "";
    face.style.color = colours?.ink ?? "";
    if (chosen) face.style.setProperty("--ring", palette.ink[this.axis]);
    const says = isShaded ? `: ${precise(weight)}` : hidden ? ": not allowed" : "";
    chip.title = `${this.axis} ${position} “${this.labels[position]}”${says}`;
    if (this.selectable) chip.ariaLabel = chip.title;
    if (number) number.textContent = hidden ? "–" : weight.toFixed(2);
  }
}

/** The weight that shades a chip; "masked" where the query may not look. */
function shownWeight({ layer, derived, cell, side }, position) {
  const [query, key] = side === "reads" ? [cell.query, position] : [position, cell.key];
  const at = query * layer.keys + key;
  const weight = derived.weights[at];
  return derived.hidden?.[at] && weight === 0 ? "masked" : weight;
}
