// The beats show the row's own numbers, also where the mask or dropout makes it an odd one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cases, close, matrix, numbersIn, row } from "./cases.mjs";
import { Stage } from "./stage.mjs";

const PRINTED = { within: 6e-5 };

async function played(block, query) {
  const stage = await new Stage().send(block, { selection: { head: 1, query, key: 0 } });
  await stage.click("open-play");
  return stage;
}

/** The numbers that stand beside the keys at a moment of the beats. */
function numbersAt(stage, moment, beats = 6) {
  stage.part("scrub").value = String(moment);
  stage.part("scrub").oninput();
  assert.ok(stage.text("beat").includes(`${Math.max(Math.ceil(moment), 1)} of ${beats}`));
  return numbersIn(stage.texts(".beatnumber").filter((text) => text !== "–"));
}

const says = (stage) => stage.text("beat-says");
const scales = (stage, parts, axis) => stage.all(parts).map(({ style }) => Number(new RegExp(`scale${axis}\\((.*)\\)`).exec(style.transform)[1]));
const bars = (stage) => scales(stage, ".beatrow .bar", "X");

test("each beat shows the numbers of the row", async () => {
  const { sent, own } = cases.seven;
  const stage = await played(sent, 4);
  const of = (name) => row(own, name, 1, 4);
  const largest = Math.max(...of("masked"));
  const exponentials = of("masked").map((score) => Math.exp(score - largest));
  const rows = [of("scores"), of("scaled"), of("masked"), exponentials, of("weights"), of("weights")];
  rows.forEach((numbers, n) => close(numbersAt(stage, n + 1), numbers, { ...PRINTED, of: `beat ${n + 1}` }));
  assert.match(says(stage), /times its weight, goes into the output/);
});

test("the last beat mixes the values with what dropout left", async () => {
  const { sent, own } = cases.dropping;
  const stage = await played(sent, 5);
  const [weights, applied] = ["weights", "dropped"].map((name) => row(own, name, 1, 5));
  assert.ok(Math.max(...weights.map((weight, key) => Math.abs(weight - applied[key]))) > 0.1);
  close(numbersAt(stage, 5), weights, PRINTED);
  close(numbersAt(stage, 6), applied, PRINTED);
  assert.match(says(stage), /Dropout has set some weights to 0/);
  const most = Math.max(...applied, 1);
  close(scales(stage, ".beatrow .held", "Y"), applied.map((weight) => weight / most), { within: 1e-4 });
});

test("a row whose every key is masked is never said to sum to one", async () => {
  const stage = await played(cases.closed.sent, 3);
  for (const beat of [5, 6]) {
    close(numbersAt(stage, beat), Array(6).fill(0));
    assert.match(says(stage), /Every key of this row is masked/);
    assert.doesNotMatch(says(stage), /sum to 1/);
  }
});

test("a mask value is said as it is", async () => {
  const stage = await played(cases.leaking.sent, 2);
  close(numbersAt(stage, 3).slice(3), [-1, -1, -1]);
  assert.match(says(stage), /becomes −1/);
  await stage.send(cases.leaking.sent, { selection: { head: 1, query: 5, key: 0 }, revision: 1 });
  assert.match(says(stage), /No key is masked in this row/);
});

test("of a long row the keys with the largest weights are shown", async () => {
  const stage = await played(cases.forty.sent, 39);
  const weights = row(cases.forty.own, "weights", 1, 39);
  const largest = [...weights.keys()].sort((one, other) => weights[other] - weights[one] || one - other).slice(0, 24);
  close(numbersAt(stage, 5), largest.sort((one, other) => one - other).map((key) => weights[key]), PRINTED);
  assert.match(says(stage), /24 keys with the largest weights, of 40/);
});

test("cap and bias have beats of their own, and the sink its share", async () => {
  const { sent, own } = cases.all;
  const stage = await played(sent, 3);
  for (const [beat, name] of [[3, "capped"], [4, "biased"], [7, "weights"]]) {
    const shown = numbersAt(stage, beat, 8).slice(0, own.queries); // the sink has a row of its own below them
    close(shown, row(own, name, 1, 3), { ...PRINTED, of: name });
  }
  const taken = matrix(own, "sinkWeights", 1)[3].toFixed(4);
  assert.ok(says(stage).includes(`with the sink's ${taken} they sum to 1`));
});

test("after the scaling the bars are drawn longer, and it says how much", async () => {
  const { sent, own } = cases.causal;
  const stage = await played(sent, 5);
  const [scores, scaled] = ["scores", "scaled"].map((name) => row(own, name, 1, 5));
  const [unit, least] = [scores, scaled].map((numbers) => Math.max(...numbers.map(Math.abs)));
  const times = Math.floor(unit / least);
  assert.ok(times > 1);
  const said = [["dot product", scores, 1], ["multiplied by", scaled, 1], [`the bars are drawn ${times} times as long`, scaled, times]];
  said.forEach(([words, numbers, longer], n) => {
    numbersAt(stage, n + 1);
    assert.ok(says(stage).includes(words));
    close(bars(stage), numbers.map((number) => (number / unit) * longer), { within: 1e-4 });
  });
});

test("a sink has a row of its own from the softmax on", async () => {
  const { sent, own } = cases.sinks;
  const stage = await played(sent, 5);
  const rows = stage.texts(".beatrows .beatrow");
  assert.equal(rows.length, 7);
  assert.match(rows.at(-1), /sink/);
  for (const beat of [1, 2, 6]) {
    assert.equal(numbersAt(stage, beat).length, 6);
    assert.equal(stage.texts(".beatnumber").at(-1), "–");
    assert.equal(bars(stage).at(-1), 0);
  }
  const weights = [...row(own, "weights", 1, 5), matrix(own, "sinkWeights", 1)[5]];
  close([numbersAt(stage, 3).at(-1)], [cases.sinks.learned[1]], PRINTED);
  close(numbersAt(stage, 5), weights, PRINTED);
  close([weights.reduce((sum, weight) => sum + weight)], [1]);
});

test("halfway through a beat half of the scores are there", async () => {
  const stage = await played(cases.causal.sent, 5);
  numbersAt(stage, 0.5);
  assert.equal(stage.all(".beatnumber").map(({ style }) => style.opacity).join(""), "111000");
});
