// The search lists what the visitor means: all that has words of its own by these, and first what is asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cases } from "./cases.mjs";
import { libraries, read } from "./page.mjs";

libraries.set("catalogue", Promise.resolve(cases.catalogue));
const { Finder } = await import("../../../viz/shell/keys/js/finder.js");
const place = document.body.appendChild(document.createElement("div"));
place.innerHTML = read("viz/shell/keys/keys.html");
const finder = new Finder(place.querySelector(".finder"));
finder.take(cases, {});
finder.load();
await finder.catalogue;

/** What is listed for some words, as kind and name. */
function listed(words) {
  finder.box.value = words;
  finder.box.dispatchEvent(new document.defaultView.Event("input", { bubbles: true }));
  const text = (option, part) => option.querySelector(part).textContent;
  return [...finder.list.querySelectorAll("[role=option]")].map((one) => `${text(one, ".kind")} ${text(one, ".name")}`);
}

test("every term, view, question and example is found by its own words", () => {
  const goals = cases.catalogue.filter(({ model }) => !model);
  assert.ok(goals.length > 300);
  const lost = goals.filter(({ kind, name }) => !listed(name).slice(0, 5).includes(`${kind} ${name}`));
  assert.deepEqual(lost, []);
});

test("a term is found by its other names", () => {
  assert.ok(cases.also.length > 0);
  for (const [name, other] of cases.also) assert.ok(listed(other).slice(0, 5).includes(`Term ${name}`), other);
});

test("what is typed finds what is meant among the first three", () => {
  const queries = Object.entries(cases.queries);
  assert.ok(queries.length >= 70);
  const lost = queries.filter(([words, wanted]) => !listed(words).slice(0, 3).some((one) => wanted.some((goal) => one.startsWith(goal))));
  assert.deepEqual(lost.map(([words]) => [words, ...listed(words).slice(0, 3)]), []);
});

const FIRST = {
  softmax: "Term Softmax",
  "why divide by the square root": "Question Why divide by √d, and not by d?",
  minilm: "Model MiniLM",
  "what does it stand for": "Example What “it” stands for",
  "hide the future": "Term Causal mask",
  "flash attention": "Question What is flash attention?",
  sofmtax: "Term Softmax",
};
for (const [words, first] of Object.entries(FIRST)) {
  test(`what is asked comes first: ${words}`, () => assert.ok(listed(words)[0].startsWith(first), listed(words)[0]));
}
