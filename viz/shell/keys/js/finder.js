// A list of every page, head and token, which gets shorter with each letter that is typed.

import { element, span } from "../../../explorer/js/elements.js";
import { isShownAtOnce } from "../../../explorer/js/head_events.js";

const SHOWN = 60; // goals in the list; more are found by another letter
const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };

export class Finder {
  goals = [];

  constructor(dialog) {
    this.dialog = dialog;
    this.box = dialog.querySelector("input");
    this.list = dialog.querySelector("ul");
    this.count = dialog.querySelector(".count");
    this.box.oninput = () => this.find();
    this.box.onkeydown = (event) => this.key(event);
    dialog.onclick = (event) => this.click(event);
  }

  /** Takes what can be gone to, and whom to tell: `jump` a goal, `look` where heads are still unknown. */
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

  /** Lists the goals that hold every word that is typed; those that begin with it first. */
  find() {
    const typed = this.box.value.trim().toLowerCase();
    const words = typed.split(/\s+/);
    const fits = ({ text }) => words.every((word) => text.includes(word));
    const found = this.goals.filter(fits);
    const rank = ({ name }) => (typed && name.toLowerCase().startsWith(typed) ? 0 : 1);
    found.sort((one, other) => rank(one) - rank(other));
    this.found = found.slice(0, SHOWN);
    this.list.replaceChildren(...this.found.map(optionOf));
    const more = found.length - this.found.length;
    this.count.textContent = found.length ? (more ? `and ${more} more` : "") : "No page, head or token has this name.";
    this.choose(0);
  }

  choose(at) {
    const { children } = this.list;
    this.at = Math.max(Math.min(at, children.length - 1), 0);
    [...children].forEach((option, n) => (option.ariaSelected = String(n === this.at)));
    const chosen = children[this.at];
    this.box.setAttribute("aria-activedescendant", chosen?.id ?? "");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.key in MOVES) this.choose(this.at + MOVES[event.key]);
    else if (event.key === "Enter" && !event.isComposing) this.go(this.at);
    else return;
    event.preventDefault();
  }

  click({ target }) {
    const option = target.closest("li");
    if (option) this.go([...this.list.children].indexOf(option));
    else if (target === this.dialog) this.dialog.close();
  }

  go(at) {
    const goal = this.found[at];
    if (!goal) return;
    this.dialog.close();
    if (goal.kind !== "Head" || !isShownAtOnce(goal.to)) this.told.jump(goal.to);
  }
}

function goalsOf({ pages, layers = [], tokens = [] }) {
  const heads = layers.flatMap(([place, layer, count]) =>
    Array.from({ length: count }, (_, head) => goal("Head", `${layer}H${head}`, { place, head })),
  );
  return [
    ...pages.map(([page, title]) => goal("Page", title, { page })),
    ...heads,
    ...tokens.map((label, token) => goal("Token", `${token} ${label}`, { token })),
  ];
}

function goal(kind, name, to) {
  return { kind, name, to, text: `${kind} ${name}`.toLowerCase() };
}

function optionOf({ kind, name }, n) {
  return element("li", { role: "option", id: `goal-${n}` }, span("kind", kind), span("name", name));
}
