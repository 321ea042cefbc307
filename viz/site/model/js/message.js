// A pass as the message that the explorer draws a layer from (`payload` in viz/explorer/message.py): the same fields,
// with all arrays, because nothing travels.

import { decodeLayer, deriveHead, extent } from "../../../explorer/js/derive.js";
import { factsOf, labelsOf, wordsOf } from "./words.js";

const [HIDDEN, ONE, CELLS] = [255, 250, 24]; // of the map of a head, as viz/explorer/heads.py has them

/** The message of one layer of a run. baseline: the unchanged run, where this is a changed one, else null. */
export function messageOf(model, run, baseline, number) {
  const { kind, place } = run.layers[number];
  const [own] = place.split(".");
  const [queries, keys] = [own, kind === "cross" ? "encoder" : own].map((stack) => labelsOf(model.labels, run.tokens[stack]));
  return {
    ...wordsOf(model.words, run, number),
    ...{ layer: drawn(model, run, number).layer, baseline: baseline && drawn(model, baseline, number).layer },
    ...{ queries, keys },
    ...{ check: checkOf(model, run), checked: true },
  };
}

/** All heads of a run, each with a small map of its weights, as the picker takes them. */
export function headsOf(model, run) {
  const { theme, families } = model.heads;
  const numbers = new Map(run.layers.map(({ place }, number) => [place, number]));
  const whole = families.map((family) => familyOf(model, run, family, family.layers.map(({ name }) => numbers.get(name))));
  return { run: run.name, docked: true, theme, families: whole };
}

/** A family of heads with their maps. numbers: of its layers. */
function familyOf(model, run, family, numbers) {
  const { queries, keys } = run.layers[numbers[0]];
  const zeroed = numbers.flatMap((number) => run.layers[number].ablated.map((head) => [run.layers[number].place, head]));
  const [rows, columns] = [sideOf(queries), sideOf(keys)];
  const mapsOf = (number) => {
    const { maps } = drawn(model, run, number);
    const joined = new Uint8Array(maps.length * rows * columns);
    maps.forEach((map, n) => joined.set(map, n * rows * columns));
    return [run.layers[number].place, joined];
  };
  return { ...family, zeroed, maps: Object.fromEntries(numbers.map(mapsOf)), rows, columns };
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
  const { place, query, key, value, output, ablated, queries, keys, band } = run.layers[number];
  const digest = `${run.name} ${place}`;
  const layer = {
    ...facts,
    ...{ digest, part: `${digest} complete`, complete: true, valueSums: null, outputSums: null },
    ...{ queries, keys, ablated, band, mask: null },
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
    maps: heads.map((head) => mapOf(head, queries, keys)),
  };
}

/** The arrays of what stands around the heads of a layer (viz/explorer/around.py). */
function aroundOf({ tensors }, { layers }, number) {
  const { name, enters, norm, joined, written } = layers[number];
  const tensor = (part) => tensors[part].slice();
  const [weight, bias] = [tensor(`${name}.output.weight`), tensor(`${name}.output.bias`)];
  const merged = { joined, weight, bias, written };
  if (norm === null) return { positions: enters, merged };
  const { input, mean, inverse } = norm;
  const [gamma, beta] = [tensor(`${norm.name}.gamma`), tensor(`${norm.name}.beta`)];
  return { positions: enters, norm: { input, mean, inverse, gamma, beta }, merged };
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

/** Rows or columns of the map of a head over so many tokens; each stands for equally many. */
function sideOf(tokens) {
  return Math.ceil(tokens / Math.ceil(tokens / CELLS));
}

/** A head's weights as bytes: of each block of cells the largest, or that all are masked. */
function mapOf({ weights, hidden }, queries, keys) {
  const [rows, columns] = [sideOf(queries), sideOf(keys)];
  const [high, wide] = [Math.ceil(queries / CELLS), Math.ceil(keys / CELLS)];
  const map = new Uint8Array(rows * columns).fill(HIDDEN);
  weights.forEach((weight, cell) => {
    if (hidden?.[cell]) return;
    const at = Math.floor(Math.floor(cell / keys) / high) * columns + Math.floor((cell % keys) / wide);
    map[at] = Math.max(map[at] === HIDDEN ? 0 : map[at], Math.round(weight * ONE));
  });
  return map;
}
