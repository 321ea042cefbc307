// One pass of a shipped decoder, as model/nn/transformer.py runs it, and everything that it leaves behind.

import { ACTIVATIONS, attend, layerNorm, sum } from "./arithmetic.js";

/** What is changed in a pass, in the words of an `Intervention`: the mask is the model's own or none, the factor on the
 *  scores the model's own or 1, the positions added or zero, the heads in `ablated` ([layer, head]) write zeros. */
export const UNCHANGED = { mask: "model", scale: null, positions: true, ablated: [] };

/**
 * A pass over ids: arrays are (token, column), those of heads (head, token, column).
 *
 * layers: of each attention sub-layer `query`, `key`, `value`, `output`, the model's own before any head is ablated,
 * `joined`, all outputs side by side, `written`, what it adds to the stream, and `norm`, of which its queries are made. norms: all of them in order, with their statistics. streams: the states before, between and after the
 * sub-layers. logits: (token, vocabulary).
 */
export function pass({ config, tensors, linear }, ids, changes = UNCHANGED) {
  const { d_model: width, heads, epsilon } = config;
  const [run, headWidth] = [{ ids, changes, layers: [], norms: [], streams: [] }, width / heads];
  const map = (x, from, name) => linear(x, from, tensors[`${name}.weight`], tensors[`${name}.bias`]);
  const norm = (x, name) => {
    const made = { ...layerNorm(x, tensors[`${name}.gamma`], tensors[`${name}.beta`], epsilon), name };
    run.norms.push(made);
    return made;
  };
  const tokens = rowsOf(tensors["embedding.tokens.weight"], ids, width);
  const table = tensors["embedding.positions.weight"];
  const positions = changes.positions ? table.slice(0, tokens.length) : new Float32Array(tokens.length);
  run.summands = { tokens, positions };
  const add = (written) => run.streams.push(sum(run.streams.at(-1), written));
  run.streams.push(sum(tokens, positions));
  for (let layer = 0; layer < config.decoder_layers; layer++) {
    const block = `decoder.blocks.${layer}`;
    const own = norm(run.streams.at(-1), `${block}.self_norm`);
    const split = (name) => headsOf(map(own.output, width, `${block}.self_attention.${name}`), width, heads);
    const [query, key, value] = ["query", "key", "value"].map(split);
    const scale = changes.scale ?? 1 / Math.sqrt(headWidth);
    const reads = changes.mask === "none" ? () => ids.length : (row) => row + 1;
    const of = (array, head) => array.subarray(head * ids.length * headWidth, (head + 1) * ids.length * headWidth);
    const output = new Float32Array(query.length);
    const joined = new Float32Array(query.length);
    const ablated = changes.ablated.filter(([where]) => where === layer).map(([, head]) => head);
    for (let head = 0; head < heads; head++) {
      const made = attend(of(query, head), of(key, head), of(value, head), headWidth, scale, reads);
      of(output, head).set(made);
      if (!ablated.includes(head)) putBeside(joined, made, head, headWidth, width);
    }
    const written = map(joined, width, `${block}.self_attention.output`);
    run.layers.push({ query, key, value, output, joined, written, ablated, norm: own });
    add(written);
    if (config.d_mlp > 0) add(feedForward(norm(run.streams.at(-1), `${block}.feed_forward_norm`).output));

    function feedForward(x) {
      const inner = map(x, width, `${block}.feed_forward.inner`).map(ACTIVATIONS[config.activation]);
      return map(inner, config.d_mlp, `${block}.feed_forward.outer`);
    }
  }
  const final = norm(run.streams.at(-1), "decoder.final_norm").output;
  run.logits = linear(final, width, tensors["embedding.tokens.weight"]);
  return run;
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
