// Where the colours of a picture end: at its largest number, or early where a few large ones would leave all others
// pale. As `colour_end` of viz/figures/vectors.py.

import { extent } from "./derive.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("colour_end");

const PERCENTILE = 0.98; // a whole column in fifty may be large
const OUTLIERS = 2; // the colours end early if the largest number is so many times the percentile
const [SIZE, DROPPED] = [0x7fffffff, 16]; // of a float: its bits without the sign; those that are left out of a count

/** The end of a scale for these numbers. */
export function colourEnd(values) {
  const largest = extent(values);
  const usual = percentile(values);
  return 0 < usual && usual * OUTLIERS < largest ? usual : largest;
}

/** How many numbers lie beyond the end of a scale. */
export function beyond(values, end) {
  let count = 0;
  for (let n = 0; n < values.length; n++) if (Math.abs(values[n]) > end) count++;
  return count;
}

/** How many of a panel's numbers lie beyond the end of its colours; null if none does. */
export function beyondInWords({ beyond, values, count = values.length }) {
  if (!beyond) return null;
  const [some, all] = [beyond, count].map((whole) => whole.toLocaleString("en"));
  return say("numbers_lie_beyond", { some, all });
}

/** The percentile of the sizes of 32-bit floats, rounded up by less than 1 %. The bits of positive floats are in the
 *  order of the numbers, so one pass counts them by their first bits, where sorting would take long. */
function percentile(values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const counts = new Uint32Array((SIZE >>> DROPPED) + 1);
  for (let n = 0; n < bits.length; n++) counts[(bits[n] & SIZE) >>> DROPPED]++;
  let left = Math.ceil(values.length * PERCENTILE);
  const first = counts.findIndex((count) => (left -= count) <= 0);
  return first > 0 ? new Float32Array(Uint32Array.of((first + 1) << DROPPED).buffer)[0] : 0;
}
