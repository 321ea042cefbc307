// Pure arithmetic: from a layer's recorded Q, K, V to scores, scaled and masked scores, weights, output.
// Matrices are Float32Arrays, row after row. Sums run in double precision and are rounded once.

/** Float32 numbers from base64 of their little-endian bytes. */
function floats(text) {
  return new Float32Array(bytes(text).buffer);
}

/** `count` booleans (as 0 and 1) from base64 of packed bits, lowest bit first. */
function bits(text, count) {
  const packed = bytes(text);
  const unpacked = new Uint8Array(count);
  for (let n = 0; n < count; n++) unpacked[n] = (packed[n >> 3] >> (n & 7)) & 1;
  return unpacked;
}

function bytes(text) {
  const binary = atob(text);
  const array = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) array[n] = binary.charCodeAt(n);
  return array;
}

/** A layer as sent by Python, with its arrays decoded. */
export function decodeLayer(sent) {
  const cells = sent.queries * sent.keys;
  return {
    ...sent,
    fill: sent.fill === null ? -Infinity : sent.fill,
    query: floats(sent.query),
    key: floats(sent.key),
    value: floats(sent.value),
    output: floats(sent.output),
    mask: sent.mask === null ? null : bits(sent.mask, cells * sent.maskHeads),
    dropped: sent.dropped === null ? null : floats(sent.dropped),
  };
}

export function hasHead(layer, head) {
  return head >= layer.first && head < layer.first + layer.sent;
}

/** One head's block of an array that holds `size` numbers a head. */
function headOf(layer, array, head, size) {
  const start = (head - layer.first) * size;
  return array.subarray(start, start + size);
}

/** Everything of one head. `mask` is null where every query may look at every key. */
export function deriveHead(layer, head) {
  const { queries, keys, width, valueWidth } = layer;
  const query = headOf(layer, layer.query, head, queries * width);
  const key = headOf(layer, layer.key, head, keys * width);
  const value = headOf(layer, layer.value, head, keys * valueWidth);
  const recorded = headOf(layer, layer.output, head, queries * valueWidth);
  const mask = maskOf(layer, head);
  const scores = dotProducts(query, key, queries, keys, width);
  const scaled = scaledBy(scores, layer.scale);
  const masked = mask === null ? scaled : filled(scaled, mask, layer.fill);
  const weights = softmaxRows(masked, queries, keys);
  const applied =
    layer.dropped === null ? weights : headOf(layer, layer.dropped, head, queries * keys);
  const output = mixed(applied, value, queries, keys, valueWidth);
  const hidden = mask === null ? null : mask.map((allowed) => 1 - allowed);
  return { query, key, value, recorded, mask, hidden, scores, scaled, masked, weights, applied, output };
}

function maskOf(layer, head) {
  if (layer.mask === null) return null;
  const cells = layer.queries * layer.keys;
  return layer.maskHeads === 1 ? layer.mask : headOf(layer, layer.mask, head, cells);
}

/** score[i, j] = q[i] · k[j] */
function dotProducts(query, key, queries, keys, width) {
  const scores = new Float32Array(queries * keys);
  for (let i = 0; i < queries; i++) {
    for (let j = 0; j < keys; j++) {
      let sum = 0;
      for (let c = 0, a = i * width, b = j * width; c < width; c++) sum += query[a + c] * key[b + c];
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

/** The fill where the mask forbids to look. */
function filled(scaled, mask, fill) {
  const masked = new Float32Array(scaled.length);
  for (let cell = 0; cell < scaled.length; cell++) masked[cell] = mask[cell] ? scaled[cell] : fill;
  return masked;
}

/** Softmax over the keys, the row's maximum subtracted. A row of nothing but −∞ stays zero. */
function softmaxRows(masked, queries, keys) {
  const weights = new Float32Array(queries * keys);
  for (let i = 0; i < queries; i++) {
    const { exponentials, sum } = exponentialsOf(masked.subarray(i * keys, (i + 1) * keys));
    if (sum > 0) for (let j = 0; j < keys; j++) weights[i * keys + j] = exponentials[j] / sum;
  }
  return weights;
}

/** exp(masked − largest) of one row, their sum, and the largest masked score. */
export function exponentialsOf(row) {
  let largest = -Infinity;
  for (const score of row) if (score > largest) largest = score;
  const exponentials = new Float64Array(row.length);
  if (largest === -Infinity) return { exponentials, sum: 0, largest };
  let sum = 0;
  for (let j = 0; j < row.length; j++) sum += exponentials[j] = Math.exp(row[j] - largest);
  return { exponentials, sum, largest };
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
  for (const value of row) if (value > largest) largest = value;
  return largest;
}

/** Entropy and largest weight of one query row, and their means over all rows. */
export function spread(weights, queries, keys, query) {
  const rows = Array.from({ length: queries }, (_, i) => weights.subarray(i * keys, (i + 1) * keys));
  const mean = (measure) => rows.reduce((sum, row) => sum + measure(row), 0) / queries;
  return {
    entropy: entropy(rows[query]),
    largest: largestOf(rows[query]),
    meanEntropy: mean(entropy),
    meanLargest: mean(largestOf),
  };
}

/** The positions of the `count` largest numbers, largest first; equal ones in order. */
export function topPositions(row, count) {
  const order = Array.from(row, (_, position) => position);
  return order.sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}

/** b − a, cell by cell. Two equal infinities differ by nothing; a finite and an infinite one are NaN,
 *  for a picture a gap: there is no number between "not allowed" and a score. */
export function difference(before, after) {
  return after.map((value, cell) => {
    if (value === before[cell]) return 0;
    const gap = value - before[cell];
    return Number.isFinite(gap) ? gap : NaN;
  });
}

/** Largest |a − b|. */
export function largestGap(a, b) {
  let largest = 0;
  for (let n = 0; n < a.length; n++) largest = Math.max(largest, Math.abs(a[n] - b[n]));
  return largest;
}

/** Largest finite magnitude. */
export function extent(array) {
  let largest = 0;
  for (const value of array) {
    const size = Math.abs(value);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}
