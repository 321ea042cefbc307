// A list of every page, head and token, which gets shorter with each letter that is typed.

import Combobox from "@github/combobox-nav";
import { matchSorter, rankings } from "match-sorter";
import { element, span } from "../../../explorer/js/elements.js";
import { isShownAtOnce } from "../../../explorer/js/head_events.js";

const SHOWN = 60; // goals in the list; more are found by another letter
const PAGES = { PageDown: 8, PageUp: -8 }; // options that these keys move by
const IN_ORDER = () => 0; // goals that fit equally well stay as they stand
const MATCHING = { keys: ["name", "text"], threshold: rankings.CONTAINS, baseSort: IN_ORDER };

export class Finder {
  goals = [];

  constructor(dialog) {
    this.dialog = dialog;
    this.box = dialog.querySelector("input");
    this.list = dialog.querySelector("ul");
    this.count = dialog.querySelector(".count");
    this.box.onkeydown = (event) => this.turnPage(event); // before the combobox, which begins anew at any key
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
    this.goals = goalsOf(data);
    if (this.dialog.open) this.find();
  }

  open() {
    if (!this.isWhole) this.told.look(); // the model has been loaded since, or will be
    this.box.value = "";
    this.dialog.showModal();
    this.find();
  }

  /** Lists the goals that hold every word that is typed; those whose name begins with the first one first. */
  find() {
    const words = this.box.value.trim().split(/\s+/);
    const found = words.reduceRight((goals, word) => matchSorter(goals, word, MATCHING), this.goals);
    this.found = found.slice(0, SHOWN);
    this.list.replaceChildren(...this.found.map(optionOf));
    const more = found.length - this.found.length;
    this.count.textContent = found.length ? (more ? `and ${more} more` : "") : "No page, head or token has this name.";
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
    if (goal.kind === "Page") this.told.open(goal.to);
    else if (goal.kind !== "Head" || !isShownAtOnce(goal.to)) this.told.jump(goal.to);
  }
}

function goalsOf({ pages, layers = [], tokens = [] }) {
  const heads = layers.flatMap(([place, layer, count]) =>
    Array.from({ length: count }, (_, head) => goal("Head", `${layer}H${head}`, { place, head })),
  );
  return [
    ...pages.map(([page, title]) => goal("Page", title, `/${page}`)),
    ...heads,
    ...tokens.map((label, token) => goal("Token", `${token} ${label}`, { token })),
  ];
}

function goal(kind, name, to) {
  return { kind, name, to, text: `${kind} ${name}` };
}

function optionOf({ kind, name }, n) {
  return element("li", { role: "option", id: `goal-${n}` }, span("kind", kind), span("name", name));
}
