// The equations beside the picture, worked again from the digits that they print.

const DRESS = /\\textcolor\{[^{}]*\}|\\color\{[^{}]*\}|\\mathbf|\\(?:begin|end)\{aligned\}|\\quad|\\\\|\\,|&|\s/g;
const LITERAL = /^[{(]*-?\d+(?:\.(\d+))?(?:e(-?\d+))?[})]*$/;
const NUMBERS_ALONE = /^(?:\\(?:frac|sqrt|cdot|infty)|e\^|[\de.(){}+-])+$/;
const NAMES = { sqrt: Math.sqrt, exp: Math.exp, inf: Infinity, frac: (a) => (b) => a / b };

/** The equations that can be worked, each with its sign and whether the digits on the left give those on the right.
 *  Fractions and sums of as many terms are worked part by part. */
export function claims(latex) {
  const plain = latex.replace(/\{\\cdot\}10\^\{(-?\d+)\}/g, "e$1").replace(DRESS, "");
  const pieces = plain.split(/(=|\\approx)/);
  const found = [];
  for (let at = 0; at + 2 < pieces.length; at += 2) {
    const [left, sign, right] = pieces.slice(at, at + 3);
    const pairs = parts(left, right).filter((pair) => !pair.join("").includes("dots"));
    if (!pairs.every(([one, other]) => value(one) !== null && LITERAL.test(other))) continue;
    found.push({ line: `${left} ${sign} ${right}`, sign, holds: pairs.every((pair) => holds(...pair)) });
  }
  return found;
}

function parts(left, right) {
  const over = [left, right].map((side) => /^\\frac\{(.*)\}\{(.*)\}$/.exec(side));
  if (over.every(Boolean)) return [1, 2].map((part) => over.map((side) => side[part]));
  const terms = [left, right].map((side) => side.split("+"));
  return terms[0].length === terms[1].length ? terms[0].map((term, n) => [term, terms[1][n]]) : [[left, right]];
}

/** What an expression amounts to; null where it holds something that is no number. */
function value(text) {
  if (!NUMBERS_ALONE.test(text)) return null;
  const code = text.replaceAll("{", "(").replaceAll("}", ")").replaceAll("e^", "exp").replaceAll("\\infty", "inf");
  return new Function(...Object.keys(NAMES), `return ${code.replaceAll("\\cdot", "*").replaceAll("\\", "")}`)(...Object.values(NAMES));
}

/** Whether the left side gives the right one to its last digit. */
function holds(left, right) {
  const [, decimals, exponent] = LITERAL.exec(right);
  const half = 0.5 * 10 ** -((decimals ?? "0000").length - Number(exponent ?? 0));
  return Math.abs(value(left) - value(right)) < half;
}
