// A layer comes from Python once; one that has been here before is shown at once, and told afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cases, close, pictured } from "./cases.mjs";
import { Stage } from "./stage.mjs";

const [FIRST, SECOND, THIRD] = cases.run;
const WITHIN = { within: 1e-6 };
const told = (layer, lost = false) => ({ name: `decoder.${layer}.self`, lost });
const shows = (stage, words) => assert.ok(stage.text("readout").startsWith(words), stage.text("readout"));
const draws = (stage, { own }, head, name = "weights", panel = 0) => close(stage.drawn(panel), pictured(own, name, head), WITHIN);

/** The first layer of a run, with the others to choose. */
async function offered() {
  return new Stage().send(FIRST.sent);
}

/** The first layer again, after the two others were here. */
async function visited() {
  const stage = await offered();
  for (const layer of [SECOND, THIRD, FIRST]) await stage.send(layer.sent);
  return stage;
}

/** Chooses another layer, which is here. */
async function open(stage, layer) {
  stage.choose({ layer });
  return stage.ready();
}

test("a layer is asked for, and drawn when Python sends it", async () => {
  const stage = await offered();
  await stage.chooseHead(2);
  stage.choose({ layer: 1 });
  assert.equal(stage.shown.place, "decoder.1.self");
  await stage.told();
  assert.deepEqual(stage.asked, [told(1)]);
  shows(stage, "L0H2");
  await stage.send(SECOND.sent);
  shows(stage, "L1H2");
  draws(stage, SECOND, 2);
});

test("a layer that has been here is drawn before Python answers", async () => {
  const stage = await visited();
  await stage.chooseHead(2);
  await open(stage, 1);
  shows(stage, "L1H2");
  draws(stage, SECOND, 2);
  await stage.told();
  assert.deepEqual(stage.asked, [told(1)]);
  await stage.send(SECOND.held);
  await stage.click("stage-output");
  draws(stage, SECOND, 2, "output");
});

test("of two layers chosen quickly the last one is told", async () => {
  const stage = await visited();
  stage.choose({ layer: 1 });
  await open(stage, 2);
  shows(stage, "L2H0");
  draws(stage, THIRD, 0);
  await stage.told();
  assert.deepEqual(stage.asked, [told(2)]);
});

test("what Python sent before it heard of the layer does not take it away", async () => {
  const stage = await visited();
  await open(stage, 2);
  shows(stage, "L2H0");
  await stage.send(FIRST.sent, { revision: 1 });
  assert.equal(stage.shown.place, "decoder.2.self");
  shows(stage, "L2H0");
  await stage.send(THIRD.held);
  await stage.send(FIRST.sent, { revision: 2 }); // and later, a link to the first layer does
  shows(stage, "L0H0");
});

test("the same layer of another run is another one", async () => {
  const stage = await visited();
  await stage.send(cases.other.sent, { run: "other" });
  stage.choose({ layer: 1 });
  await stage.told();
  assert.deepEqual(stage.asked, [told(1)]);
  shows(stage, "L0H0");
});

test("a layer keeps the choice and the check of now", async () => {
  const stage = await visited();
  const cell = { head: 2, stage: "scaled", query: 4, key: 2 };
  await stage.send(FIRST.sent, { selection: cell, revision: 1, check: 7e-7 });
  await open(stage, 1);
  shows(stage, "L1H2");
  stage.holdsCell(cell);
  assert.match(stage.text("check"), /7e−7/);
});

test("a layer that was here before needs no numbers, also after the page was left and opened again", async () => {
  const { changed } = cases;
  const stage = await offered();
  await stage.send(changed.sent);
  await stage.send(FIRST.held);
  assert.ok(stage.part("run-baseline").parentElement.hidden);
  draws(stage, FIRST, 0);
  const again = await new Stage({ again: true }).send(changed.held);
  assert.ok(!again.part("run-baseline").parentElement.hidden);
  draws(again, changed, 0);
});

test("a layer whose numbers had to make room is asked for again", async () => {
  const stage = await offered();
  for (const { sent } of cases.more) await stage.send(sent);
  stage.post(FIRST.held);
  await stage.told();
  assert.deepEqual(stage.asked, [told(0, true)]);
  await stage.send(FIRST.sent);
  shows(stage, "L0H0");
  draws(stage, FIRST, 0);
});

test("an explorer that lost its numbers shows them as soon as they come", async () => {
  const selection = { head: 1, stage: "scaled", query: 3, key: 1 };
  const stage = new Stage();
  stage.post(cases.lost.held, { selection });
  await stage.told();
  assert.deepEqual(stage.asked, [told(2, true)]);
  await stage.send(cases.lost.sent, { selection });
  draws(stage, cases.lost, 1, "scaled");
  stage.holdsCell(selection);
});

/** A switch of the page, by its name. */
function switchNamed(name) {
  const place = document.body.appendChild(document.createElement("div"));
  place.className = `element-container st-key-${name}-2`;
  place.innerHTML = "<label><input type=checkbox><p>Hide the future</p></label>";
  const [input, words] = ["input", "p"].map((tag) => place.querySelector(tag));
  input.checked = true;
  const turn = () => {
    words.click();
    input.checked = !input.checked; // as the page does when it hears of it
  };
  return { place, input, turn };
}

test("a switch that is turned shows the run that came ahead, both ways, before Python answers", async () => {
  const { turned } = cases;
  const before = { own: turned.before };
  const stage = await new Stage().send(turned.sent, { run: "on" });
  const { place, turn, input } = switchNamed("mask");
  draws(stage, before, 0);
  turn();
  await stage.ready();
  draws(stage, turned, 0);
  await stage.send(turned.sent, { run: "on" }); // what was on its way
  draws(stage, turned, 0);
  await stage.send(turned.answer, { run: "off" });
  draws(stage, turned, 0);
  turn();
  await stage.ready();
  draws(stage, before, 0);
  input.checked = !input.checked; // Python has set it back
  await stage.send(turned.answer, { run: "off" });
  draws(stage, turned, 0);
  place.remove();
});

test("a click on a switch that stands as the shown run has it shows nothing else", async () => {
  const { turned } = cases;
  const stage = await new Stage().send(turned.sent, { run: "on" });
  const { place, input } = switchNamed("mask");
  input.dispatchEvent(new document.defaultView.Event("click", { bubbles: true })); // that of the label came before
  await stage.ready();
  draws(stage, { own: turned.before }, 0);
  place.remove();
});
