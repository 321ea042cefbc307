// One pass of a shipped model, as model/nn/transformer.py runs it, and everything that it leaves behind.

import { ACTIVATIONS, attend, largestAt, layerNorm, sinusoids, sum } from "./arithmetic.js";

/** What is changed in a pass, in the words of an `Intervention`: the decoder's mask is the model's own or "none", the
 *  factor on the scores the model's own (null) or 1, the positions are added or zero, the heads in `ablated`
 *  (["decoder.1.self", 7]) write zeros. */
export const UNCHANGED = { mask: "model", scale: null, positions: true, ablated: [] };

/**
 * A pass: arrays are (token, column), those of heads (head, token, column).
 *
 * tokens: the ids that each stack reads, { encoder, decoder }, or { decoder } where there is no encoder.
 *
 * summands: what the embedding of each stack adds up. layers: of each attention sub-layer, in order of execution, what
 * `attention` gives, and `norm`, of which its queries are made; null where they are made of the embedding. norms: all
 * of them in order, with their statistics. streams: of each stack the states before, between and after the sub-layers.
 * logits: (token of the decoder, vocabulary).
 */
export function pass(model, tokens, changes = UNCHANGED) {
  const run = begun(tokens, changes);
  const memory = tokens.encoder ? through(model, run, "encoder") : null;
  run.logits = logitsOf(model, through(model, run, "decoder", memory));
  return run;
}

/** The ids that the decoder of a translator reads: `start`, and what it writes greedily to the ids of a text, without
 *  `end`. */
export function translated(model, ids, { start, end }) {
  const memory = through(model, begun({ encoder: ids }), "encoder");
  const target = [start];
  while (target.length < model.config.n_ctx) {
    const logits = logitsOf(model, through(model, begun({ decoder: target }), "decoder", memory));
    const next = largestAt(logits.subarray(-model.config.d_vocab));
    if (next === end) break;
    target.push(next);
  }
  return target;
}

function begun(tokens, changes = UNCHANGED) {
  return { tokens, changes, summands: {}, layers: [], norms: [], streams: {} };
}

function logitsOf({ config, tensors, linear }, states) {
  return linear(states, config.d_model, tensors["embedding.tokens.weight"]);
}

/** Runs one stack, puts into the run what it leaves behind, and returns its last states. memory: those of the encoder,
 *  which a decoder with cross-attention reads. */
function through(model, run, stack, memory = null) {
  const { config, tensors } = model;
  const isPre = config.norm_place === "pre";
  const summands = (run.summands[stack] = embedding(model, run.tokens[stack], run.changes));
  const streams = (run.streams[stack] = [sum(summands.tokens, summands.positions)]);
  let norm = null; // whose output is read next
  const normed = (name, x) => {
    const [gamma, beta] = [tensors[`${name}.gamma`], tensors[`${name}.beta`]];
    norm = { name, ...layerNorm(x, gamma, beta, config.epsilon) };
    run.norms.push(norm);
    return norm.output;
  };
  /** A sub-layer adds to the stream what it makes of it: x + f(norm(x)), or norm(x + f(x)). */
  const add = (name, written) => {
    const read = isPre ? normed(`${name}_norm`, streams.at(-1)) : streams.at(-1);
    const added = sum(streams.at(-1), written(read));
    streams.push(isPre ? added : normed(`${name}_norm`, added));
  };
  const attends = (kind, place, name, source) =>
    add(name, (x) => {
      const enters = streams.length === 1 ? summands : { tokens: norm.input };
      const made = attention(model, { kind, place, name: `${name}_attention` }, [x, source ?? x], run.changes);
      run.layers.push({ ...made, enters, norm });
      return made.written;
    });
  for (let layer = 0; layer < config[`${stack}_layers`]; layer++) {
    const block = `${stack}.blocks.${layer}`;
    attends(stack === "decoder" ? "causal" : "self", `${stack}.${layer}.self`, `${block}.self`);
    if (memory) attends("cross", `${stack}.${layer}.cross`, `${block}.cross`, memory);
    if (config.d_mlp > 0) add(`${block}.feed_forward`, (x) => feedForward(model, x, `${block}.feed_forward`));
  }
  return isPre ? normed(`${stack}.final_norm`, streams.at(-1)) : streams.at(-1);
}

/** What is added up to a stack's first state. */
function embedding({ config, tensors }, ids, changes) {
  const { d_model: width } = config;
  const factor = Math.fround(config.scaled_embedding ? Math.sqrt(width) : 1);
  const tokens = rowsOf(tensors["embedding.tokens.weight"], ids, width).map((number) => number * factor);
  if (!changes.positions) return { tokens, positions: new Float32Array(tokens.length) };
  const table = tensors["embedding.positions.weight"];
  return { tokens, positions: table ? table.slice(0, tokens.length) : sinusoids(ids.length, width) };
}

/** Attention of one sub-layer, whose queries are made of x, and whose keys and values of the source: these, the
 *  `output` of each head before any is ablated, `joined`, the outputs side by side, and `written`, what goes to the
 *  stream. `band`: how many keys before and after itself a query may read; null where it may read all. */
function attention({ config, tensors, linear }, { kind, place, name }, [x, source], changes) {
  const { d_model: width, heads } = config;
  const [queries, keys, each] = [x.length / width, source.length / width, width / heads];
  const map = (from, part) => linear(from, width, tensors[`${name}.${part}.weight`], tensors[`${name}.${part}.bias`]);
  const [query, key, value] = Object.entries({ query: x, key: source, value: source }).map(([part, from]) =>
    headsOf(map(from, part), width, heads),
  );
  const band = kind === "causal" && changes.mask === "model" ? [queries - 1, 0] : null;
  const reads = band ? (row) => row + 1 : () => keys;
  const scale = changes.scale ?? 1 / Math.sqrt(each);
  const ablated = changes.ablated.filter(([where]) => where === place).map(([, head]) => head).sort((a, b) => a - b);
  const [output, joined] = [new Float32Array(x.length), new Float32Array(x.length)];
  for (let head = 0; head < heads; head++) {
    const of = (array) => array.subarray((head * array.length) / heads, ((head + 1) * array.length) / heads);
    of(output).set(attend(of(query), of(key), of(value), each, scale, reads));
    if (!ablated.includes(head)) putBeside(joined, of(output), head, each, width);
  }
  const vectors = { query, key, value, output, joined, written: map(joined, "output") };
  return { kind, place, name, heads, queries, keys, band, ablated, ...vectors };
}

function feedForward({ config, tensors, linear }, x, name) {
  const map = (from, width, part) =>
    linear(from, width, tensors[`${name}.${part}.weight`], tensors[`${name}.${part}.bias`]);
  const hidden = map(x, config.d_model, "inner").map(ACTIVATIONS[config.activation]);
  return map(hidden, config.d_mlp, "outer");
}

/** Raises an Error for changes that no pass here makes. */
export function checkChanges({ mask, scale }) {
  if (mask !== "model" && mask !== "none") throw new Error(`mask is ${mask}; it must be "model" or "none".`);
  if (scale !== null && scale !== 1) throw new Error(`scale is ${scale}; it must be null or 1.`);
}

/** What this pass computes, by entry of the config. */
const COMPUTED = {
  ...{ shape: ["decoder", "encoder-decoder"], norm: ["layer"], norm_place: ["pre", "post"] },
  ...{ positions: ["learned", "sinusoidal"], embedding_norm: [false], tied: [true] },
};

/** Raises an Error for a model that this pass does not compute: it names what is another one's. */
export function checkConfig(config) {
  for (const [name, computed] of Object.entries(COMPUTED)) {
    if (!computed.includes(config[name])) throw new Error(`A model with ${name} ${config[name]} cannot run here.`);
  }
}

function rowsOf(table, ids, width) {
  const rows = new Float32Array(ids.length * width);
  ids.forEach((id, row) => rows.set(table.subarray(id * width, (id + 1) * width), row * width));
  return rows;
}

/** (token, heads · column) as (head, token, column). */
function headsOf(array, width, heads) {
  const [rows, each] = [array.length / width, width / heads];
  const split = new Float32Array(array.length);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = row * width + head * each;
      split.set(array.subarray(start, start + each), (head * rows + row) * each);
    }
  }
  return split;
}

/** Puts the output of a head, (token, column), into its columns of (token, heads · column). */
function putBeside(joined, output, head, each, width) {
  for (let row = 0; row * each < output.length; row++) {
    joined.set(output.subarray(row * each, (row + 1) * each), row * width + head * each);
  }
}
