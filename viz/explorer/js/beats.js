// The six beats in which one row of scores becomes weights and an output: their numbers and their words.

import { exponentialsOf, extent, rowOf, weightsSetIn } from "./derive.js";
import { precise } from "./numbers.js";

export const BEATS = 6;
export const [MEETS, HATCHED, MIXES] = [0, 2, 5]; // q meets the keys; the mask falls; the values flow

/** What each beat shows of a row: a title, a sentence, and of each key its number and its bar. */
export function beatsOf(derived, layer, query) {
  const row = (matrix) => rowOf(matrix, query, layer.keys);
  const [scores, scaled, masked] = [derived.scores, derived.scaled, derived.masked].map(row);
  const { exponentials, sum, largest } = exponentialsOf(masked);
  const [weights, applied] = [derived.weights, derived.applied].map(row);
  const unit = Math.max(extent(scores), extent(scaled), Number.MIN_VALUE);
  const along = (numbers) => Array.from(numbers, (value) => (Number.isFinite(value) ? value / unit : 0));
  const shares = (numbers) => Array.from(numbers, (value) => value / Math.max(extent(numbers), 1));
  const beat = (title, says, numbers, quantity, bars) => ({ title, says, numbers, quantity, bars });
  const score = (title, says, numbers) => beat(title, says, numbers, "score", along(numbers));
  const share = (title, says, numbers) => beat(title, says, numbers, "weight", shares(numbers));
  return [
    score("Query meets keys", "Each score is the dot product of the query with one key.", scores),
    score("Scale", `Each score is multiplied by ${precise(layer.scale)}.`, scaled),
    score("Mask", maskInWords(derived, layer, query), masked),
    share("Exponentials", exponentialsInWords(sum, largest), exponentials),
    share("Divide by the sum", divisionInWords(sum, weightsSetIn(layer, derived.head, query)), weights),
    { ...share("Mix the values", mixtureInWords(layer, sum), applied), quantity: "value" },
  ];
}

function maskInWords({ hidden }, layer, query) {
  if (!hidden || !rowOf(hidden, query, layer.keys).includes(1)) return "No key is masked in this row.";
  if (layer.mask_value === -Infinity) return "The score of each masked key becomes −∞.";
  return `The score of each masked key becomes ${layer.mask_value}.`;
}

const EMPTY = "Every key of this row is masked: ";

function exponentialsInWords(sum, largest) {
  if (sum === 0) return `${EMPTY}e to the power of −∞ is 0.`;
  const less = `e to the power of each score, less the largest, ${precise(largest)}`;
  return `${less}. They sum to ${precise(sum)}.`;
}

function divisionInWords(sum, given) {
  if (given.size) return "Weights of this row were set by hand; the others share what is left to 1.";
  if (sum === 0) return `${EMPTY}there is nothing to divide, and all weights are 0.`;
  return `Each is divided by ${precise(sum)}: these are the weights, and they sum to 1.`;
}

function mixtureInWords(layer, sum) {
  if (sum === 0) return `${EMPTY}no value goes into the output.`;
  if (!layer.dropped) return "Each value vector, times its weight, goes into the output.";
  const dropout = "Dropout has set some weights to 0 and enlarged the others.";
  return `${dropout} Each value vector, times what is left, goes into the output.`;
}
