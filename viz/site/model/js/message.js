// A pass as the message that the explorer draws a layer from (`payload` in viz/explorer/message.py): the same fields,
// with all arrays, because nothing travels.

import { decodeLayer, deriveHead, extent } from "../../../explorer/js/derive.js";
import { factsOf, labelsOf, wordsOf } from "./words.js";

/** The message of one layer of a run. baseline: the unchanged run, where this is a changed one, else null. */
export function messageOf(model, run, baseline, layer) {
  const labels = labelsOf(model.labels, run.ids);
  return {
    ...wordsOf(model.words, run, layer),
    ...{ layer: layerOf(model, run, layer), baseline: baseline && layerOf(model, baseline, layer) },
    ...{ queries: labels, keys: labels },
    ...{ check: checkOf(model, run), checked: true },
  };
}

/** A layer as it stands in a message, made once. */
function layerOf(model, run, layer) {
  return (run.layers[layer].sent ??= sentLayer(model, run, layer));
}

function sentLayer(model, run, number) {
  const facts = factsOf(model.words, run, number);
  const { query, key, value, output, ablated } = run.layers[number];
  const [tokens, digest] = [run.ids.length, `${run.name} ${facts.name}`];
  const layer = {
    ...facts,
    ...{ digest, part: `${digest} complete`, complete: true, valueSums: null, outputSums: null },
    ...{ queries: tokens, keys: tokens, ablated, mask: null },
    ...{ band: run.changes.mask === "none" ? null : [tokens - 1, 0] },
    ...{ query, key, value, output },
  };
  const around = Object.entries(aroundOf(model, run, number)).map(([name, numbers]) => [
    name,
    { part: `${digest} ${name}`, held: false, facts: facts.around[name], numbers },
  ]);
  return { ...layer, around: Object.fromEntries(around), range: rangeOf(layer) };
}

/** The arrays of what stands around the heads of a layer (viz/explorer/around.py). */
function aroundOf({ tensors }, { summands, layers }, number) {
  const { norm, joined, written } = layers[number];
  const tensor = (name) => tensors[`decoder.blocks.${number}.${name}`].slice();
  const { input, mean, inverse } = norm;
  const [weight, bias] = [tensor("self_attention.output.weight"), tensor("self_attention.output.bias")];
  return {
    positions: number === 0 ? summands : { tokens: input },
    norm: { input, mean, inverse, gamma: tensor("self_norm.gamma"), beta: tensor("self_norm.beta") },
    merged: { joined, weight, bias, written },
  };
}

/** The largest magnitude of each quantity over all heads of a layer. */
function rangeOf(layer) {
  const { query, key, value, output } = layer;
  const vectors = Object.entries({ query, key, value, output }).map(([name, array]) => [name, extent(array)]);
  const scores = Math.max(...derivedHeads(layer).map((derived) => extent(derived.scores)));
  const scaled = scores * Math.abs(layer.scale);
  return { ...Object.fromEntries(vectors), scores, scaled, capped: scaled, biased: scaled };
}

/** The largest |recomputed − recorded| of a run over attention outputs and norms: weights · V of each head from its
 *  queries, keys and values, and each norm from its input and its statistics. Computed once. */
export function checkOf(model, run) {
  return (run.check ??= Math.max(...gapsOf(model, run)));
}

function gapsOf(model, run) {
  const heads = run.layers.flatMap((_, number) => derivedHeads(layerOf(model, run, number)));
  return [...heads.map(({ gap }) => gap.largest), ...run.norms.map((norm) => gapOfNorm(model, norm))];
}

function derivedHeads(layer) {
  const decoded = decodeLayer(layer);
  return Array.from({ length: layer.heads }, (_, head) => deriveHead(decoded, head));
}

function gapOfNorm({ tensors }, { name, input, mean, inverse, output }) {
  const [gamma, beta] = [tensors[`${name}.gamma`], tensors[`${name}.beta`]];
  const gaps = input.map((x, cell) => {
    const [row, column] = [Math.floor(cell / gamma.length), cell % gamma.length];
    return (x - mean[row]) * inverse[row] * gamma[column] + beta[column] - output[cell];
  });
  return extent(gaps);
}
