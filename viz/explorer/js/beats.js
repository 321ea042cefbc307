// The beats in which one row of scores becomes weights and an output: their numbers and their words. Six, and one
// more for each stage between the scaled scores and the mask.

import { extent, weightsSetIn } from "./derive.js";
import { exponentialsOf, rowOf } from "./steps.js";
import { given, precise } from "./numbers.js";

/** What each beat shows of a row: a title, a sentence, of each key and then of the sink its number and its bar, and
 *  what moves: the query "meets" the keys, the mask "falls", the values are "mixed"; else "bars". The sink has no
 *  number before the mask, and nothing of it is mixed. */
export function beatsOf(derived, layer, query) {
  const row = (step) => derived.row(step, query);
  const [scores, scaled, masked] = ["scores", "scaled", "masked"].map(row);
  const { exponentials, sum, largest, ofSink } = exponentialsOf(masked, derived.sink);
  const [weights, applied] = [derived.weights, derived.applied].map((matrix) => rowOf(matrix, query, layer.keys));
  const withSink = (numbers, ofSink) => (derived.sink === null ? [...numbers] : [...numbers, ofSink]);
  const unit = Math.max(...[scores, scaled].map(extent), Number.MIN_VALUE);
  const scoresLeft = [scaled, ...layer.later.map(({ name }) => row(name)), withSink([], derived.sink)];
  const longer = Math.max(Math.floor(unit / Math.max(...scoresLeft.map(extent), Number.MIN_VALUE)), 1);
  const along = (numbers, times) => numbers.map((value) => barOf((value / unit) * times));
  const beat = (title, says, numbers, quantity, bars) => ({ title, says, numbers, quantity, bars, moves: "bars" });
  const score = (title, says, row, times = longer, ofSink = NaN) => {
    const numbers = withSink(row, ofSink);
    return beat(title, says, numbers, "score", along(numbers, times));
  };
  const share = (title, says, row, ofSink) => {
    const numbers = withSink(row, ofSink);
    return beat(title, says, numbers, "weight", numbers.map((value) => barOf(value / Math.max(extent(numbers), 1))));
  };
  const beats = [
    { ...score("Query meets keys", "Each score is the dot product of the query with one key.", scores, 1), moves: "meets" },
    score("Scale", `Each score is multiplied by ${precise(layer.scale)}.`, scaled, 1),
    ...layer.later.map(({ name, title, says }) => score(title, says, row(name))),
    { ...score("Mask", maskInWords(derived, layer, query), masked, longer, derived.sink), moves: "falls" },
    share("Exponentials", exponentialsInWords(sum, largest, derived.sink), exponentials, ofSink),
    share(
      "Divide by the sum",
      divisionInWords(sum, derived, weightsSetIn(layer, derived.head, query), query),
      weights,
      derived.sinkWeights[query],
    ),
    { ...share("Mix the values", mixtureInWords(layer, sum), applied, NaN), quantity: "value", moves: "mixed" },
  ];
  if (longer > 1) beats[2].says += ` From here on the bars are drawn ${longer} times as long.`;
  return beats;
}

/** A bar's length, from -1 to 1; 0 where there is no number, or an infinite one. */
function barOf(share) {
  return Number.isFinite(share) ? Math.min(Math.max(share, -1), 1) : 0;
}

function maskInWords({ hidden, sink }, layer, query) {
  const joins = sink === null ? "" : ` The sink joins the row with ${precise(sink)}, which the head has learned.`;
  if (!hidden || !rowOf(hidden, query, layer.keys).includes(1)) return `No key is masked in this row.${joins}`;
  return `The score of each masked key becomes ${given(layer.mask_value)}.${joins}`;
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
