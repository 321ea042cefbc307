// Formulas: Python writes the LaTeX; here its slots are filled with numbers and the theme's inks.

import { settled } from "./equality.js";
import { latexNumber } from "./numbers.js";

const SLOT = /@(\(?)([a-z]+:)?([a-z_]+\d*)\)?@/g;

/** A template with its slots filled. "@(name)@" puts a negative number in brackets; "=" becomes "≈" where the
 *  printed digits do not give the result exactly. */
export function filledTemplate(template, values, inks) {
  const filled = template.replace(SLOT, (slot, bracket, kind, name) => {
    if (kind === "ink:") return inks[name];
    const value = values[name];
    const text = Number.isInteger(value) && INTEGERS.has(name) ? String(value) : latexNumber(value);
    return bracket && value < 0 ? `(${text})` : text;
  });
  return settled(filled);
}

const INTEGERS = new Set(["row", "column", "query_position", "key_position"]);

/** Draws LaTeX, or without KaTeX the same in plain text. */
export function drawEquation(holder, katex, latex, plain) {
  if (!katex) {
    holder.textContent = plain;
    return;
  }
  katex.render(latex, holder, { displayMode: true, throwOnError: false, strict: "ignore" });
}
