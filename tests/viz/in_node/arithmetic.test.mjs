// What the explorer derives is what the trace derives in Python, number by number.

import assert from "node:assert/strict";
import { test } from "node:test";

import { aroundNumbers, headTerms } from "../../../viz/explorer/js/around.js";
import { decodeLayer, deriveHead, spread } from "../../../viz/explorer/js/derive.js";
import { tickPositions } from "../../../viz/explorer/js/geometry.js";
import { layersOf } from "../../../viz/explorer/js/held.js";
import { magnitude } from "../../../viz/explorer/js/numbers.js";
import { FONT } from "../../../viz/explorer/js/paint.js";
import { isLarge, rowOf } from "../../../viz/explorer/js/steps.js";
import { cases, cell, close, matrix, ofHead } from "./cases.mjs";

const RECORDED = { query: "query", key: "key", value: "value", recorded: "output" };
const DERIVED = { output: "context" };
for (const name of ["scores", "scaled", "capped", "biased", "masked", "weights", "sinkWeights"]) DERIVED[name] = name;
const CLOSE = { within: 1e-5, share: 1e-5 };
const derived = ({ message }, head) => deriveHead(decodeLayer(message.layer), head);

for (const [name, one] of Object.entries(cases.layers)) {
  test(`every stage equals the trace's: ${name}`, () => {
    for (const head of new Set(one.of ?? [0, one.own.heads - 1])) {
      const made = derived(one, head);
      for (const [here, there] of Object.entries(RECORDED)) {
        assert.deepEqual(made[here], matrix(one.own, there, head), here);
      }
      for (const [here, there] of Object.entries(DERIVED)) {
        close(made[here], matrix(one.own, there, head), { ...CLOSE, of: `${here} of head ${head}` });
      }
    }
  });
}

test("a row whose every key is masked is all zeros, and no number is lost", () => {
  const made = derived(cases.closed, 1);
  assert.deepEqual([...made.weights.subarray(12, 18)], Array(6).fill(0));
  assert.deepEqual([...made.output.subarray(16, 24)], Array(8).fill(0));
  for (const name of [...Object.keys(RECORDED), ...Object.keys(DERIVED)]) assert.ok(!made[name].includes(NaN), name);
});

test("dropout mixes the values with the weights as applied", () => {
  const { own } = cases.dropping;
  close(derived(cases.dropping, 2).output, matrix(own, "context", 2), CLOSE);
  assert.notDeepEqual(matrix(own, "dropped", 2), matrix(own, "weights", 2));
});

test("a weight set by hand is that", () => {
  assert.equal(cell(cases.layers["weights set by hand"].own, "weights", 1, 3, 2), 0.25);
});

test("entropy and largest weight of rows, and their means", () => {
  const weights = matrix(cases.closed.own, "weights", 0);
  const rows = [0, 1, 2, 3, 4, 5].map((query) => [...rowOf(weights, query, 6)]);
  const entropies = rows.map((row) => -row.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0));
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const largest = rows.map((row) => Math.max(...row));
  const found = spread(weights, 6, 6, 4);
  const names = ["entropy", "meanEntropy", "largest", "meanLargest"];
  close(names.map((name) => found[name]), [entropies[4], mean(entropies), largest[4], mean(largest)], { within: 1e-6 });
});

test("ticks are thinned by the same law as in Python", () => {
  for (const [count, limit, expected] of cases.ticks) assert.deepEqual(tickPositions(count, limit), expected);
});

test("a bound is rounded up as in Python", () => {
  assert.deepEqual(cases.bounds.map(([value]) => magnitude(value)), cases.bounds.map(([, said]) => said));
  assert.equal(magnitude(1.49e-6), "2e−6");
});

test("letters that are painted have 13 pixels", () => assert.equal(FONT, 13));

test("the wrong factor would be seen", () => {
  const { own } = cases.layers.causal;
  assert.throws(() => close(derived(cases.wrong, 0).scaled, matrix(own, "scaled", 0), CLOSE), assert.AssertionError);
});

for (const [name, one] of Object.entries(cases.around)) {
  test(`what stands around the heads is the model's own: ${name}`, () => aroundTheHeads(one));
}

/** Positions, norm, outputs side by side, and what is written: all as the pass recorded it. */
function aroundTheHeads({ message, own, stages, outputs, turned }) {
  const { layer } = layersOf(message);
  const chosen = { head: 1, query: 3, key: 1, dimension: 5 };
  const made = deriveHead(layer, chosen.head);
  const shown = message.stages.filter(({ group }) => group);
  assert.deepEqual(shown.map(({ name }) => name).sort(), Object.keys(stages).sort());
  for (const stage of shown) {
    const { numbers, width, unit } = stages[stage.name];
    const within = 1e-5 * unit;
    close(made[stage.name], numbers, { within, of: stage.name });
    const filled = aroundNumbers(stage, layer, made, chosen, "index");
    const expected = numbers[(stage.name === "key_norm" ? 1 : 3) * width + 5];
    close([filled.value], [expected], { within, of: `the formula of ${stage.name}` });
    if (!("unit" in filled)) continue; // of a norm: the filled formula gives its result
    close([filled.gamma * filled.unit + filled.beta], [expected], { within, of: `the parts of ${stage.name}` });
  }
  const within = 1e-5 * stages.written.unit;
  const { list, bias } = headTerms(layer, chosen, "index");
  close(list.map(({ product }) => product), list.map(({ head }) => outputs[head]), { within, of: "what heads write" });
  const total = list.reduce((sum, { product }) => sum + product, bias);
  close([total], [stages.written.numbers[3 * stages.written.width + 5]], { within, of: "what is written" });
  if (!turned) return;
  const query = matrix(own, "query", 1);
  turnsKeepLengths(made.before_positions, query, own.queries);
  const { facts, numbers } = message.layer.around.positions;
  close(turnedForward(made.before_positions, facts, numbers.angles, layer.width), query, { of: "turned again" });
}

/** Rotary positions as a model applies them: (x, y) becomes (x cos − y sin, y cos + x sin). */
function turnedForward(before, { pairs, half }, angles, width) {
  return before.map((number, at) => {
    const [query, column] = [Math.floor(at / width), at % width];
    if (column >= 2 * half) return number;
    const apart = pairs === "halves" ? half : 1;
    const isSecond = Math.floor(column / apart) % 2 === 1;
    const angle = angles[query * half + (pairs === "halves" ? column % half : column >> 1)];
    const other = before[isSecond ? at - apart : at + apart];
    return number * Math.cos(angle) + other * Math.sin(angle) * (isSecond ? 1 : -1);
  });
}

/** And leave row 0 altogether. */
function turnsKeepLengths(before, query, queries) {
  const of = (array, at) => ofHead(array, at, queries);
  close(of(before, 0), of(query, 0));
  assert.throws(() => close(of(before, 3), of(query, 3), { within: 1e-2 }), assert.AssertionError);
  for (let at = 0; at < queries; at++) {
    close([Math.hypot(...of(before, at))], [Math.hypot(...of(query, at))], { within: 0, share: 1e-5, of: `length ${at}` });
  }
}

for (const [name, message] of Object.entries(cases.long)) {
  test(`a long text's weights are made row by row with the same numbers, bit for bit: ${name}`, () => {
    const layer = decodeLayer(message.layer);
    const [whole, rows] = [deriveHead(layer, 1), deriveHead(layer, 1)];
    const steps = ["scores", "scaled", "capped", "biased", "masked"];
    steps.forEach((step) => whole[step]);
    assert.ok(isLarge(layer) && steps.every(whole.has));
    for (const query of [0, 1, 2049, layer.queries - 1]) {
      for (const step of steps) same(rows.row(step, query), rowOf(whole[step], query, layer.keys), step);
    }
    for (const name of ["weights", "sinkWeights"]) same(rows[name], whole[name], name);
    assert.deepEqual(steps.filter(rows.has), []); // no other matrix is kept
  });
}

function same(one, other, of) {
  assert.equal(one.length, other.length, of);
  assert.ok(one.every((value, n) => Object.is(value, other[n])), of);
}
