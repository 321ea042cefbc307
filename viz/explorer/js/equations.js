// Formulas: Python writes the LaTeX; here its slots are filled with numbers and the theme's inks. Whether "=" or "≈"
// stands before a result is decided by evaluating the equation from the digits it shows.

import { latexNumber } from "./numbers.js";

const SLOT = /@(\(?)([a-z]+:)?([a-z_]+\d*)\)?@/g;
const INTEGERS = new Set(["row", "column", "query_position", "key_position", "head", "inner"]);
const WRAPPING = /\\textcolor\{[^{}]*\}|\\color\{[^{}]*\}|\\mathbf|\\begin\{aligned\}|\\end\{aligned\}|\\quad|\\[\\,]|&|\s/g;
const POWER_OF_TEN = /\{\\cdot\}10\^\{(-?\d+)\}/g;
const TOKEN = /\\[a-z]+|\d+(?:\.\d+)?(?:e-?\d+)?|./gy;
const DECIMALS = 4; // of a literal that shows none

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

/** Draws LaTeX, or without KaTeX the same in plain text. */
export function drawEquation(holder, katex, latex, plain) {
  if (!katex) {
    holder.textContent = plain;
    return;
  }
  katex.render(latex, holder, { displayMode: true, throwOnError: false, strict: "ignore" });
}

/** LaTeX with "=" where the digits on the left give those on the right, else "≈". An equation that cannot be
 *  evaluated, for instance with dots on one side, stays as it is. */
function settled(latex) {
  const sides = latex.replace(POWER_OF_TEN, "e$1").replace(WRAPPING, "").split("=").map(readOrNull);
  return latex
    .split("=")
    .map((part, n) => (n && !holds(sides[n - 1], sides[n]) ? `\\approx${part}` : n ? `=${part}` : part))
    .join("");
}

function holds(left, right) {
  if (!left || !right) return true;
  if (left.parts && right.parts && left.kind === right.kind && left.parts.length === right.parts.length) {
    return left.parts.every((part, n) => holds(part, right.parts[n]));
  }
  const apart = Math.abs(left.value - right.value);
  return Number.isNaN(apart) || apart < (right.half ?? 1e-9 * Math.max(1, Math.abs(right.value)));
}

/** The value of an expression and, for a sum or a fraction, its parts; null if it has no value. `half`: half a
 *  unit of a literal's last digit. */
function readOrNull(text) {
  try {
    const reader = new Reader(text.match(TOKEN) ?? []);
    const found = reader.sum();
    return reader.tokens.length ? null : found;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

class Reader {
  constructor(tokens) {
    this.tokens = tokens;
  }

  take(wanted) {
    const token = this.tokens.shift();
    if (token === undefined || (wanted && token !== wanted)) throw new SyntaxError(`${token}`);
    return token;
  }

  sum() {
    const parts = [this.product()];
    while ("+-".includes(this.tokens[0] ?? " ")) {
      const sign = this.take() === "-" ? -1 : 1;
      const { value, half } = this.product();
      parts.push({ value: sign * value, half });
    }
    if (parts.length === 1) return parts[0];
    return { kind: "sum", parts, value: parts.reduce((total, part) => total + part.value, 0) };
  }

  product() {
    let found = this.factor();
    while (this.tokens[0] === "\\cdot") {
      this.take();
      found = { value: found.value * this.factor().value };
    }
    return found;
  }

  factor() {
    const token = this.take();
    switch (token) {
      case "-": {
        const { value, half } = this.factor();
        return { value: -value, half };
      }
      case "{":
      case "(": {
        const inside = this.sum();
        this.take(token === "{" ? "}" : ")");
        return inside;
      }
      case "\\frac": {
        const parts = [this.factor(), this.factor()];
        return { kind: "fraction", parts, value: parts[0].value / parts[1].value };
      }
      case "\\sqrt":
        return { value: Math.sqrt(this.factor().value) };
      case "\\tanh":
        return { value: Math.tanh(this.factor().value) };
      case "e":
        this.take("^");
        return { value: Math.exp(this.factor().value) };
      case "\\infty":
        return { value: Infinity };
      case "\\cdots": // of both sides, or of neither
        return { value: NaN };
    }
    return literal(token);
  }
}

function literal(text) {
  const found = /^\d+(?:\.(\d+))?(?:e(-?\d+))?$/.exec(text);
  if (!found) throw new SyntaxError(text);
  const [, decimals = "", exponent] = found;
  const places = exponent === undefined ? (decimals.length || DECIMALS) : decimals.length - exponent;
  return { value: Number(text), half: 0.5 * 10 ** -places };
}
