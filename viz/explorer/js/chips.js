// One line of chips: tokens, or words, that can be shaded by weight and chosen.

import { inkedColour } from "./colours.js";
import { check, element, radio, span } from "./elements.js";
import { meanWeight } from "./groups.js";
import { precise } from "./numbers.js";

const NUMBERED = 16; // up to this many tokens the weight stands under each chip

export class ChipLine {
  /** `groups`: the positions of each chip. `shaded`: coloured by weight. `selectable`: a click chooses a chip, or
   *  where several are chosen adds or removes it. */
  constructor(scene, axis, { groups, shaded, selectable }) {
    Object.assign(this, { axis, groups, shaded, selectable, isSeveral: scene.several !== null });
    this.labels = (axis === "query" ? scene.queries : scene.keys).full;
    const isNumbered = shaded && groups.length <= NUMBERED;
    this.chips = groups.map((group, number) => {
      const face = span("face", this.text(group));
      const amount = isNumbered ? span("number") : null;
      if (!selectable) return { chip: span("chip", face, amount), face, amount };
      const chip = radio(`chip-${axis}-${group[0]}`, () => this.choose(number), { class: "chip" }, face, amount);
      if (this.isSeveral) chip.role = "checkbox";
      return { chip, face, amount };
    });
    const attributes = {
      class: "chips",
      role: selectable && !this.isSeveral ? "radiogroup" : "group",
      "aria-label": `${axis === "query" ? "Queries" : "Keys"}${shaded ? ", shaded by weight" : ""}`,
      "data-testid": `chips-${axis}`,
    };
    this.element = element("div", attributes, ...this.chips.map(({ chip }) => chip));
  }

  text(group) {
    return group.map((position) => this.labels[position]).join("");
  }

  choose(number) {
    const [position] = this.groups[number];
    const { several, change } = this.scene;
    if (!this.isSeveral) return change({ [this.axis]: position });
    const others = several.filter((one) => !this.groups[number].includes(one));
    const isAdded = others.length === several.length;
    const now = isAdded ? [...several, ...this.groups[number]] : others;
    if (!now.length) return; // one stays
    change({ several: now.sort((a, b) => a - b), query: isAdded ? position : now[0] });
  }

  draw(scene) {
    this.scene = scene;
    const chosen = this.selectable ? scene.chosen[this.axis] : [];
    this.chips.forEach((parts, number) => {
      const weight = this.shaded ? shownWeight(scene, number) : null;
      this.shade(parts, scene.palette, this.groups[number], weight, chosen.includes(number));
    });
    const radios = this.chips.map(({ chip }) => chip);
    if (this.isSeveral) radios.forEach((chip, n) => (chip.ariaChecked = String(chosen.includes(n))));
    else if (this.selectable) check(radios, chosen[0]);
  }

  shade({ chip, face, amount }, palette, group, weight, chosen) {
    const word = WORDS[weight];
    const isShaded = typeof weight === "number";
    const colours = isShaded ? inkedColour(palette.scale.weight, weight, 0, 1) : null;
    face.className = `face${word ? ` ${weight}` : ""}${chosen ? " ringed" : ""}`;
    face.style.background = colours?.background ?? "";
    face.style.color = colours?.ink ?? "";
    if (chosen) face.style.setProperty("--ring", palette.ink[this.axis]);
    const says = isShaded ? `: ${precise(weight)}` : word ? `: ${word}` : "";
    chip.title = `${this.axis} ${group[0]} “${this.text(group)}”${says}`;
    if (this.selectable) chip.ariaLabel = chip.title;
    if (amount) amount.textContent = word ? "–" : weight.toFixed(2);
  }
}

const WORDS = { masked: "masked", leftout: "hidden here" };

/** The weight that shades a chip; "masked" where no query may attend, "leftout" where the first token is hidden. */
function shownWeight({ layer, derived, side, groups, chosen, withoutFirst }, number) {
  const positions = (axis, numbers) => numbers.flatMap((one) => groups[axis][one]);
  const isRead = side === "reads";
  const queries = isRead ? positions("query", chosen.query) : groups.query[number];
  const keys = isRead ? groups.key[number] : positions("key", chosen.key);
  if (withoutFirst && keys.includes(0)) return "leftout";
  const weight = meanWeight(derived.weights, layer.keys, queries, keys);
  const isHidden = (query) => keys.every((key) => derived.hidden?.[query * layer.keys + key]);
  return queries.every(isHidden) && weight === 0 ? "masked" : weight;
}
