// One pass of a shipped decoder, as model/nn/transformer.py runs it, and everything that it leaves behind.

import { ACTIVATIONS, attend, layerNorm, sum } from "./arithmetic.js";

/** What is changed in a pass, in the words of an `Intervention`: the mask is the model's own or "none", the factor on
 *  the scores the model's own (null) or 1, the positions are added or zero, the heads in `ablated` (["decoder.1.self",
 *  7]) write zeros. */
export const UNCHANGED = { mask: "model", scale: null, positions: true, ablated: [] };

/**
 * A pass over ids: arrays are (token, column), those of heads (head, token, column).
 *
 * summands: what the embedding adds up. layers: of each attention sub-layer what `attention` gives, and `norm`, of
 * which its queries are made. norms: all of them in order, with their statistics. streams: the states before, between
 * and after the sub-layers. logits: (token, vocabulary).
 */
export function pass(model, ids, changes = UNCHANGED) {
  const { config, tensors, linear } = model;
  const tokens = rowsOf(tensors["embedding.tokens.weight"], ids, config.d_model);
  const table = tensors["embedding.positions.weight"];
  const positions = changes.positions ? table.slice(0, tokens.length) : new Float32Array(tokens.length);
  const streams = [sum(tokens, positions)];
  const run = { ids, changes, summands: { tokens, positions }, layers: [], norms: [], streams };
  const norm = (name) => {
    const [gamma, beta] = [tensors[`${name}.gamma`], tensors[`${name}.beta`]];
    run.norms.push({ name, ...layerNorm(streams.at(-1), gamma, beta, config.epsilon) });
    return run.norms.at(-1);
  };
  const add = (written) => streams.push(sum(streams.at(-1), written));
  for (let layer = 0; layer < config.decoder_layers; layer++) {
    const block = `decoder.blocks.${layer}`;
    const own = norm(`${block}.self_norm`);
    run.layers.push({ ...attention(model, own.output, layer, changes), norm: own });
    add(run.layers.at(-1).written);
    if (config.d_mlp > 0) add(feedForward(model, norm(`${block}.feed_forward_norm`).output, layer));
  }
  run.logits = linear(norm("decoder.final_norm").output, config.d_model, tensors["embedding.tokens.weight"]);
  return run;
}

/** Attention of one layer to x: queries, keys and values, the `output` of each head before any is ablated, `joined`,
 *  the outputs side by side, and `written`, what goes to the stream. */
function attention({ config, tensors, linear }, x, layer, changes) {
  const { d_model: width, heads } = config;
  const [rows, each] = [x.length / width, width / heads];
  const map = (from, name) => {
    const whole = `decoder.blocks.${layer}.self_attention.${name}`;
    return linear(from, width, tensors[`${whole}.weight`], tensors[`${whole}.bias`]);
  };
  const [query, key, value] = ["query", "key", "value"].map((name) => headsOf(map(x, name), width, heads));
  const scale = changes.scale ?? 1 / Math.sqrt(each);
  const reads = changes.mask === "none" ? () => rows : (row) => row + 1;
  const place = `decoder.${layer}.self`;
  const ablated = changes.ablated.filter(([where]) => where === place).map(([, head]) => head).sort((a, b) => a - b);
  const [output, joined] = [new Float32Array(x.length), new Float32Array(x.length)];
  for (let head = 0; head < heads; head++) {
    const of = (array) => array.subarray(head * rows * each, (head + 1) * rows * each);
    of(output).set(attend(of(query), of(key), of(value), each, scale, reads));
    if (!ablated.includes(head)) putBeside(joined, of(output), head, each, width);
  }
  return { heads, query, key, value, output, joined, ablated, written: map(joined, "output") };
}

function feedForward({ config, tensors, linear }, x, layer) {
  const map = (from, width, name) => {
    const whole = `decoder.blocks.${layer}.feed_forward.${name}`;
    return linear(from, width, tensors[`${whole}.weight`], tensors[`${whole}.bias`]);
  };
  const hidden = map(x, config.d_model, "inner").map(ACTIVATIONS[config.activation]);
  return map(hidden, config.d_mlp, "outer");
}

/** Raises an Error for changes that no pass here makes. */
export function checkChanges({ mask, scale }) {
  if (mask !== "model" && mask !== "none") throw new Error(`mask is ${mask}; it must be "model" or "none".`);
  if (scale !== null && scale !== 1) throw new Error(`scale is ${scale}; it must be null or 1.`);
}

/** Raises an Error for a model that this pass does not compute: it names what is another one's. */
export function checkConfig(config) {
  const expected = { shape: "decoder", norm: "layer", norm_place: "pre", positions: "learned", tied: true };
  for (const [name, value] of Object.entries(expected)) {
    if (config[name] !== value) throw new Error(`A model with ${name} ${config[name]} cannot run here.`);
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
