// The numbers and words beside the picture: formula, check, table, effect of a change, readout, code.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { cases, cell, close, matrix, numbersIn, pictured, row, written } from "./cases.mjs";
import { claims } from "./equations.mjs";
import { libraries } from "./page.mjs";
import { loadLibraries, Stage } from "./stage.mjs";

const ALL = ["query", "key", "value", "scores", "scaled", "masked", "weights", "output"];
const LATER = ["query", "key", "value", "scores", "scaled", "capped", "biased", "masked", "weights", "output"];
const PRINTED = 6e-5; // four decimals, and the rounding of the trace's own numbers
const strip = (stage) => stage.all(".strip [role=radio]").map((radio) => radio.dataset.testid.replace("stage-", ""));

const { innerWidth } = globalThis;

afterEach(() => Object.assign(globalThis, { innerWidth }));

/** What is sent, with how its number is computed. */
async function sent(block, ...chosen) {
  const [head, name, query, key] = chosen;
  const selection = chosen.length ? { head, stage: name, query, key } : {};
  const stage = await new Stage().send(block, { selection });
  await stage.click("how");
  return stage;
}

/** In a window that has room for both runs and their difference. */
function sentBeside(...what) {
  globalThis.innerWidth = 1600;
  return sent(...what);
}

test("the numbers that the softmax reads are named after their step", async () => {
  for (const [name, step] of [["causal", "masked"], ["open", "scaled"], ["staged open", "biased"]]) {
    const stage = await sent(cases[name].sent, 1, "weights", 4, 2);
    assert.equal(stage.texts("[data-testid=details] .term.head > *")[1], step);
  }
});

test("the filled formula holds the cell's own numbers, and its list every product", async () => {
  const { sent: block, own } = cases.causal;
  const stage = await sent(block, 1, "scores", 4, 2);
  const [q, k] = [row(own, "query", 1, 4), row(own, "key", 1, 2)];
  const products = [...q].map((number, n) => number * k[n]);
  const bySize = products.toSorted((one, other) => Math.abs(other) - Math.abs(one));
  assert.ok(stage.latex().includes(written(cell(own, "scores", 1, 4, 2))));
  assert.ok(stage.latex().includes(written(bySize[0])));
  const listed = () => numbersIn(stage.texts("[data-testid=details] .term:not(.head) :nth-child(5)"));
  close(listed(), bySize, { within: PRINTED });
  await stage.click("order-index");
  close(listed(), products, { within: PRINTED });
  await stage.click("stage-weights");
  assert.ok(stage.latex().includes(written(cell(own, "weights", 1, 4, 2))));
  await stage.click("stage-output");
  assert.ok(stage.latex().includes(written(cell(own, "context", 1, 4, 0))));
});

test("an equals sign stands where the printed digits give the result", async () => {
  const found = [];
  for (const block of cases.evaluated) {
    for (const [query, key] of [[5, 1], [3, 3], [1, 4]]) {
      const stage = await sent(block, 1, "query", query, key);
      for (const name of ALL) {
        await stage.click(`stage-${name}`);
        stage.holdsCell({ stage: name });
        found.push(...claims(stage.latex()));
      }
    }
  }
  assert.deepEqual(found.filter(({ sign, holds }) => (sign === "=") !== holds), []);
  assert.ok(found.length > 90);
  assert.deepEqual(new Set(found.map(({ sign }) => sign)), new Set(["=", "\\approx"]));
});

test("a long run is checked after its picture", async () => {
  const stage = await new Stage().send(cases.causal.sent, { check: null, checked: false, run: "long" });
  assert.match(stage.text("check"), /the whole run is being checked/);
  assert.deepEqual(stage.checks, ["long"]);
  await stage.send(cases.causal.sent, { check: 5e-7, run: "long" });
  assert.match(stage.text("check"), /over the whole run the largest difference is 5e−7/);
  await stage.chooseHead(1);
  assert.match(stage.text("check"), /H1, equals the model's own output.*5e−7/);
  await stage.send(cases.other.sent, { check: 2e-7 });
  assert.match(stage.text("check"), /2e−7/);
});

test("the check tells a true output from a wrong one, also by its sums", async () => {
  const stage = await sent(cases.causal.sent);
  assert.match(stage.text("check"), /✓.*3e−7/);
  await stage.send(cases.wrong.sent);
  assert.match(stage.text("check"), /✗.*2e−2/);
  assert.match((await sent(cases["wrong sums"].sent)).text("check"), /✗/);
});

test("the table has the numbers under their tokens", async () => {
  const stage = await sent(cases.causal.sent, 0, "scores", 0, 0);
  assert.deepEqual(stage.all("td"), []);
  stage.openTable();
  close(numbersIn(stage.texts("tbody td")), matrix(cases.causal.own, "scores", 0), { within: PRINTED });
  assert.equal(stage.texts("thead th")[4], "4 ·cat");
});

test("the table of a long text is a window around the cell", async () => {
  const stage = await sent(cases.long.sent, 0, "scores", 99, 50);
  stage.openTable();
  assert.equal(stage.all("tbody tr").length, 64);
  assert.match(stage.texts("caption")[0], /rows 36–99, columns 18–81/);
});

test("without KaTeX the formula is plain text", async () => {
  libraries.set("katex", Promise.resolve(null));
  const stage = await sent(cases.causal.sent, 0, "scores", 4, 2);
  loadLibraries();
  assert.equal(stage.text("formula"), "score_ij = q_i · k_j = sum over c of q_ic k_jc");
  assert.match(stage.text("numbers-formula"), /query 4/);
});

test("baseline, changed and difference lie side by side, and go again", async () => {
  const [before, after] = [cases.causal.own, cases.changed.own];
  const stage = await sentBeside(cases.changed.compared, 0, "weights", 4, 2);
  const within = { within: 1e-6 };
  close(stage.drawn(0), pictured(before, "weights", 0), within);
  close(stage.drawn(1), matrix(after, "weights", 0), within);
  const gaps = matrix(after, "weights", 0).map((weight, at) => weight - matrix(before, "weights", 0)[at]);
  close(stage.drawn(2), gaps, within);
  assert.deepEqual(stage.texts(".caption"), ["baseline: unchanged run", "changed run", "changed − baseline"]);
  await stage.send(cases.causal.sent, { revision: 1 });
  assert.equal(stage.plot.data.length, 1);
  assert.ok(stage.part("effect").hidden);
});

test("the effect is given before and after, for the row and on average", async () => {
  const stage = await sent(cases.changed.compared, 0, "weights", 4, 2);
  const entropy = (weights) => weights.reduce((sum, weight) => sum - (weight > 0 ? weight * Math.log(weight) : 0), 0);
  const mean = (own, measure) => [0, 1, 2, 3, 4, 5].reduce((sum, query) => sum + measure([...row(own, "weights", 0, query)]), 0) / 6;
  const largest = (weights) => Math.max(...weights);
  const measures = [
    (own) => cell(own, "weights", 0, 4, 2),
    (own) => entropy([...row(own, "weights", 0, 4)]),
    (own) => largest(row(own, "weights", 0, 4)),
    (own) => mean(own, entropy),
    (own) => mean(own, largest),
  ];
  measures.forEach((measure, n) => {
    const [before, after] = [cases.causal.own, cases.changed.own].map(measure);
    const shown = numbersIn(stage.texts(`[data-testid=effect] tbody tr:nth-child(${n + 1}) td`));
    close(shown, [before, after, after - before], { within: PRINTED, of: `line ${n}` });
  });
});

test("a cell that one run masks has no difference of masked scores", async () => {
  const stage = await sentBeside(cases.changed.compared, 0, "masked", 1, 4);
  const drawn = stage.drawn(2);
  assert.ok(Number.isNaN(drawn[1 * 6 + 4]) && Number.isFinite(drawn[4 * 6 + 1]));
  await stage.point("pointermove", 1, 4, 6, 6);
  assert.match(stage.text("tooltip"), /baseline: masked/);
});

test("equal runs are said to be equal", async () => {
  const stage = await sentBeside(cases.equal.sent, 0, "scores", 1, 4);
  assert.match(stage.text("legend"), /both runs are equal here/);
});

test("cap, bias and sink have pictures, filled formulas, words and files", async () => {
  const { sent: block, own } = cases.all;
  const stage = await sent(block, 1, "capped", 3, 2);
  assert.deepEqual(strip(stage), LATER);
  for (const name of ["capped", "biased"]) {
    await stage.click(`stage-${name}`);
    assert.ok(stage.latex().includes(written(cell(own, name, 1, 3, 2))));
    close(stage.drawn(), matrix(own, name, 1));
  }
  await stage.click("stage-weights");
  const taken = [...matrix(own, "sinkWeights", 1)];
  const drawn = [0, 1, 2, 3, 4, 5].map((query) => stage.drawn().slice(7 * query, 7 * query + 7));
  close(drawn.map((weights) => weights.at(-1)), taken, { within: 1e-6 });
  close(drawn.map((weights) => weights.reduce((sum, weight) => sum + (weight || 0), 0)), Array(6).fill(1));
  const share = written(taken[3]);
  assert.ok(stage.latex().includes(share));
  assert.equal(stage.all("[data-mark=sink]").length, 1);
  const capped = written(cell(own, "capped", 1, 3, 2)).replace("-", "−");
  assert.ok(stage.text("readout").includes(`capped ${capped}`));
  assert.ok(stage.text("readout").includes(`sink ${share}`));
  assert.ok(stage.text("sink").includes(share));
  await stage.point("pointermove", 1, 6, 6, 7);
  assert.match(stage.text("tooltip"), /sink of this head/);
  await stage.point("click", 1, 6, 6, 7);
  stage.holdsCell({ query: 1, key: 2 }); // the sink is no key
  const file = await stage.file("csv");
  assert.ok(file.startsWith("\ufeff")); // else spreadsheets read its letters in another encoding
  const rows = file.trim().split("\n").map((line) => line.split(","));
  assert.match(rows[0].at(-1), /sink/);
  close(rows.slice(1).map((cells) => Number(cells.at(-1))), taken, { within: 1e-6 });
  await stage.click("stage-masked");
  assert.match(stage.text("look"), /A sliding window of 2/);
  await stage.click("column-5");
  await stage.press("figure", "ArrowLeft");
  assert.match(stage.text("details"), /lies outside of the window of 2/);
});

test("a run without its cap and sink is compared with the one that has them", async () => {
  const stage = await sentBeside(cases.bare.compared, 1, "weights", 3, 2);
  const sinks = (panel) => stage.drawn(panel).filter((_, at) => at % 7 === 6);
  assert.deepEqual(strip(stage), LATER);
  close(sinks(0), matrix(cases.all.own, "sinkWeights", 1), { within: 1e-6 });
  close(sinks(1), Array(6).fill(0));
  await stage.click("stage-capped");
  assert.match(stage.text("formula"), /not capped/);
  close(stage.drawn(1), matrix(cases.bare.own, "scaled", 1));
  await stage.send(cases.causal.sent, { revision: 1 });
  assert.deepEqual(strip(stage), LATER.filter((name) => !["capped", "biased"].includes(name)));
});

test("what stands around the heads is drawn, and fetched where it is large", async () => {
  const { sent: first, fetched, norm, stages, heads, width } = cases.around;
  const stage = await sent(first, 1, "weights", 3, 2);
  assert.equal(stage.part("stage-written").title, "opens when chosen");
  stage.part("stage-norm").click();
  assert.equal(stage.text("notice"), "Fetching the vectors of this stage …");
  await stage.toldAtOnce();
  await stage.send(fetched, { selection: { head: 1, query: 3, key: 2 } });
  norm.forEach((numbers, panel) => close(stage.drawn(panel), numbers, { within: 1e-4 }));
  assert.equal(stage.part("stage-written").title, "");
  assert.match(stage.text("legend"), /before/);
  assert.equal(stage.text("stage-positions"), "stream");
  for (const [name, numbers] of Object.entries(stages)) {
    await stage.click(`stage-${name}`);
    stage.holdsCell({ stage: name });
    close(stage.drawn(), numbers, { within: 1e-4 });
    assert.ok(stage.latex().includes(written(numbers[3 * width])), name);
  }
  assert.match(stage.text("details"), /The stream received/);
  assert.equal(stage.all("[data-testid=details] .term:not(.head)").length, heads);
});

test("words that name a row, a cell or a line ring it", async () => {
  const stage = await sent(cases.claim.sent, 1, "query", 3, 1);
  const said = "What to look for. Look at the last token, then at “·cat”, the line below the diagonal and head 2.";
  assert.equal(stage.text("look-for"), said);
  const rings = () => stage.all(".rings [data-ring]").map((ring) => ring.dataset.ring);
  await follow(stage, "the last token");
  stage.holdsCell({ stage: "weights", query: 3, key: 1 }); // a matrix of tokens; the chosen cell stays
  assert.deepEqual(rings(), ["5,null"]);
  await follow(stage, "“·cat”");
  assert.deepEqual(rings(), ["5,1"]);
  await follow(stage, "the line below the diagonal");
  assert.deepEqual(rings(), [1, 2, 3, 4, 5].map((at) => `${at},${at - 1}`));
});

test("a claim stands there for its own head only", async () => {
  const stage = await sent(cases.claim.sent, 0, "weights", 3, 1);
  assert.ok(stage.part("look-for").hidden && stage.text("look-for") === "");
  await stage.chooseHead(1);
  assert.ok(!stage.part("look-for").hidden);
  await follow(stage, "head 2");
  stage.holdsCell({ head: 2 });
  assert.ok(stage.part("look-for").hidden);
});

async function follow(stage, words) {
  stage.all(".claim button").find((link) => link.textContent === words).click();
  await stage.ready();
}

test("the readout is the line that Python writes", async () => {
  for (const { sent: block, lines } of cases.readouts) {
    for (const [query, key, line] of lines) {
      assert.equal((await sent(block, 1, "weights", query, key)).text("readout"), line);
    }
  }
});

test("the shown lines give the shown number, and the script is the one that is tried", async () => {
  const { sent: block, stages } = cases.code;
  const stage = await sent(block, 1, "weights", 4, 2);
  await stage.click("reading-code");
  for (const { stage: name, style, lines, gives, script } of stages) {
    await stage.click(`stage-${name}`, `style-${style}`);
    assert.equal(stage.part(`style-${style}`).ariaChecked, "true");
    assert.deepEqual(stage.texts("[data-testid=code] .lines code"), lines);
    close(numbersIn([stage.text("code-value")]), [gives], { within: 5.01e-5, of: `${name}, ${style}` });
    await stage.click("copy-script"); // no clipboard here: the script is shown
    assert.ok(!stage.part("script").hidden);
    assert.equal(stage.part("script").textContent, script);
  }
  await stage.click("style-loops");
  await stage.press("figure", "ArrowUp");
  assert.match(stage.text("code"), /weights\[1, 3\]/);
  await stage.click("stage-query");
  assert.equal(stage.text("code"), "There is no code for this stage here.");
  await stage.click("reading-formula");
  assert.ok(stage.part("code").hidden);
});
