// Numbers as text: four decimals in equations, two in cells, no digit beyond those of a 32-bit float, a true minus
// sign, never NaN.

const MINUS = "\u2212";
const DIGITS = 7; // of a 32-bit float, at least

function decimals(value, digits) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return MINUS + "∞";
  if (!Number.isFinite(value)) return "–";
  const smallest = 0.5 * 10 ** -digits;
  if (value !== 0 && Math.abs(value) < smallest) return powerOfTen(value);
  if (Math.abs(value) >= 1e6) return powerOfTen(value);
  const certain = Math.min(digits, DIGITS - Math.trunc(Math.abs(value)).toString().length);
  return value.toFixed(certain).replace("-", MINUS);
}

/** So many significant digits and a power of ten: "4.2e−8", "1e9". As in viz/notation/numbers.py. */
function powerOfTen(value, digits = 2) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  return `${mantissa.replace(/\.0$/, "")}e${Number(exponent)}`.replaceAll("-", MINUS);
}

/** For equations and lists: four decimals; a tiny or huge number in powers of ten. */
export function precise(value) {
  return decimals(value, 4);
}

/** A number that was set by hand, as it was given: "0", "−5000", "−1e9". */
export function given(value) {
  return Math.abs(value) >= 1e6 ? precise(value) : String(value).replace("-", MINUS);
}

/** For tooltips: two decimals. */
export function brief(value) {
  return decimals(value, 2);
}

/** In cells and in simple detail: two decimals, and "<0.01" where they would show a 0 that it is not. */
export function simple(value) {
  if (value === 0 || Math.abs(value) >= 0.005) return brief(value);
  return value > 0 ? "<0.01" : `>${MINUS}0.01`;
}

/** For the ends of a colour scale. */
export function scaleEnd(value) {
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Math.abs(value) < 0.01 ? powerOfTen(value) : value.toFixed(digits).replace("-", MINUS);
}

/** A largest difference, such as "3e−7"; "0" if there is none. It is a bound, so it is rounded up. */
export function magnitude(value) {
  if (value === 0) return "0";
  const [mantissa, exponent] = value.toExponential().split("e");
  const up = Number(`${Math.ceil(Number(mantissa))}e${exponent}`);
  return powerOfTen(up, 1);
}

/** The same four decimals as LaTeX. */
export function latexNumber(value) {
  if (value === Infinity) return "\\infty";
  if (value === -Infinity) return "-\\infty";
  const text = precise(value).replaceAll(MINUS, "-");
  const [mantissa, exponent] = text.split("e");
  return exponent === undefined ? mantissa : `${mantissa}{\\cdot}10^{${exponent}}`;
}
