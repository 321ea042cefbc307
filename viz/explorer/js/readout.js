// One cell of a picture in a line that can be copied.

import { button, element } from "./elements.js";
import { precise } from "./numbers.js";

const TOLD = 1500; // milliseconds for which the button says that the line was copied

/** From the score to the weight: “L1H7: ·Tom → ·Hill, score 42.52 ÷ √32 = 7.52, weight 0.89”. */
export function readoutOf({ layer, derived, cell, queries, keys, written }, headName) {
  const at = cell.query * layer.keys + cell.key;
  const masked = derived.hidden?.[at];
  const number = (step) => written(derived.row(step, cell.query)[cell.key]);
  const parts = [
    `${headName}: ${queries.short[cell.query]} → ${keys.short[cell.key]}`,
    scoreAndScaled(layer, number("scores"), number("scaled")),
    ...layer.later.map(({ name, readout }) => `${readout} ${number(name)}`),
    masked ? `masked: ${number("masked")}` : null,
    `weight ${number("weights")}`,
    derived.sink === null ? null : `sink ${written(derived.sinkWeights[cell.query])}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** An equation, where the printed numbers are one; else both numbers by their names. */
function scoreAndScaled(layer, score, scaled) {
  const number = (text) => Number(text.replace("\u2212", "-"));
  const digits = scaled.split(".")[1]?.length ?? 0;
  const factor = factorOf(layer);
  const isPlain = !/[e∞–]/.test(score + scaled + factor);
  const by = factor.includes("√") ? 1 / Math.sqrt(layer.width) : number(factor.slice(2));
  const isEquation = isPlain && (number(score) * by).toFixed(digits) === number(scaled).toFixed(digits);
  return isEquation ? `score ${score} ${factor} = ${scaled}` : `score ${score}, scaled (${factor}) ${scaled}`;
}

/** What makes the scaled score. */
export function factorOf({ scale, width }) {
  if (scale === 1) return "× 1";
  return Math.abs(scale * Math.sqrt(width) - 1) <= 1e-6 ? `÷ √${width}` : `× ${precise(scale)}`;
}

export class Readout {
  /** Beside it what can be done with the cell: `how` is the button that opens how its number is computed, `ways` holds
   *  the ways on from it. */
  constructor(holder) {
    this.line = element("output", { "data-testid": "readout" });
    this.button = element("button", { type: "button", onclick: () => this.copy() }, "Copy");
    this.how = button("how", null, { "aria-expanded": "false", hidden: true });
    this.ways = element("span", { class: "ways" });
    holder.replaceChildren(this.line, this.button, this.how, this.ways);
  }

  /** Its parts do not break. */
  say(words) {
    if (this.line.textContent === words) return;
    const parts = words.split(/(?<=, )/);
    this.line.replaceChildren(...parts.map((part) => element("span", {}, part)));
  }

  async copy() {
    if (await copied(this.button, this.line.textContent)) return;
    getSelection().selectAllChildren(this.line); // where no clipboard is allowed, it can be copied by hand
    this.button.textContent = "Selected";
  }
}

/** Copies a line; the button says so for a moment. Whether that was allowed. */
export async function copied(button, line) {
  const name = (button.dataset.name ??= button.textContent);
  const isAllowed = await navigator.clipboard?.writeText(line).then(() => true, () => false);
  button.textContent = isAllowed ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = name), TOLD);
  return Boolean(isAllowed);
}
