// The sentence as chips, shaded by what the chosen query reads, or by what reads the chosen key.

import { inkedColour } from "./colours.js";
import { check, element, radioKeys } from "./elements.js";
import { precise } from "./numbers.js";

const NUMBERED = 16; // up to this many tokens the weight stands under each chip
const SIDES = ["reads", "read-by"];

/** The chips stay while the tokens stay; only their shades, names and rings change. */
export class Sentence {
  constructor(holder) {
    this.name = element("strong");
    this.sides = SIDES.map((side) =>
      element(
        "button",
        { type: "button", role: "radio", "data-testid": `side-${side}` },
        side === "reads" ? "reads" : "is read by",
      ),
    );
    this.switch = element(
      "span",
      { class: "switch", role: "radiogroup", "aria-label": "Direction of looking" },
      ...this.sides,
    );
    this.lines = element("div");
    const rest = "the tokens below, shaded by weight.";
    const head = { class: "sentencehead" };
    holder.replaceChildren(element("p", head, "Token ", this.name, this.switch, rest), this.lines);
  }

  /** `scene.side` is "reads" or "read-by". */
  draw(scene) {
    const reads = scene.side === "reads";
    const [axis, labels] = reads ? ["query", scene.queries] : ["key", scene.keys];
    const position = scene.cell[axis];
    this.name.textContent = `${position} “${labels.short[position]}”`;
    this.name.style.color = scene.palette.ink[axis];
    check(this.sides, SIDES.indexOf(scene.side));
    this.sides.forEach((radio, n) => (radio.onclick = () => scene.setSide(SIDES[n])));
    const choose = (next) => scene.setSide(SIDES[next]);
    radioKeys(this.switch, 2, () => SIDES.indexOf(scene.side), choose);
    this.build(scene, reads, axis);
    this.drawn.forEach((line) => line.draw(scene));
  }

  /** Cross-attention has a line of queries and a line of keys; otherwise one line is both. */
  build(scene, reads, axis) {
    const parts = [scene.queries, scene.keys, reads];
    if (this.parts?.every((part, n) => part === parts[n])) return;
    this.parts = parts;
    const crossed = scene.layer.kind === "cross" || scene.layer.queries !== scene.layer.keys;
    if (!crossed) {
      this.drawn = [new ChipLine(scene, axis, { shaded: true, selectable: true })];
      this.lines.replaceChildren(this.drawn[0].element);
      return;
    }
    this.drawn = ["query", "key"].map((one) => {
      const selectable = one === axis;
      return new ChipLine(scene, one, { shaded: !selectable, selectable });
    });
    this.lines.replaceChildren(
      ...this.drawn.map((line, n) => {
        const name = element("span", { class: "linename" }, n === 0 ? "queries" : "keys");
        return element("div", { class: "line" }, name, line.element);
      }),
    );
  }
}

/** One line of chips. `shaded`: coloured by weight. `selectable`: a click chooses its token. */
class ChipLine {
  constructor(scene, axis, { shaded, selectable }) {
    Object.assign(this, { axis, shaded, selectable });
    this.labels = (axis === "query" ? scene.queries : scene.keys).full;
    const numbered = shaded && this.labels.length <= NUMBERED;
    this.chips = this.labels.map((text, position) => {
      const face = element("span", { class: "face" }, text);
      const number = numbered ? element("span", { class: "number" }) : null;
      const attributes = selectable
        ? { type: "button", role: "radio", "data-testid": `chip-${axis}-${position}` }
        : {};
      const chip = element(selectable ? "button" : "span", attributes, face, number);
      chip.className = "chip";
      return { chip, face, number };
    });
    this.element = element(
      "div",
      {
        class: "chips",
        role: selectable ? "radiogroup" : "group",
        "aria-label": `${axis === "query" ? "Queries" : "Keys"}${shaded ? ", shaded by weight" : ""}`,
        "data-testid": `chips-${axis}`,
      },
      ...this.chips.map(({ chip }) => chip),
    );
  }

  draw(scene) {
    const chosen = this.selectable ? scene.cell[this.axis] : -1;
    const weightOf = weights(scene);
    this.chips.forEach((parts, position) => {
      const weight = this.shaded ? weightOf(position) : null;
      this.shade(parts, scene, position, weight, position === chosen);
    });
    if (!this.selectable) return;
    const choose = (next) => scene.choose({ [this.axis]: next });
    this.chips.forEach(({ chip }, position) => (chip.onclick = () => choose(position)));
    radioKeys(this.element, this.chips.length, () => scene.cell[this.axis], choose);
  }

  shade({ chip, face, number }, scene, position, weight, chosen) {
    const hidden = weight === "masked";
    const scale = scene.palette.scale.weight;
    const colours = typeof weight === "number" ? inkedColour(scale, weight, 0, 1) : null;
    face.className = `face${hidden ? " masked" : ""}${chosen ? " ringed" : ""}`;
    face.style.background = colours?.background ?? "";
    face.style.color = colours?.ink ?? "";
    if (chosen) face.style.setProperty("--ring", scene.palette.ink[this.axis]);
    const says = weight === null ? "" : hidden ? ": not allowed" : `: ${precise(weight)}`;
    chip.title = `${this.axis} ${position} “${this.labels[position]}”${says}`;
    if (number) number.textContent = hidden ? "–" : weight.toFixed(2);
    if (!this.selectable) return;
    chip.ariaLabel = chip.title;
    chip.ariaChecked = String(chosen);
    chip.tabIndex = chosen ? 0 : -1;
  }
}

/** From a chip's position to the weight that shades it; "masked" where the query may not look. */
function weights({ layer, derived, cell, side }) {
  const at =
    side === "reads"
      ? (position) => cell.query * layer.keys + position
      : (position) => position * layer.keys + cell.key;
  return (position) => {
    const weight = derived.weights[at(position)];
    const masked = derived.mask !== null && !derived.mask[at(position)];
    return masked && weight === 0 ? "masked" : weight;
  };
}
