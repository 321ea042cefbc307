// The steps from Q and K to weights, of a whole head or of single rows. Sums run in double precision and are rounded
// once, so a row is the same either way.

import { changedBy, SCORE_STAGES } from "./score_stages.js";

const LARGE = 2 ** 22; // cells of a head from which on only its weights are kept as a matrix

/** Whether the matrices of a head are so large that only its weights are made at once. */
export function isLarge({ queries, keys }) {
  return queries * keys > LARGE;
}

/** score[i, j] = q[i] · k[j] */
export function dotProducts(query, key, queries, keys, width) {
  const scores = new Float32Array(queries * keys);
  const [rows, columns] = [Float64Array.from(query), Float64Array.from(key)];
  for (let i = 0; i < queries; i++) {
    dotRow(rows.subarray(i * width, (i + 1) * width), columns, 0, rowOf(scores, i, keys));
  }
  return scores;
}

/** The products of one query with the keys from `first` on, four keys at a time, which the processor can add up side
 *  by side. Vectors are in double precision, so that none is converted twice. */
function dotRow(query, columns, first, scores) {
  const width = query.length;
  const count = scores.length;
  let j = 0;
  for (; j + 3 < count; j += 4) {
    let [one, two, three, four] = [0, 0, 0, 0];
    let b = (first + j) * width;
    for (let a = 0; a < width; a++, b++) {
      const q = query[a];
      one += q * columns[b];
      two += q * columns[b + width];
      three += q * columns[b + 2 * width];
      four += q * columns[b + 3 * width];
    }
    scores[j] = one;
    scores[j + 1] = two;
    scores[j + 2] = three;
    scores[j + 3] = four;
  }
  for (; j < count; j++) {
    let sum = 0;
    for (let c = 0, b = (first + j) * width; c < width; c++) sum += query[c] * columns[b + c];
    scores[j] = sum;
  }
}

export function scaledBy(scores, scale) {
  const factor = Math.fround(scale);
  const scaled = new Float32Array(scores.length);
  for (let cell = 0; cell < scores.length; cell++) scaled[cell] = scores[cell] * factor;
  return scaled;
}

/** The scores, with the mask value in masked cells. */
export function filled(scores, hidden, value) {
  const masked = new Float32Array(scores.length);
  for (let cell = 0; cell < scores.length; cell++) masked[cell] = hidden[cell] ? value : scores[cell];
  return masked;
}

/** Softmax over the keys and, where the head has one, its sink. A row that is all −∞ becomes zero. */
export function softmaxRows(masked, queries, keys, sink) {
  const weights = new Float32Array(queries * keys);
  const sinkWeights = new Float32Array(queries);
  for (let i = 0; i < queries; i++) {
    const { exponentials, sum, ofSink } = exponentialsOf(rowOf(masked, i, keys), sink);
    for (let j = 0; j < keys; j++) weights[i * keys + j] = sum && exponentials[j] / sum;
    sinkWeights[i] = sum && ofSink / sum;
  }
  return { weights, sinkWeights };
}

/** exp(masked − largest) of one row, their sum, and the largest masked score. A sink is one more of them; its own
 *  exponential is `ofSink`, 0 without one. */
export function exponentialsOf(row, sink = null) {
  const largest = Math.max(largestOf(row), sink ?? -Infinity);
  const exponentials = new Float64Array(row.length);
  if (largest === -Infinity) return { exponentials, sum: 0, largest, ofSink: 0 };
  const ofSink = sink === null ? 0 : Math.exp(sink - largest);
  let sum = ofSink;
  for (let j = 0; j < row.length; j++) sum += exponentials[j] = Math.exp(row[j] - largest);
  return { exponentials, sum, largest, ofSink };
}

export function largestOf(row) {
  let largest = -Infinity;
  for (let n = 0; n < row.length; n++) if (row[n] > largest) largest = row[n];
  return largest;
}

/** The row of one query in a (query, key) matrix. */
export function rowOf(matrix, query, keys) {
  return matrix.subarray(query * keys, (query + 1) * keys);
}

/** One row of a head, step by step, without the matrices. `first` and `count`: which keys of it. */
function rowSteps(layer, head, derived, query, first = 0, count = layer.keys) {
  const vector = Float64Array.from(rowOf(derived.query, query, layer.width));
  const scores = new Float32Array(count);
  dotRow(vector, derived.columns, first, scores);
  const scaled = scaledBy(scores, layer.scale);
  const steps = { scores, scaled };
  let last = scaled;
  for (const stage of SCORE_STAGES) {
    steps[stage.name] = last = changedBy(stage, last, layer, head, query, first, count);
  }
  const hidden = derived.hidden && rowOf(derived.hidden, query, layer.keys).subarray(first, first + count);
  return { ...steps, masked: hidden === null ? last : filled(last, hidden, layer.mask_value) };
}

const latest = new WeakMap(); // from a head's matrices to the row that was read last

/** One row of a step between Q · K and the softmax: of its matrix, or where none is kept, made by itself. */
export function rowOfStep(layer, derived, name, query) {
  if (!isLarge(layer) || derived.has(name)) return rowOf(derived[name], query, layer.keys);
  if (latest.get(derived)?.query !== query) {
    latest.set(derived, { query, steps: rowSteps(layer, derived.head, derived, query) });
  }
  return latest.get(derived).steps[name];
}

/** Weights, and those of the sink, row by row: of a long text the steps before them are not kept, and what the mask
 *  hides at either end of a row is not computed. */
export function sharesByRow(layer, derived) {
  const { queries, keys } = layer;
  const weights = new Float32Array(queries * keys);
  const sinkWeights = new Float32Array(queries);
  for (let query = 0; query < queries; query++) {
    const [first, count] = visible(layer, derived.hidden, query);
    const { masked } = rowSteps(layer, derived.head, derived, query, first, count);
    const { exponentials, sum, ofSink } = exponentialsOf(masked, derived.sink);
    const row = rowOf(weights, query, keys);
    for (let j = 0; j < count; j++) row[first + j] = sum && exponentials[j] / sum;
    sinkWeights[query] = sum && ofSink / sum;
  }
  return { weights, sinkWeights };
}

/** The first key of a row that gets weight, and how many there are to the last one. */
function visible({ keys, mask_value }, hidden, query) {
  if (hidden === null || mask_value !== -Infinity) return [0, keys];
  const row = rowOf(hidden, query, keys);
  const first = row.indexOf(0);
  return first < 0 ? [0, 0] : [first, row.lastIndexOf(0) + 1 - first];
}
