// Formulas: LaTeX written in Python, whose slots are filled here with numbers and the theme's inks.

import { settled } from "./equality.js";
import { latexNumber } from "./numbers.js";

const SLOT = /@(\(?)([a-z]+:)?([a-z_]+\d*)\)?@/g;

/** A template with its slots filled; "@(name)@" puts a negative number in brackets, and "=" stands where the
 *  digits that show give the result. */
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

/** Draws LaTeX; without KaTeX, the plain text that says the same. */
export function drawEquation(holder, katex, latex, plain) {
  if (!katex) {
    holder.textContent = plain;
    return;
  }
  katex.render(latex, holder, { displayMode: true, throwOnError: false, strict: "ignore" });
}
