// Numbers as text: four decimals in equations, two in cells, a true minus sign, never NaN.

const MINUS = "\u2212";

function decimals(value, digits) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return MINUS + "∞";
  if (!Number.isFinite(value)) return "–";
  const smallest = 0.5 * 10 ** -digits;
  if (value !== 0 && Math.abs(value) < smallest) return scientific(value);
  if (Math.abs(value) >= 1e6) return scientific(value);
  return value.toFixed(digits).replace("-", MINUS);
}

function scientific(value) {
  const [mantissa, exponent] = value.toExponential(1).split("e");
  return `${mantissa}e${Number(exponent)}`.replaceAll("-", MINUS);
}

/** For equations and lists: four decimals; a tiny or huge number in powers of ten. */
export function precise(value) {
  return decimals(value, 4);
}

/** For cells and tooltips: two decimals. */
export function brief(value) {
  return decimals(value, 2);
}

/** For the ends of a colour scale. */
export function scaleEnd(value) {
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Math.abs(value) < 0.01 ? scientific(value) : value.toFixed(digits).replace("-", MINUS);
}

/** A largest difference, such as "3e−7"; "0" if there is none. It is a bound, so it is rounded up. */
export function magnitude(value) {
  if (value === 0) return "0";
  const [mantissa, exponent] = value.toExponential().split("e");
  const up = Number(`${Math.ceil(Number(mantissa))}e${exponent}`);
  return up.toExponential(0).replace("e-", "e" + MINUS).replace("e+", "e");
}

/** The same four decimals as LaTeX. */
export function latexNumber(value) {
  if (value === Infinity) return "\\infty";
  if (value === -Infinity) return "-\\infty";
  const text = precise(value).replaceAll(MINUS, "-");
  const [mantissa, exponent] = text.split("e");
  return exponent === undefined ? mantissa : `${mantissa}{\\cdot}10^{${exponent}}`;
}
