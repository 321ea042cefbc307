// What is chosen in the explorer: what it shows and says then, and what it reports.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cases, cell, close, matrix, numbersIn, pictured, row, written } from "./cases.mjs";
import { clipboard } from "./page.mjs";
import { Stage } from "./stage.mjs";

const ALL = ["query", "key", "value", "scores", "scaled", "masked", "weights", "output"];
const WITHIN = { within: 1e-6 };
const FAINT = 0.01; // smaller weights have no arc
const WIDEST = 12; // pixels of an arc of weight 1

async function sent(block, ...chosen) {
  const [head, name, query, key] = chosen;
  return new Stage().send(block, { selection: chosen.length ? { head, stage: name, query, key } : {} });
}

const draws = (stage, { own }, head, name = "weights", panel = 0) => close(stage.drawn(panel), pictured(own, name, head), { ...WITHIN, of: name });

test("a head is switched at once and reported once", async () => {
  const stage = await sent(cases.causal.sent);
  stage.choose({ head: 1 });
  await stage.chooseHead(2);
  stage.holdsCell({ head: 2 });
  draws(stage, cases.causal, 2);
  assert.match(stage.text("readout"), /^L2H2/);
  await stage.told();
  assert.deepEqual(stage.reports, [{ head: 2, stage: "weights", query: 3, key: 1, revision: 0 }]);
});

test("a click chooses the cell under it", async () => {
  const stage = await sent(cases.causal.sent);
  await stage.point("click", 4, 2, 6, 6);
  stage.holdsCell({ query: 4, key: 2 });
  await stage.click("stage-value");
  await stage.point("click", 5, 7, 6, 8);
  stage.holdsCell({ query: 4, key: 5 });
});

test("the arrow keys move the cell and stop at the edges", async () => {
  const stage = await sent(cases.causal.sent, 0, "weights", 0, 0);
  await stage.press("figure", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft");
  stage.holdsCell({ query: 1, key: 0 });
  assert.match(stage.text("announcement"), /query 1 “·cat”, key 0 “The”/);
  await stage.told();
  const { query, key } = stage.reports.at(-1); // the only one, where the keys come quickly
  assert.deepEqual([query, key], [1, 0]);
});

test("the top keys are the largest weights and can be chosen", async () => {
  const stage = await sent(cases.causal.sent, 0, "weights", 5, 0);
  const weights = row(cases.causal.own, "weights", 0, 5);
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one] || one - other);
  const seen = order.filter((key) => weights[key] >= 0.005);
  assert.ok(seen.length > 3);
  close(numbersIn(stage.texts("[data-testid=top-keys] button .number")), seen.map((key) => weights[key]), { within: 6e-5 });
  await stage.click("top-key-3");
  stage.holdsCell({ query: 5, key: order[3] });
});

test("a row of scores stands in the order of the text, and bars keep their length when all are divided", async () => {
  const stage = await sent(cases.causal.sent, 0, "scores", 3, 0);
  const lengths = () => stage.all("[data-testid=top-keys] .bar i").map(({ style }) => parseFloat(style.width));
  const before = lengths();
  close(numbersIn(stage.texts("[data-testid=top-keys] button .number")), row(cases.causal.own, "scores", 0, 3), { within: 6e-5 });
  await stage.click("stage-scaled");
  close(numbersIn(stage.texts("[data-testid=top-keys] button .number")), row(cases.causal.own, "scaled", 0, 3), { within: 6e-5 });
  close(lengths(), before, { within: 1e-3 });
  await stage.click("stage-masked");
  assert.equal(stage.all("[data-testid=top-keys] .bar.masked").length, 2); // tokens 4 and 5 come later
});

test("Play goes from the scores to the output, on a row that has masked keys", async () => {
  const stage = await sent(cases.causal.sent, 0, "weights", 5, 0);
  globalThis.matchMedia = () => ({ matches: true }); // nothing moves: a stage a click
  const seen = [];
  for (let click = 0; click < 5; click++) {
    await stage.click("open-play");
    seen.push(stage.root.dataset.stage);
  }
  assert.deepEqual(seen, ["output", "scores", "scaled", "masked", "weights"]);
  assert.ok(Number(stage.root.dataset.query) < 5);
});

test("a token above the map is a row, in cross-attention a key", async () => {
  const stage = await sent(cases.causal.sent);
  await stage.click("column-5");
  stage.holdsCell({ query: 5, key: 1 });
  const cross = await sent(cases.cross.sent, 0, "weights", 1, 6);
  assert.equal(cross.all(".header [role=radio]").length, 7);
  await cross.click("column-3");
  cross.holdsCell({ query: 1, key: 3 });
});

test("a selection of Python counts only under a new revision", async () => {
  const stage = await sent(cases.causal.sent);
  await stage.chooseHead(2);
  await stage.send(cases.causal.sent);
  stage.holdsCell({ head: 2 });
  const selection = { head: 1, stage: "key", query: 0, key: 5 };
  await stage.send(cases.causal.sent, { selection, revision: 1 });
  stage.holdsCell(selection);
});

test("a choice survives another layer as far as it exists", async () => {
  const selection = { head: 2, stage: "scores", query: 5, key: 4 };
  const stage = await new Stage().send(cases.causal.sent, { selection });
  await stage.send(cases.small.sent, { selection });
  stage.holdsCell({ head: 1, stage: "scores", query: 2, key: 2 });
});

test("the numbers are those of head and layer, whatever was drawn before", async () => {
  const stage = await sent(cases.causal.sent);
  await stage.send(cases.fifth.sent);
  assert.match(stage.text("readout"), /^L5H0/);
  draws(stage, cases.fifth, 0);
});

test("a head that was not sent is asked for at once", async () => {
  const { sent: block, fetched } = cases["some heads"];
  const stage = await sent(block, 0, "weights", 3, 1);
  stage.choose({ head: 3 });
  assert.equal(stage.text("notice"), "Fetching head 3 …");
  await stage.toldAtOnce();
  await stage.send(fetched);
  stage.holdsCell({ head: 3 });
  draws(stage, cases["some heads"], 3);
});

test("values of a large layer follow when a stage shows them", async () => {
  const { sent: block, fetched } = cases["without values"];
  const stage = await sent(block);
  assert.match(stage.text("check"), /✓.*summed over the dimensions/);
  stage.part("stage-output").click();
  assert.equal(stage.text("notice"), "Fetching the values of head 0 …");
  await stage.toldAtOnce();
  await stage.send(fetched);
  stage.holdsCell({ stage: "output" });
  draws(stage, cases["without values"], 0, "output");
  assert.doesNotMatch(stage.text("check"), /summed/);
  await stage.send(block); // the answer to an older report, without values: they stay
  await stage.chooseHead(1);
  draws(stage, cases["without values"], 1, "output");
});

for (const block of ["sent", "compared"]) {
  test(`without the values of a large layer every other stage is whole: ${block}`, async () => {
    const stage = await sent(cases["without values"][block]);
    await stage.click("how");
    for (const name of ALL.filter((name) => !["value", "output"].includes(name))) {
      await stage.click(`stage-${name}`);
      stage.holdsCell({ stage: name });
      draws(stage, cases["without values"], 0, name);
      assert.ok(stage.part("numbers-formula").querySelector("math"));
    }
  });
}

test("a mount that ends after the next one takes nothing from it", async () => {
  const stage = await sent(cases.causal.sent);
  const { unmount } = stage;
  stage.post(cases.second.sent);
  unmount();
  await stage.ready();
  draws(stage, cases.second, 0);
  await stage.chooseHead(1);
  draws(stage, cases.second, 1);
});

test("the same message again draws nothing anew", async () => {
  const stage = await sent(cases.causal.sent);
  stage.part("headline").textContent = "untouched";
  await stage.send(cases.causal.sent);
  assert.equal(stage.text("headline"), "untouched");
});

test("a place that closes leaves nothing running", async () => {
  const stage = await sent(cases.causal.sent);
  stage.choose({ head: 1 });
  stage.unmount();
  await stage.told();
  assert.deepEqual(stage.reports, []);
});

test("a choice not yet reported is kept when the place is mounted anew", async () => {
  const stage = await sent(cases.causal.sent);
  stage.choose({ head: 2 });
  stage.unmount();
  await stage.send(cases.causal.sent);
  stage.holdsCell({ head: 2 });
  await stage.told();
  assert.deepEqual(stage.reports.map(({ head }) => head), [2]);
});

test("a choice that Python has not answered is told again by a new mount", async () => {
  // Whether the first report arrived cannot be known there, and the same report twice does no harm.
  const stage = await sent(cases.causal.sent);
  await stage.chooseHead(2);
  await stage.told();
  assert.deepEqual(stage.reports.map(({ head }) => head), [2]);
  stage.unmount();
  await stage.send(cases.causal.sent);
  stage.holdsCell({ head: 2 });
  await stage.told();
  assert.deepEqual(stage.reports.map(({ head }) => head), [2, 2]);
  await stage.send(cases.causal.sent, { selection: { head: 2 } }); // Python's answer
  await stage.told();
  assert.equal(stage.reports.length, 2);
});

test("a masked cell is called so everywhere and is never zero", async () => {
  const stage = await sent(cases.causal.sent, 0, "weights", 1, 4);
  assert.ok(Number.isNaN(stage.drawn()[1 * 6 + 4]));
  await stage.point("pointermove", 1, 4, 6, 6);
  assert.match(stage.text("tooltip"), /masked/);
  assert.match(stage.text("legend"), /masked/);
  stage.openTable();
  assert.equal(stage.texts("tbody tr:nth-child(2) td")[4], "masked");
  await stage.click("stage-masked", "how");
  assert.match(stage.text("details"), /comes later than/);
});

test("scores before the mask show the future too", async () => {
  const stage = await sent(cases.causal.sent, 0, "scores", 1, 4);
  assert.ok(stage.drawn().every(Number.isFinite));
  assert.doesNotMatch(stage.text("legend"), /masked/);
});

test("a masked key that still gets weight shows it", async () => {
  const stage = await sent(cases.leaking.sent);
  close(stage.drawn(), matrix(cases.leaking.own, "weights", 0), WITHIN);
  assert.match(stage.text("legend"), /the weight it gets all the same/);
  await stage.point("pointermove", 0, 5, 6, 6);
  assert.match(stage.text("tooltip"), /\(masked\)/);
});

test("a row whose every key is masked is said to be so", async () => {
  for (const name of ALL) {
    const stage = await sent(cases.closed.sent, 0, name, 3, 1);
    if (!["scores", "scaled", "masked"].includes(name)) assert.match(stage.text("top-keys"), /Every key of this query is masked/);
    await stage.click("how");
    if (name === "weights") assert.match(stage.text("details"), /all weights are 0/);
  }
});

test("the window follows the chosen cell", async () => {
  const stage = await sent(cases.long.sent, 0, "scores", 63, 0);
  await stage.press("figure", "Enter");
  assert.match(stage.text("window"), /Rows 31–94/);
  await stage.press("figure", ...Array(32).fill("ArrowDown"));
  assert.match(stage.text("window"), /Rows 36–99/);
  await stage.press("figure", "Escape");
  assert.match(stage.text("window"), /Every position/);
});

test("the colours span all heads or the shown one", async () => {
  const { sent: block, own } = cases.loud;
  const largest = (head) => Math.max(...matrix(own, "scores", head).map(Math.abs));
  const stage = await sent(block, 0, "scores", 3, 1);
  const ends = () => stage.plot.data[0].zmax;
  close([ends()], [Math.max(largest(0), largest(1), largest(2))], { within: 0, share: 1e-5 });
  await stage.click("span-head");
  close([ends()], [largest(0)], { within: 0, share: 1e-5 });
  await stage.click("stage-weights");
  assert.equal(ends(), 1);
  assert.equal(stage.part("span-head"), null);
});

test("where a few columns are huge the colours end early, and it says so", async () => {
  const { sent: block, numbers, usual } = cases.huge;
  const stage = await sent(block, 0, "norm", 1, 0);
  const end = stage.plot.data[0].zmax;
  assert.ok(usual <= end && end <= 1.01 * usual);
  const beyond = numbers.filter((number) => Math.abs(number) > end).length;
  const count = (number) => number.toLocaleString("en");
  assert.ok(stage.text("legend").includes(`${count(beyond)} of ${count(numbers.length)} numbers lie beyond`));
  await stage.click("stage-weights");
  assert.doesNotMatch(stage.text("legend"), /beyond/);
});

/** The arcs that are shown. */
function arcs(stage) {
  const shown = stage.all(".arcs:not(.ghosts) path").filter(({ style }) => style.display !== "none");
  return shown.map((path) => ({
    ...{ token: Number(path.dataset.token), weight: Number(path.dataset.weight) },
    ...{ width: Number(path.getAttribute("stroke-width")), stroke: path.getAttribute("stroke") },
  }));
}

test("the model's own weights have their arcs, each as wide as its weight", async () => {
  const stage = await sent(cases.house.sent, 7, "weights", 12, 1);
  const weights = [...row(cases.house.own, "weights", 7, 12)];
  const found = arcs(stage);
  assert.deepEqual(found.map(({ token }) => token), [...weights.keys()].filter((key) => weights[key] >= FAINT));
  close(found.map(({ weight }) => weight), found.map(({ token }) => weights[token]));
  close(found.map(({ width }) => width), found.map(({ token }) => WIDEST * weights[token]), { within: 1e-3 });
});

test("a long text has no arcs", async () => {
  for (const { sent: block, own } of cases.shaded) {
    assert.deepEqual(arcs(await sent(block, 0, "weights", own.queries - 1, 0)), []);
  }
});

test("the arc to the first token is grey", async () => {
  const stage = await sent(cases.open.sent, 0, "weights", 3, 1);
  const { 0: first, ...others } = Object.fromEntries(arcs(stage).map(({ token, stroke }) => [token, stroke]));
  assert.equal(others[1], others[2]);
  assert.notEqual(first, others[1]);
});

test("the card follows the head and leads to its cell", async () => {
  const stage = await sent(cases.hero.sent, 0, "weights", 3, 1);
  await stage.point("click", 4, 2, 6, 6);
  await stage.chooseHead(2);
  close(numbersIn(stage.texts(".card dd")).slice(2), [cell(cases.causal.own, "weights", 2, 4, 2)], { within: 6e-5 });
  const links = Object.fromEntries(stage.all(".card a").map((link) => [link.textContent, link.getAttribute("href")]));
  assert.equal(links["why?"], "/?show=Why&place=decoder.2.self&head=2&query=4&key=2");
  assert.equal(links.carries, "/"); // the session knows the place
});

test("the card is copied as text", async () => {
  let copied = "";
  clipboard.writeText = async (text) => (copied = text);
  const stage = await sent(cases.hero.sent, 0, "weights", 4, 2);
  await stage.press("figure", "Enter");
  await stage.click("copy-cell");
  delete clipboard.writeText;
  assert.equal(stage.text("copy-cell"), "Copied");
  assert.ok(copied.startsWith("L2H0: ·cat → ·saw, score "), copied);
  assert.ok(copied.endsWith(`weight ${written(cell(cases.causal.own, "weights", 0, 4, 2))}`), copied);
});

test("simple detail has all stages of a weight, and a number that asks how it is computed", async () => {
  const strip = () => stage.texts("[data-testid=stages] [role=radio]");
  const stage = await sent(cases.hero.simple, 0, "weights", 3, 1);
  assert.deepEqual(strip(), ["scores", "scaled", "masked", "weights", "output"]);
  const weight = cell(cases.causal.own, "weights", 0, 3, 1);
  assert.ok(stage.text("readout").endsWith(`weight ${written(weight, 2)}`));
  assert.equal(stage.text("how"), `How is ${written(weight, 2)} computed?`);
  assert.equal(stage.part("formula").textContent, "");
  await stage.click("how");
  assert.equal(stage.part("how").ariaExpanded, "true");
  assert.ok(stage.latex("formula"));
  await stage.send(cases.hero.simple, { selection: { stage: "query" }, revision: 1 });
  assert.deepEqual(strip(), ["Q", "scores", "scaled", "masked", "weights", "output"]); // as the link says
});

test("full detail compares side by side where there is room", async () => {
  globalThis.innerWidth = 1600;
  const stage = await new Stage().send(cases.beside.full, { run: "compared" });
  const panels = () => stage.plot.data.length;
  assert.equal(panels(), 3);
  await stage.send(cases.beside.simple, { run: "compared" });
  assert.equal(panels(), 1);
  await stage.send(cases.beside.full, { run: "compared" });
  assert.ok(stage.root.classList.contains("split"));
  globalThis.innerWidth = 1599;
  dispatchEvent(new Event("resize"));
  await stage.ready();
  assert.ok(!stage.root.classList.contains("split"));
  assert.equal(panels(), 1);
  globalThis.innerWidth = 1040;
});
