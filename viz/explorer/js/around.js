// What stands around the heads of a layer: positions and norm before the queries; after the outputs, all heads side
// by side, and what they write together. viz/explorer/around.py says what comes from Python.

import { rowOf } from "./steps.js";

/** A group's arrays and facts; null where they have not arrived. */
function arrived(layer, name) {
  const group = layer.around?.[name];
  return group?.numbers ? { ...group.facts, ...group.numbers } : null;
}

/** Whether a stage is drawn from a group that has not arrived. */
export function isMissing(layer, { group }) {
  return group !== "" && arrived(layer, group) === null;
}

/** The matrices of the stages around the heads, each with that before it where there is one. They are derived when
 *  they are read, and null until their group has arrived. `derived`: the matrices of a head. */
export function aroundSteps(layer, derived) {
  const of = (name, make) => () => {
    const group = arrived(layer, name);
    return group && make(group);
  };
  const headNorm = (name) => ({
    [name]: of(name, (group) => headPart(group.after, group, layer, derived.head)),
    [`before_${name}`]: of(name, (group) => headPart(group.before, group, layer, derived.head)),
  });
  const turned = (group, without, added) => (group.kind === "turned" ? without : added)(group);
  return {
    norm: of("norm", normed),
    before_norm: of("norm", ({ input }) => input),
    positions: of("positions", (group) => turned(group, () => derived.query, summed)),
    before_positions: of("positions", (group) =>
      turned(group, () => turnedBack(group, derived.query, layer), ({ tokens }) => tokens),
    ),
    ...headNorm("query_norm"),
    ...headNorm("key_norm"),
    concatenated: of("merged", ({ joined }) => joined),
    written: of("merged", ({ written }) => written),
  };
}

/** One head's rows among those of all heads, of which several may share them. */
function headPart(array, { count }, { heads }, head) {
  return rowOf(array, Math.floor((head * count) / heads), array.length / count);
}

/** γ · (x − mean) / deviation + β, row by row. An RMS norm has a mean of 0. */
function normed({ input, mean, inverse, gamma, beta }) {
  const width = gamma.length;
  return input.map((x, cell) => {
    const [row, column] = [Math.floor(cell / width), cell % width];
    return (x - mean[row]) * inverse[row] * gamma[column] + beta[column];
  });
}

function summed({ names, ...arrays }) {
  return arrays.tokens.map((_, cell) => names.reduce((sum, name) => sum + arrays[name][cell], 0));
}

/** Where a number of a vector has its pair: the number of the pair, and whether it is the second; null where it is
 *  not turned. */
function pairOf(column, { pairs, half }) {
  if (column >= 2 * half) return null;
  if (pairs === "halves") return { pair: column % half, isSecond: column >= half };
  return { pair: column >> 1, isSecond: column % 2 === 1 };
}

function otherColumn(column, { pairs, half }) {
  if (pairs === "halves") return column < half ? column + half : column - half;
  return column ^ 1;
}

/** The queries before rotary positions turned them: each pair turned back by its angle. */
function turnedBack(group, query, { width }) {
  return query.map((number, cell) => {
    const [row, column] = [Math.floor(cell / width), cell % width];
    const place = pairOf(column, group);
    if (place === null) return number;
    const angle = group.angles[row * group.half + place.pair];
    const other = query[row * width + otherColumn(column, group)];
    return number * Math.cos(angle) + other * Math.sin(angle) * (place.isSecond ? -1 : 1);
  });
}

/** What each head writes to one number: its output times its rows of W_O, largest first unless in order. */
export function headTerms(layer, { query, dimension }, order) {
  const { joined, weight, bias } = arrived(layer, "merged");
  const width = weight.length / bias.length;
  const each = width / layer.heads;
  const [row, column] = [rowOf(joined, query, width), rowOf(weight, dimension, width)];
  const list = Array.from({ length: layer.heads }, (_, head) => {
    const [output, map] = [row, column].map((all) => rowOf(all, head, each));
    const product = output.reduce((sum, number, n) => sum + number * map[n], 0);
    return { head, output: Math.hypot(...output), map: Math.hypot(...map), product };
  });
  if (order === "largest") list.sort((s, t) => Math.abs(t.product) - Math.abs(s.product));
  return { list, bias: bias[dimension] };
}

/** Whether what is written is what the pass recorded that the stream received. */
export function isRecorded(layer) {
  return arrived(layer, "merged").recorded;
}

/** The numbers for the filled formula of a stage around the heads, and in `name` its case, if not "cell". */
export function aroundNumbers(stage, layer, derived, cell, order) {
  const { query, dimension } = cell;
  const at = query * stage.width + dimension;
  if (stage.name === "norm") return normNumbers(arrived(layer, "norm"), query, dimension, derived.norm[at]);
  if (stage.name === "concatenated") {
    const [head, inner] = [Math.floor(dimension / stage.block), dimension % stage.block];
    return { head, inner, value: derived.concatenated[at] };
  }
  if (stage.name === "written") {
    const { list, bias } = headTerms(layer, cell, order);
    return { head0: list[0].product, head1: list[1]?.product, bias, value: derived.written[at] };
  }
  if (stage.name === "query_norm" || stage.name === "key_norm") return headNormNumbers(stage, layer, derived, cell);
  const group = arrived(layer, "positions");
  if (group.kind === "turned") return turnNumbers(group, layer, derived, cell);
  const parts = group.names.map((name) => [name, group[name][at]]);
  return { ...Object.fromEntries(parts), value: derived.positions[at] };
}

function normNumbers({ input, mean, inverse, gamma, beta, epsilon }, row, column, value) {
  const x = input[row * gamma.length + column];
  return {
    ...{ x, mean: mean[row], gamma: gamma[column], beta: beta[column], value },
    variance: Math.max(1 / inverse[row] ** 2 - epsilon, 0),
    unit: (x - mean[row]) * inverse[row],
  };
}

function headNormNumbers({ name, rows }, layer, derived, cell) {
  const group = arrived(layer, name);
  const { width } = layer;
  const before = rowOf(derived[`before_${name}`], cell[rows], width);
  const variance = before.reduce((sum, number) => sum + number * number, 0) / width;
  const of = (array) => headPart(array, group, layer, cell.head)[cell.dimension];
  return {
    ...{ x: before[cell.dimension], variance, unit: before[cell.dimension] / Math.sqrt(variance + group.epsilon) },
    ...{ gamma: of(group.gamma), beta: of(group.beta), value: derived[name][cell[rows] * width + cell.dimension] },
  };
}

function turnNumbers(group, { width }, derived, { query, dimension }) {
  const value = derived.positions[query * width + dimension];
  const place = pairOf(dimension, group);
  if (place === null) return { name: "still", value };
  const angle = group.angles[query * group.half + place.pair];
  const before = rowOf(derived.before_positions, query, width);
  return {
    name: place.isSecond ? "second" : "cell",
    ...{ own: before[dimension], other: before[otherColumn(dimension, group)] },
    ...{ angle, cosine: Math.cos(angle), sine: Math.sin(angle), value },
  };
}
