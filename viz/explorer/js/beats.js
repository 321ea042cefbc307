// The beats in which one row of scores becomes weights and an output: their numbers and their words. Six, and one
// more each for a cap and a bias.

import { exponentialsOf, extent, rowOf, weightsSetIn } from "./derive.js";
import { precise } from "./numbers.js";

/** What each beat shows of a row: a title, a sentence, of each key its number and its bar, and what moves: the query
 *  "meets" the keys, the mask "falls", the values are "mixed"; else "bars". */
export function beatsOf(derived, layer, query) {
  const row = (matrix) => rowOf(matrix, query, layer.keys);
  const [scores, scaled, masked] = [derived.scores, derived.scaled, derived.masked].map(row);
  const { exponentials, sum, largest } = exponentialsOf(masked, derived.sink);
  const [weights, applied] = [derived.weights, derived.applied].map(row);
  const biased = row(derived.biased);
  const unit = Math.max(...[scores, scaled, biased].map(extent), Number.MIN_VALUE);
  const along = (numbers) => Array.from(numbers, (value) => (Number.isFinite(value) ? value / unit : 0));
  const shares = (numbers) => Array.from(numbers, (value) => value / Math.max(extent(numbers), 1));
  const beat = (title, says, numbers, quantity, bars) => ({ title, says, numbers, quantity, bars, moves: "bars" });
  const score = (title, says, numbers) => beat(title, says, numbers, "score", along(numbers));
  const share = (title, says, numbers) => beat(title, says, numbers, "weight", shares(numbers));
  return [
    { ...score("Query meets keys", "Each score is the dot product of the query with one key.", scores), moves: "meets" },
    score("Scale", `Each score is multiplied by ${precise(layer.scale)}.`, scaled),
    ...(layer.cap === null ? [] : [score("Cap", capInWords(layer), row(derived.capped))]),
    ...(layer.bias === null ? [] : [score("Bias", "Each score gets the bias of its key's place.", biased)]),
    { ...score("Mask", maskInWords(derived, layer, query), masked), moves: "falls" },
    share("Exponentials", exponentialsInWords(sum, largest, derived.sink), exponentials),
    share("Divide by the sum", divisionInWords(sum, derived, weightsSetIn(layer, derived.head, query), query), weights),
    { ...share("Mix the values", mixtureInWords(layer, sum), applied), quantity: "value", moves: "mixed" },
  ];
}

function capInWords({ cap }) {
  return `Each score becomes ${cap} · tanh(score / ${cap}): large ones shrink, small ones hardly change.`;
}

function maskInWords({ hidden }, layer, query) {
  if (!hidden || !rowOf(hidden, query, layer.keys).includes(1)) return "No key is masked in this row.";
  if (layer.mask_value === -Infinity) return "The score of each masked key becomes −∞.";
  return `The score of each masked key becomes ${layer.mask_value}.`;
}

const EMPTY = "Every key of this row is masked: ";

function exponentialsInWords(sum, largest, sink) {
  if (sum === 0) return `${EMPTY}e to the power of −∞ is 0.`;
  const less = `e to the power of each score, less the largest, ${precise(largest)}`;
  if (sink === null) return `${less}. They sum to ${precise(sum)}.`;
  return `${less}. With ${precise(Math.exp(sink - largest))} for the sink they sum to ${precise(sum)}.`;
}

function divisionInWords(sum, { sink, sinkWeights }, given, query) {
  if (given.size) return "Weights of this row were set by hand; the others share what is left to 1.";
  if (sum === 0) return `${EMPTY}there is nothing to divide, and all weights are 0.`;
  const sums = sink === null ? "they sum to 1" : `with the sink's ${precise(sinkWeights[query])} they sum to 1`;
  return `Each is divided by ${precise(sum)}: these are the weights, and ${sums}.`;
}

function mixtureInWords(layer, sum) {
  if (sum === 0) return `${EMPTY}no value goes into the output.`;
  if (!layer.dropped) return "Each value vector, times its weight, goes into the output.";
  const dropout = "Dropout has set some weights to 0 and enlarged the others.";
  return `${dropout} Each value vector, times what is left, goes into the output.`;
}
