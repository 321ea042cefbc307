// What Python wrote for a file of laws: messages, and beside them the numbers of the trace itself.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { unpacked } from "../../../viz/explorer/js/message.js";

const read = () => unpacked(new Uint8Array(readFileSync(process.env.CASES)));
export const cases = process.env.CASES ? read() : assert.fail("tests/viz/in_node/test_in_node.py runs these laws");

/** One head's part of an array that all heads have. */
export function ofHead(array, head, heads) {
  const each = array.length / heads;
  return array.subarray(head * each, (head + 1) * each);
}

/** A matrix of one head, as the trace has it. */
export function matrix(own, name, head) {
  return ofHead(own[name], head, own.heads);
}

/** One row of it. */
export function row(own, name, head, query) {
  return ofHead(matrix(own, name, head), query, own.queries);
}

/** One number of it. */
export function cell(own, name, head, query, key) {
  return row(own, name, head, query)[key];
}

/** Holds numbers to the expected ones, as numpy's assert_allclose does; two of the same infinity are equal, and so
 *  are two that are none. */
export function close(shown, expected, { within = 1e-5, share = 0, of = "" } = {}) {
  assert.equal(shown.length, expected.length, `${of}: how many numbers`);
  for (let n = 0; n < shown.length; n++) {
    const isClose = Math.abs(shown[n] - expected[n]) <= within + share * Math.abs(expected[n]);
    assert.ok(isClose || Object.is(Number(shown[n]), Number(expected[n])), `${of}: number ${n} is ${shown[n]}, not ${expected[n]}`);
  }
}

/** The numbers of texts, whose minus is the typographer's. */
export function numbersIn(texts) {
  return texts.map((text) => Number(text.replace("−", "-").replace("∞", "Infinity")));
}

/** A number as it is written with these decimals, its minus that of Python. */
export function written(number, decimals = 4) {
  return number.toFixed(decimals);
}

/** A matrix as the picture has it, with a gap where the mask hides a cell. */
export function pictured(own, name, head) {
  const hides = ["masked", "weights"].includes(name) && own.mask;
  return Array.from(matrix(own, name, head), (number, at) => (hides && !own.mask[at] ? NaN : number));
}
