// Pure arithmetic: from a layer's recorded Q, K, V to scores, scaled and masked scores, weights, output.
// Matrices are Float32Arrays, row after row. Sums run in double precision and are rounded once.

import { aroundSteps } from "./around.js";
import { changedBy, SCORE_STAGES } from "./score_stages.js";
import {
  dotProducts,
  filled,
  isLarge,
  largestOf,
  rowOf,
  rowOfStep,
  scaledBy,
  sharesByRow,
  softmaxRows,
} from "./steps.js";

/** Which cells are masked, one byte each. The mask has one bit for each allowed cell, lowest bit first; of a band there
 *  is only how many keys before and after itself a query may read. */
function hiddenCells({ mask, band, queries, keys, maskHeads }) {
  if (band !== null) return outside(band, queries, keys);
  if (mask === null) return null;
  const hidden = new Uint8Array(queries * keys * maskHeads);
  for (let n = 0; n < hidden.length; n++) hidden[n] = ~(mask[n >> 3] >> (n & 7)) & 1;
  return hidden;
}

function outside([before, after], queries, keys) {
  const hidden = new Uint8Array(queries * keys).fill(1);
  for (let i = 0; i < queries; i++) {
    hidden.fill(0, i * keys + Math.max(i - before, 0), i * keys + Math.min(i + after + 1, keys));
  }
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

/** The same of keys or values, which each `group` of heads shares. */
function sharedOf(layer, array, group, head, size) {
  if (array === null) return null;
  const start = (Math.floor(head / group) - Math.floor(layer.first / group)) * size;
  return array.subarray(start, start + size);
}

/** All matrices of one head. Each is derived when it is first read, and then kept. `hidden` is null if nothing is
 *  masked; value, recorded and output are null until the values have arrived. `row` gives one row of a step between the vectors
 *  and the weights; of a long text it is made without the step's matrix. */
export function deriveHead(layer, head) {
  const { queries, keys, width, valueWidth, hidden } = layer;
  const cells = queries * keys;
  const recorded = {
    head,
    sink: layer.sinks === null ? null : layer.sinks[head - layer.first],
    query: headOf(layer, layer.query, head, queries * width),
    key: sharedOf(layer, layer.key, layer.keyGroup, head, keys * width),
    value: sharedOf(layer, layer.value, layer.valueGroup, head, keys * valueWidth),
    recorded: headOf(layer, layer.output, head, queries * valueWidth),
    hidden: layer.maskHeads === 1 ? hidden : headOf(layer, hidden, head, cells),
    has: (name) => name in recorded,
    row: (name, query) => rowOfStep(layer, derived, name, query),
  };
  const steps = {
    scores: () => dotProducts(derived.query, derived.key, queries, keys, width),
    scaled: () => scaledBy(derived.scores, layer.scale),
    masked: () => {
      const scores = derived[SCORE_STAGES.at(-1).name];
      return derived.hidden === null ? scores : filled(scores, derived.hidden, layer.mask_value);
    },
    columns: () => Float64Array.from(derived.key),
    shares: () => withThoseSet(sharesOf(layer, derived), layer, head),
    weights: () => derived.shares.weights,
    sinkWeights: () => derived.shares.sinkWeights,
    weights_and_sink: () => withColumn(derived.weights, derived.sinkWeights, queries, keys),
    hidden_and_sink: () => derived.hidden && withColumn(derived.hidden, new Uint8Array(queries), queries, keys),
    applied: () => headOf(layer, layer.dropped, head, cells) ?? derived.weights,
    output: () => derived.value && mixed(derived.applied, derived.value, queries, keys, valueWidth),
    gap: () => gapOf(layer, head, derived),
  };
  let before = "scaled";
  for (const stage of SCORE_STAGES) {
    const read = before;
    steps[stage.name] = () => changedBy(stage, derived[read], layer, head);
    before = stage.name;
  }
  const once = (known, name) => (name in steps ? (known[name] ??= steps[name]()) : known[name]);
  const derived = new Proxy(recorded, { get: once });
  Object.assign(steps, aroundSteps(layer, derived));
  return derived;
}

function sharesOf(layer, derived) {
  if (isLarge(layer) && !derived.has("masked")) return sharesByRow(layer, derived);
  return softmaxRows(derived.masked, layer.queries, layer.keys, derived.sink);
}

/** The largest |weights · V − recorded output|, and the largest output. Until the values have arrived, both are
 *  of the sums over the dimensions. */
function gapOf(layer, head, { value, output, recorded, applied }) {
  if (value) return { largest: largestGap(output, recorded), size: extent(recorded) };
  const { queries, keys } = layer;
  const sums = headOf(layer, layer.outputSums, head, queries);
  const made = mixed(applied, sharedOf(layer, layer.valueSums, layer.valueGroup, head, keys), queries, keys, 1);
  return { largest: largestGap(made, sums), size: extent(sums) };
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
