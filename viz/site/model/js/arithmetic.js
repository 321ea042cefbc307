// The arithmetic of a pass. Matrices are Float32Arrays, row after row. Sums run in double precision and are rounded
// once, so that what differs from PyTorch's numbers is the rounding of PyTorch's own sums.

/** x Wᵀ + b: x (rows, width), weight (outputs, width), bias (outputs) or none. Four rows and two columns at a time:
 *  a number that was read serves several products. */
export function linear(x, width, weight, bias = null) {
  const [rows, outputs] = [x.length / width, weight.length / width];
  const made = new Float32Array(rows * outputs);
  const pair = new Float64Array(2 * width);
  for (let j = 0; j < outputs; j += 2) {
    const next = Math.min(j + 1, outputs - 1);
    for (let k = 0; k < width; k++) {
      pair[2 * k] = weight[j * width + k];
      pair[2 * k + 1] = weight[next * width + k];
    }
    for (let i = 0; i < rows; i += 4) {
      // Past the last row the last one is computed again.
      const [i1, i2, i3] = [Math.min(i + 1, rows - 1), Math.min(i + 2, rows - 1), Math.min(i + 3, rows - 1)];
      let [a, b, c, d] = [i * width, i1 * width, i2 * width, i3 * width];
      let [s0, s1, s2, s3, t0, t1, t2, t3] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (let k = 0; k < 2 * width; k += 2) {
        const [u, v] = [pair[k], pair[k + 1]];
        const [xa, xb, xc, xd] = [x[a++], x[b++], x[c++], x[d++]];
        s0 += xa * u;
        s1 += xb * u;
        s2 += xc * u;
        s3 += xd * u;
        t0 += xa * v;
        t1 += xb * v;
        t2 += xc * v;
        t3 += xd * v;
      }
      const [p, q] = bias === null ? [0, 0] : [bias[j], bias[next]];
      made[i * outputs + j] = s0 + p;
      made[i1 * outputs + j] = s1 + p;
      made[i2 * outputs + j] = s2 + p;
      made[i3 * outputs + j] = s3 + p;
      made[i * outputs + next] = t0 + q;
      made[i1 * outputs + next] = t1 + q;
      made[i2 * outputs + next] = t2 + q;
      made[i3 * outputs + next] = t3 + q;
    }
  }
  return made;
}

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
    for (let j = 0; j < reads(i); j++) {
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
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

/** a + b, number by number. */
export function sum(a, b) {
  return a.map((number, n) => number + b[n]);
}

/** The natural logarithm of each class's probability, of a row of logits. */
export function logProbabilities(logits) {
  let largest = -Infinity;
  for (const logit of logits) largest = Math.max(largest, logit);
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - largest);
  const base = largest + Math.log(total);
  return Float64Array.from(logits, (logit) => logit - base);
}
