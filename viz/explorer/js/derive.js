// Pure arithmetic: from a layer's recorded Q, K, V to scores, scaled and masked scores, weights, output.
// Matrices are Float32Arrays, row after row. Sums run in double precision and are rounded once.

import { aroundSteps } from "./around.js";

/** Which cells are masked, one byte each. The mask has one bit for each allowed cell, lowest bit first. */
function hiddenCells({ mask, queries, keys, maskHeads }) {
  if (mask === null) return null;
  const hidden = new Uint8Array(queries * keys * maskHeads);
  for (let n = 0; n < hidden.length; n++) hidden[n] = ~(mask[n >> 3] >> (n & 7)) & 1;
  return hidden;
}

/** A layer as Python sends it, its mask unpacked. `value` and `output` are null until they have arrived. */
export function decodeLayer(sent) {
  return { ...sent, mask_value: sent.mask_value ?? -Infinity, hidden: hiddenCells(sent) };
}

export function hasHead(layer, head) {
  return head >= layer.first && head < layer.first + layer.sent;
}

/** One head's part of an array with `size` numbers a head; null if the array has not arrived. */
function headOf(layer, array, head, size) {
  if (array === null) return null;
  const start = (head - layer.first) * size;
  return array.subarray(start, start + size);
}

/** All matrices of one head. Each is derived when it is first read, and then kept. `hidden` is null if nothing is
 *  masked; value, recorded and output are null until the values have arrived. */
export function deriveHead(layer, head) {
  const { queries, keys, width, valueWidth, hidden } = layer;
  const cells = queries * keys;
  const recorded = {
    head,
    sink: layer.sinks === null ? null : layer.sinks[head - layer.first],
    query: headOf(layer, layer.query, head, queries * width),
    key: headOf(layer, layer.key, head, keys * width),
    value: headOf(layer, layer.value, head, keys * valueWidth),
    recorded: headOf(layer, layer.output, head, queries * valueWidth),
    hidden: layer.maskHeads === 1 ? hidden : headOf(layer, hidden, head, cells),
  };
  const steps = {
    scores: () => dotProducts(derived.query, derived.key, queries, keys, width),
    scaled: () => scaledBy(derived.scores, layer.scale),
    capped: () => (layer.cap === null ? derived.scaled : softCapped(derived.scaled, layer.cap)),
    biased: () => (layer.bias === null ? derived.capped : derived.capped.map(withBias(layer, head))),
    masked: () =>
      derived.hidden === null ? derived.biased : filled(derived.biased, derived.hidden, layer.mask_value),
    shares: () => withThoseSet(softmaxRows(derived.masked, queries, keys, derived.sink), layer, head),
    weights: () => derived.shares.weights,
    sinkWeights: () => derived.shares.sinkWeights,
    weights_and_sink: () => withColumn(derived.weights, derived.sinkWeights, queries, keys),
    hidden_and_sink: () => derived.hidden && withColumn(derived.hidden, new Uint8Array(queries), queries, keys),
    applied: () => headOf(layer, layer.dropped, head, cells) ?? derived.weights,
    output: () => derived.value && mixed(derived.applied, derived.value, queries, keys, valueWidth),
    gap: () => gapOf(layer, head, derived),
  };
  const once = (known, name) => (name in steps ? (known[name] ??= steps[name]()) : known[name]);
  const derived = new Proxy(recorded, { get: once });
  Object.assign(steps, aroundSteps(layer, derived));
  return derived;
}

/** The largest |weights · V − recorded output|, and the largest output. Until the values have arrived, both are
 *  of the sums over the dimensions. */
function gapOf(layer, head, { value, output, recorded, applied }) {
  if (value) return { largest: largestGap(output, recorded), size: extent(recorded) };
  const { queries, keys } = layer;
  const sums = headOf(layer, layer.outputSums, head, queries);
  const made = mixed(applied, headOf(layer, layer.valueSums, head, keys), queries, keys, 1);
  return { largest: largestGap(made, sums), size: extent(sums) };
}

/** score[i, j] = q[i] · k[j], four keys at a time, which the processor can add up side by side. */
function dotProducts(query, key, queries, keys, width) {
  const scores = new Float32Array(queries * keys);
  const [rows, columns] = [Float64Array.from(query), Float64Array.from(key)];
  for (let i = 0; i < queries; i++) {
    let j = 0;
    for (; j + 3 < keys; j += 4) {
      let [first, second, third, fourth] = [0, 0, 0, 0];
      let b = j * width;
      for (let a = i * width, end = a + width; a < end; a++, b++) {
        const q = rows[a];
        first += q * columns[b];
        second += q * columns[b + width];
        third += q * columns[b + 2 * width];
        fourth += q * columns[b + 3 * width];
      }
      const cell = i * keys + j;
      scores[cell] = first;
      scores[cell + 1] = second;
      scores[cell + 2] = third;
      scores[cell + 3] = fourth;
    }
    for (; j < keys; j++) {
      let sum = 0;
      for (let c = 0, a = i * width, b = j * width; c < width; c++) sum += rows[a + c] * columns[b + c];
      scores[i * keys + j] = sum;
    }
  }
  return scores;
}

function scaledBy(scores, scale) {
  const factor = Math.fround(scale);
  const scaled = new Float32Array(scores.length);
  for (let cell = 0; cell < scores.length; cell++) scaled[cell] = scores[cell] * factor;
  return scaled;
}

/** cap · tanh(scaled / cap) */
function softCapped(scaled, cap) {
  return scaled.map((score) => cap * Math.tanh(score / cap));
}

/** A function from a capped score and its cell to the score with its bias. */
function withBias(layer, head) {
  const bias = biasOf(layer, head);
  return (score, cell) => score + bias(Math.floor(cell / layer.keys), cell % layer.keys);
}

/** What is added to the score of a query and a key of a head. viz/explorer/layer.py says how it is sent. */
export function biasOf({ bias, biasBy, biasSizes, first, queries, keys }, head) {
  if (bias === null) return () => 0;
  const [heads, rows] = biasSizes;
  const start = (heads > 1 ? head - first : 0) * (biasBy === "distance" ? queries + keys - 1 : rows * keys);
  if (biasBy === "distance") return (query, key) => bias[start + key - query + queries - 1];
  return (query, key) => bias[start + (rows > 1 ? query * keys : 0) + key];
}

/** The scores, with the mask value in masked cells. */
function filled(biased, hidden, value) {
  const masked = new Float32Array(biased.length);
  for (let cell = 0; cell < biased.length; cell++) masked[cell] = hidden[cell] ? value : biased[cell];
  return masked;
}

/** Softmax over the keys and, where the head has one, its sink. A row that is all −∞ becomes zero. */
function softmaxRows(masked, queries, keys, sink) {
  const weights = new Float32Array(queries * keys);
  const sinkWeights = new Float32Array(queries);
  for (let i = 0; i < queries; i++) {
    const { exponentials, sum, ofSink } = exponentialsOf(rowOf(masked, i, keys), sink);
    for (let j = 0; j < keys; j++) weights[i * keys + j] = sum && exponentials[j] / sum;
    sinkWeights[i] = sum && ofSink / sum;
  }
  return { weights, sinkWeights };
}

/** A matrix with one more column. */
function withColumn(matrix, column, rows, columns) {
  const wider = new matrix.constructor(rows * (columns + 1));
  for (let row = 0; row < rows; row++) {
    wider.set(rowOf(matrix, row, columns), row * (columns + 1));
    wider[row * (columns + 1) + columns] = column[row];
  }
  return wider;
}

/** Weights with those that were set by hand; the others of their row, and the sink, share what is left to 1. */
function withThoseSet(shares, layer, head) {
  const { weights, sinkWeights } = shares;
  for (const query of new Set(layer.weightsSet.filter(([of]) => of === head).map(([, query]) => query))) {
    const given = weightsSetIn(layer, head, query);
    const row = rowOf(weights, query, layer.keys);
    const sum = (some) => some.reduce((whole, value) => whole + value, 0);
    const others = sum([...row].filter((_, j) => !given.has(j))) + sinkWeights[query];
    const left = others && Math.max(1 - sum([...given.values()]), 0) / others;
    for (let j = 0; j < row.length; j++) row[j] = given.get(j) ?? row[j] * left;
    sinkWeights[query] *= left;
  }
  return shares;
}

/** The weights of a row that were set by hand: key to weight. */
export function weightsSetIn(layer, head, query) {
  const here = layer.weightsSet.filter(([of, row]) => of === head && row === query);
  return new Map(here.map(([, , key, weight]) => [key, weight]));
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

/** output[i] = Σ_j weight[i, j] · v[j] */
function mixed(weights, value, queries, keys, valueWidth) {
  const output = new Float32Array(queries * valueWidth);
  const row = new Float64Array(valueWidth);
  for (let i = 0; i < queries; i++) {
    row.fill(0);
    for (let j = 0; j < keys; j++) {
      const weight = weights[i * keys + j];
      if (weight === 0) continue;
      for (let c = 0, b = j * valueWidth; c < valueWidth; c++) row[c] += weight * value[b + c];
    }
    output.set(row, i * valueWidth);
  }
  return output;
}

/** −Σ w ln w of one row of weights, in nats. */
function entropy(row) {
  let sum = 0;
  for (const weight of row) if (weight > 0) sum -= weight * Math.log(weight);
  return Math.max(sum, 0);
}

function largestOf(row) {
  let largest = -Infinity;
  for (let n = 0; n < row.length; n++) if (row[n] > largest) largest = row[n];
  return largest;
}

/** The row of one query in a (query, key) matrix. */
export function rowOf(matrix, query, keys) {
  return matrix.subarray(query * keys, (query + 1) * keys);
}

/** Entropy and largest weight of one query row, and their means over all rows. */
export function spread(weights, queries, keys, query) {
  const rows = Array.from({ length: queries }, (_, i) => rowOf(weights, i, keys));
  const mean = (measure) => rows.reduce((sum, row) => sum + measure(row), 0) / queries;
  return {
    entropy: entropy(rows[query]),
    largest: largestOf(rows[query]),
    meanEntropy: mean(entropy),
    meanLargest: mean(largestOf),
  };
}

/** The positions of the `count` largest numbers, largest first; equal numbers keep their order. */
export function topPositions(row, count) {
  const order = Array.from(row, (_, position) => position);
  return order.sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}

/** after − before, cell by cell. The difference of two equal infinities is 0. That of a number and an infinity is
 *  NaN, which a picture leaves empty: between a score and "masked" there is no number. */
export function difference(before, after) {
  const gaps = new Float32Array(after.length);
  for (let cell = 0; cell < after.length; cell++) {
    if (after[cell] === before[cell]) continue;
    const gap = after[cell] - before[cell];
    gaps[cell] = Number.isFinite(gap) ? gap : NaN;
  }
  return gaps;
}

/** Largest |a − b|. */
function largestGap(a, b) {
  let largest = 0;
  for (let n = 0; n < a.length; n++) largest = Math.max(largest, Math.abs(a[n] - b[n]));
  return largest;
}

/** Largest finite magnitude. */
export function extent(array) {
  let largest = 0;
  for (let n = 0; n < array.length; n++) {
    const size = Math.abs(array[n]);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}
