// The arithmetic of a pass beside its large products (kernel.js). Matrices are Float32Arrays, row after row. Sums run
// in double precision and are rounded once.

/** The layer norm of each row, and its statistics: mean and 1/√(variance + ε). */
export function layerNorm(input, gamma, beta, epsilon) {
  const width = gamma.length;
  const rows = input.length / width;
  const [mean, inverse, output] = [new Float32Array(rows), new Float32Array(rows), new Float32Array(input.length)];
  for (let row = 0; row < rows; row++) {
    const start = row * width;
    let [sum, squares] = [0, 0];
    for (let k = 0; k < width; k++) sum += input[start + k];
    const centre = sum / width;
    for (let k = 0; k < width; k++) squares += (input[start + k] - centre) ** 2;
    const factor = 1 / Math.sqrt(squares / width + epsilon);
    for (let k = 0; k < width; k++) output[start + k] = (input[start + k] - centre) * factor * gamma[k] + beta[k];
    mean[row] = centre;
    inverse[row] = factor;
  }
  return { input, mean, inverse, output };
}

/** softmax(q · kᵀ · scale, masked) · v of one head, as a fused kernel computes it: key by key, with no row of scores
 *  kept. What is large is taken out of the sums when it comes (Milakov and Gimelshein 2018). query, key, value: (rows,
 *  width); reads: how many keys, from the first on, each query may read. */
export function attend(query, key, value, width, scale, reads) {
  const rows = query.length / width;
  const output = new Float32Array(query.length);
  const sum = new Float64Array(width);
  for (let i = 0; i < rows; i++) {
    let [largest, weights] = [-Infinity, 0];
    sum.fill(0);
    const count = reads(i);
    for (let j = 0; j < count; j++) {
      let score = 0;
      for (let c = 0; c < width; c++) score += query[i * width + c] * key[j * width + c];
      score *= scale;
      if (score > largest) {
        const smaller = Math.exp(largest - score);
        weights *= smaller;
        for (let c = 0; c < width; c++) sum[c] *= smaller;
        largest = score;
      }
      const weight = Math.exp(score - largest);
      weights += weight;
      for (let c = 0; c < width; c++) sum[c] += weight * value[j * width + c];
    }
    for (let c = 0; c < width; c++) output[i * width + c] = sum[c] / weights;
  }
  return output;
}

const ERF_IS_ONE = 6; // from here on, in double precision

/** The error function by its series with positive terms only: 2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)). */
function erf(x) {
  const size = Math.abs(x);
  if (size >= ERF_IS_ONE) return Math.sign(x);
  let [term, sum] = [size, size];
  for (let n = 1; term > sum * 1e-17; n++) sum += term *= (2 * size * size) / (2 * n + 1);
  return Math.sign(x) * (2 / Math.sqrt(Math.PI)) * Math.exp(-size * size) * sum;
}

export const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  // (1 + tanh z) / 2 = 1 / (1 + e^(−2z)), which is computed sooner than tanh.
  gelu_tanh: (x) => x / (1 + Math.exp(-Math.sqrt(8 / Math.PI) * (x + 0.044715 * x * x * x))),
};

/** (length, width): sines in the even columns, cosines in the odd ones, of position / 10000^(2i/width) (Vaswani et al.
 *  2017, 3.5). */
export function sinusoids(length, width) {
  return Float32Array.from({ length: length * width }, (_, cell) => {
    const [position, column] = [Math.floor(cell / width), cell % width];
    const angle = position / 10000 ** ((column - (column % 2)) / width);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** a + b, number by number. */
export function sum(a, b) {
  return a.map((number, n) => number + b[n]);
}

/** Where the largest number stands; the first of equal ones. */
export function largestAt(numbers) {
  return numbers.reduce((best, number, at) => (number > numbers[best] ? at : best), 0);
}

/** The natural logarithm of the sum of exponentials: what a logit is above its log probability by. */
export function logOfSum(logits) {
  let largest = -Infinity;
  for (const logit of logits) largest = Math.max(largest, logit);
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - largest);
  return largest + Math.log(total);
}
