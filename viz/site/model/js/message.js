// A pass as the message that the explorer draws a layer from (`payload` in viz/explorer/message.py): the same fields,
// with all arrays, because nothing travels.

import { decodeLayer, deriveHead, extent } from "../../../explorer/js/derive.js";
import { factsOf, labelsOf, wordsOf } from "./words.js";

const [HIDDEN, ONE, CELLS] = [255, 250, 24]; // of the map of a head, as viz/explorer/heads.py has them

/** The message of one layer of a run. baseline: the unchanged run, where this is a changed one, else null. */
export function messageOf(model, run, baseline, number) {
  const labels = labelsOf(model.labels, run.ids);
  return {
    ...wordsOf(model.words, run, number),
    ...{ layer: drawn(model, run, number).layer, baseline: baseline && drawn(model, baseline, number).layer },
    ...{ queries: labels, keys: labels },
    ...{ check: checkOf(model, run), checked: true },
  };
}

/** All heads of a run, each with a small map of its weights, as the picker takes them. */
export function headsOf(model, run) {
  const { theme, families: [family] } = model.heads;
  const layers = run.layers.map((_, number) => drawn(model, run, number));
  const side = sideOf(run.ids.length);
  const maps = new Uint8Array(layers.length * family.heads * side * side);
  layers.flatMap((layer) => layer.maps).forEach((map, n) => maps.set(map, n * side * side));
  const names = family.layers.map(({ name }) => name);
  const zeroed = run.layers.flatMap(({ ablated }, number) => ablated.map((head) => [names[number], head]));
  return { run: run.name, docked: true, theme, families: [{ ...family, zeroed, maps, rows: side, columns: side }] };
}

/** The largest |recomputed − recorded| of a run over attention outputs and norms: weights · V of each head from its
 *  queries, keys and values, and each norm from its input and its statistics. Computed once. */
function checkOf(model, run) {
  const ofLayers = () => run.layers.map((_, number) => drawn(model, run, number).gap);
  return (run.check ??= Math.max(...ofLayers(), ...run.norms.map((norm) => gapOfNorm(model, norm))));
}

/** Of a layer what stands in a message, the gap of its heads and their maps; made once. */
function drawn(model, run, number) {
  return (run.layers[number].drawn ??= drawLayer(model, run, number));
}

function drawLayer(model, run, number) {
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
  const decoded = decodeLayer(layer);
  const heads = Array.from({ length: layer.heads }, (_, head) => deriveHead(decoded, head));
  return {
    layer: { ...layer, around: Object.fromEntries(around), range: rangeOf(layer, heads) },
    gap: Math.max(...heads.map(({ gap }) => gap.largest)),
    maps: heads.map((head) => mapOf(head, tokens)),
  };
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
function rangeOf(layer, heads) {
  const { query, key, value, output } = layer;
  const vectors = Object.entries({ query, key, value, output }).map(([name, array]) => [name, extent(array)]);
  const scores = Math.max(...heads.map((derived) => extent(derived.scores)));
  const scaled = scores * Math.abs(layer.scale);
  return { ...Object.fromEntries(vectors), scores, scaled, capped: scaled, biased: scaled };
}

function gapOfNorm({ tensors }, { name, input, mean, inverse, output }) {
  const [gamma, beta] = [tensors[`${name}.gamma`], tensors[`${name}.beta`]];
  const gaps = input.map((x, cell) => {
    const [row, column] = [Math.floor(cell / gamma.length), cell % gamma.length];
    return (x - mean[row]) * inverse[row] * gamma[column] + beta[column] - output[cell];
  });
  return extent(gaps);
}

/** Rows of the map of a head over so many tokens; each stands for equally many. */
function sideOf(tokens) {
  return Math.ceil(tokens / Math.ceil(tokens / CELLS));
}

/** A head's weights as bytes: of each block of cells the largest, or that all are masked. */
function mapOf({ weights, hidden }, tokens) {
  const [side, block] = [sideOf(tokens), Math.ceil(tokens / CELLS)];
  const map = new Uint8Array(side * side).fill(HIDDEN);
  weights.forEach((weight, cell) => {
    if (hidden?.[cell]) return;
    const at = Math.floor(Math.floor(cell / tokens) / block) * side + Math.floor((cell % tokens) / block);
    map[at] = Math.max(map[at] === HIDDEN ? 0 : map[at], Math.round(weight * ONE));
  });
  return map;
}
