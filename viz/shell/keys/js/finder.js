// The search: pages, views, questions, terms, worked examples, examples, models, heads and tokens, ranked anew with each
// letter that is typed.

import Combobox from "@github/combobox-nav";
import MiniSearch from "minisearch";
import { element, span } from "../../../explorer/js/elements.js";
import { isShownAtOnce } from "../../../explorer/js/head_events.js";
import { absolute, once } from "../../../explorer/js/libraries.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("finder");

const LONGEST_PAIR = 14; // letters
const SHOWN = 40; // goals in the list; more are found by another word
const PAGES = { PageDown: 8, PageUp: -8 }; // options that these keys move by
const FIELDS = ["name", "also", "note"];
const SILENT = new Set("a an and are be can do does for how i in is me my of or show the to what where which work you your".split(" "));
const FIRST = { Page: 1.6, Term: 1.3, Head: 1.3, Token: 1.3, Example: 1.2, Question: 1.2 }; // where names fit equally well
const ENDINGS = [ // of a plural, and the ending of one thing
  [/(?<=[a-z]{2})trices$/, "trix"],
  [/(?<=[a-z]{3})ies$/, "y"],
  [/(?<=(ss|x|ch|sh))es$/, ""],
  [/(?<=[a-z]{3})(?<![su])s$/, ""],
];
const RANKED = {
  boost: { name: 4, also: 2 },
  prefix: true,
  fuzzy: (word) => (word.length > 6 ? 2 : word.length > 4 && 1), // letters
  boostDocument: (id, word, { kind }) => FIRST[kind] ?? 1,
};

export class Finder {
  goals = [];

  constructor(dialog) {
    this.dialog = dialog;
    this.box = dialog.querySelector("input");
    this.list = dialog.querySelector("ul");
    this.count = dialog.querySelector(".count");
    // Before the combobox, which begins anew at any key.
    this.box.onkeydown = (event) => this.wait(event) || this.turnPage(event);
    const nav = { firstOptionSelectionMode: "selected", tabInsertsSuggestions: false };
    this.options = new Combobox(this.box, this.list, nav);
    this.options.start();
    this.box.oninput = () => this.find(); // after the combobox, which forgets the chosen option
    this.list.addEventListener("combobox-commit", ({ target }) => this.go(target));
    dialog.onclick = ({ target }) => target === dialog && dialog.close();
  }

  /** Takes what can be gone to, and whom to tell: `open` a page, `jump` to a goal, `look` where heads are still unknown. */
  take(data, told) {
    this.told = told;
    this.isWhole = Boolean(data.layers);
    this.data = data;
    this.isCounted = false;
    if (this.dialog.open) this.find();
  }

  open() {
    this.load();
    this.isChosen = false;
    if (!this.isWhole) this.told.look(); // the model has been loaded since, or will be
    this.box.value = "";
    this.dialog.showModal();
    this.find();
  }

  /** Reads what is the same for all visitors, once a page. Without it heads and tokens are still listed. */
  load() {
    const read = async () => (await fetch(absolute(this.data.catalogue))).json();
    this.catalogue ??= once("catalogue", read).then((goals) => {
      this.known = goals ?? [];
      this.isCounted = false;
      if (!this.dialog.open) return;
      this.find();
      if (this.isChosen) this.list.querySelector("[aria-selected=true]")?.click();
    });
  }

  /** Whether Enter has to wait for the catalogue: what was typed may stand first in it. */
  wait(event) {
    this.isChosen = event.key === "Enter" && !event.isComposing && !this.known;
    if (!this.isChosen) return false;
    event.preventDefault();
    event.stopImmediatePropagation();
    return true;
  }

  /** Numbers the goals for the search, when it is opened after they have changed. */
  number() {
    if (this.isCounted) return;
    this.isCounted = true;
    this.goals = [...(this.known ?? []).filter(({ model }) => isHere(model, this.data)), ...goalsOf(this.data)];
    const written = { tokenize: wordsAndPairs, processTerm: termOf };
    this.index = new MiniSearch({ fields: FIELDS, storeFields: ["kind"], ...written, searchOptions: { tokenize: wordsOf } });
    this.index.addAll(this.goals.map((goal, id) => ({ id, ...goal })));
  }

  /** Lists the goal of this name, those that hold every word that is typed, then some of them; all where none is. */
  find() {
    this.number();
    const typed = this.box.value.trim();
    const ids = ["AND", "OR"].flatMap((combineWith) => this.index.search(typed, { ...RANKED, combineWith }));
    const said = (text) => termsOf(text).join(" ");
    const isNamed = ({ kind, name, also = "" }) =>
      ["Term", "Question"].includes(kind)
        ? [name, ...also.split("; ")].some((one) => said(one) === said(typed))
        : folded(name) === folded(typed);
    const place = ({ kind, name }) => (said(name) === said(typed) ? 0 : kind === "Term" ? 1 : 2);
    const named = this.goals.filter(isNamed).sort((one, other) => place(one) - place(other));
    const ranked = [...new Set([...named, ...ids.map(({ id }) => this.goals[id])])];
    const found = termsOf(typed).length ? ranked : this.goals;
    this.found = found.slice(0, SHOWN);
    this.list.replaceChildren(...this.found.map(optionOf));
    const more = found.length - this.found.length;
    const none = this.known ? say("nothing_app_words") : say("catalogue_comes");
    this.count.textContent = found.length ? (more ? `and ${more} more` : "") : none;
    this.options.resetSelection();
  }

  turnPage(event) {
    if (!(event.key in PAGES)) return;
    const options = [...this.list.children];
    const at = options.findIndex((option) => option.ariaSelected === "true");
    const to = Math.max(Math.min(at + PAGES[event.key], options.length - 1), 0);
    if (to !== at) this.options.navigate(to - at);
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  go(option) {
    const goal = this.found[[...this.list.children].indexOf(option)];
    this.dialog.close();
    if (typeof goal.to === "string") this.told.open(goal.to);
    else if (goal.kind !== "Head" || !isShownAtOnce(goal.to)) this.told.jump(goal.to);
  }
}

/** What depends on the open model and sentence, and the models. */
function goalsOf({ models = [], layers = [], tokens = [] }) {
  const heads = layers.flatMap(([place, layer, count]) =>
    Array.from({ length: count }, (_, head) => ({ kind: "Head", name: `${layer}H${head}`, to: { place, head } })),
  );
  return [
    ...models.map(([name, title, note]) => ({ kind: "Model", name: title, note, to: `/?model=${encodeURIComponent(name)}` })),
    ...heads,
    ...tokens.map((label, token) => ({ kind: "Token", name: `${token} ${label}`, to: { token } })),
  ];
}

function isHere(name, { models = [] }) {
  return !name || models.some(([known]) => known === name);
}

/** The words of a text that count. */
function termsOf(text) {
  return wordsOf(text).map(termOf).filter(Boolean);
}

/** A text as it is compared: without accents and capitals, numbers without commas, d_k and dₖ as one word. */
function folded(text) {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.replace(/(?<=\d),(?=\d{3})/g, "").replace(/(?<=\p{L})_(?=\p{L})/gu, "");
}

function wordsOf(text) {
  return folded(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

/** The words, and of neighbours of few letters in all the two as one word: "layernorm" finds "layer norm". */
function wordsAndPairs(text) {
  const words = wordsOf(text);
  const pairs = words.slice(1).map((word, before) => words[before] + word);
  return [...words, ...pairs.filter((pair) => pair.length <= LONGEST_PAIR)];
}

/** A word as the search compares it: without the ending of a plural; null for one that says nothing. */
function termOf(word) {
  if (!word || SILENT.has(word)) return null;
  const ending = ENDINGS.find(([end]) => end.test(word));
  return ending ? word.replace(...ending) : word;
}

function optionOf({ kind, name, note = "" }, n) {
  const words = span("words", span("name", name), span("note", note));
  return element("li", { role: "option", id: `goal-${n}` }, span("kind", kind), words);
}
