// The sentence as chips, shaded by what the chosen query reads, or by what reads the chosen key.

import { inkedColour } from "./colours.js";
import { check, element, radioKeys } from "./elements.js";
import { precise } from "./numbers.js";

const NUMBERED = 16; // up to this many tokens the weight stands under each chip
const SIDES = [
  ["reads", "reads"],
  ["read-by", "is read by"],
];

/** Draws the switch and the chips. `scene.side` is "reads" or "read-by". */
export function drawSentence(holder, scene) {
  const reads = scene.side === "reads";
  const crossed = scene.layer.kind === "cross" || scene.layer.queries !== scene.layer.keys;
  const lines = crossed
    ? [chipLine(scene, "query", !reads, reads), chipLine(scene, "key", reads, !reads)]
    : [chipLine(scene, reads ? "query" : "key", true, true)];
  const focused = holder.getRootNode().activeElement;
  const address = focused && holder.contains(focused) ? focused.dataset.testid : null;
  holder.replaceChildren(sentenceHead(scene, reads), ...lines);
  if (address) holder.querySelector(`[data-testid="${address}"]`)?.focus();
}

function sentenceHead(scene, reads) {
  const { cell } = scene;
  const labels = reads ? scene.queries : scene.keys;
  const position = reads ? cell.query : cell.key;
  const kind = reads ? "query" : "key";
  const name = element(
    "strong",
    { style: `color:${scene.palette.ink[kind]}` },
    `${position} “${labels.short[position]}”`,
  );
  const radios = SIDES.map(([side, text]) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        "data-testid": `side-${side}`,
        onclick: () => scene.setSide(side),
      },
      text,
    ),
  );
  const chosen = reads ? 0 : 1;
  check(radios, chosen);
  const attributes = { class: "switch", role: "radiogroup", "aria-label": "Direction of looking" };
  const group = element("span", attributes, ...radios);
  radioKeys(group, 2, () => chosen, (next) => scene.setSide(SIDES[next][0]));
  const rest = "the tokens below, shaded by weight.";
  return element("p", { class: "sentencehead" }, "Token ", name, " ", group, " ", rest);
}

/** One line of chips. `shaded`: coloured by weights. `chosen`: a click chooses its token. */
function chipLine(scene, axis, shaded, selectable) {
  const labels = axis === "query" ? scene.queries : scene.keys;
  const selected = axis === "query" ? scene.cell.query : scene.cell.key;
  const weightOf = weights(scene);
  const numbered = shaded && labels.full.length <= NUMBERED;
  const chips = labels.full.map((text, position) =>
    chip(scene, {
      axis,
      text,
      position,
      weight: shaded ? weightOf(position) : null,
      numbered,
      chosen: selectable && position === selected,
      selectable,
    }),
  );
  const line = element(
    "div",
    {
      class: "chips",
      role: selectable ? "radiogroup" : "group",
      "aria-label": `${axis === "query" ? "Queries" : "Keys"}${shaded ? ", shaded by weight" : ""}`,
      "data-testid": `chips-${axis}`,
    },
    ...chips,
  );
  if (selectable) {
    const choose = (next) => scene.choose({ [axis]: next });
    radioKeys(line, chips.length, () => selected, choose);
  }
  return line;
}

/** The weight a chip is shaded by, from its position; null where the mask forbids to look. */
function weights({ layer, derived, cell, side }) {
  const at =
    side === "reads"
      ? (position) => cell.query * layer.keys + position
      : (position) => position * layer.keys + cell.key;
  return (position) => {
    const masked = derived.mask !== null && !derived.mask[at(position)];
    const weight = derived.weights[at(position)];
    return masked && weight === 0 ? "masked" : weight;
  };
}

function chip(scene, { axis, text, position, weight, numbered, chosen, selectable }) {
  const hidden = weight === "masked";
  const says = weight === null ? "" : hidden ? "not allowed" : precise(weight);
  const scale = scene.palette.scale.weight;
  const colours = typeof weight === "number" ? inkedColour(scale, weight, 0, 1) : null;
  const style = [
    colours ? `background:${colours.background};color:${colours.ink}` : "",
    chosen ? `--ring:${scene.palette.ink[axis]}` : "",
  ].join(";");
  const face = element(
    "span",
    { class: `face${hidden ? " masked" : ""}${chosen ? " ringed" : ""}`, style },
    text,
  );
  const number = numbered
    ? element("span", { class: "number" }, hidden ? "–" : weight.toFixed(2))
    : null;
  const name = `${axis} ${position} “${text}”${says ? `: ${says}` : ""}`;
  if (!selectable) return element("span", { class: "chip", title: name }, face, number);
  return element(
    "button",
    {
      type: "button",
      class: "chip",
      role: "radio",
      title: name,
      "aria-label": name,
      "aria-checked": String(chosen),
      tabindex: chosen ? "0" : "-1",
      "data-testid": `chip-${axis}-${position}`,
      onclick: () => scene.choose({ [axis]: position }),
    },
    face,
    number,
  );
}
