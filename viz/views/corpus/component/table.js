// All heads as a table: sorted by a column, filtered by words and by a least number. Only the rows in sight are there.

import { element } from "../../../explorer/js/elements.js";

const ROW = 28; // pixels
const SHOWN = 12; // rows
const BEYOND = 6; // rows above and below those in sight
const NO_LABEL = 255;

export class HeadTable {
  /** on.choose takes a head; on.filter is called when other heads are shown. */
  constructor(holder, on) {
    Object.assign(this, { holder, on, sort: null, label: null });
    this.words = element("input", { type: "search", placeholder: "L3, induction, …", "data-testid": "filter", oninput: () => this.filter() });
    this.column = element("select", { "data-testid": "filter-column", onchange: () => this.filter() });
    this.least = element("input", { type: "number", step: "0.05", value: "0", "data-testid": "filter-least", oninput: () => this.filter() });
    this.count = element("output", { class: "count", "data-testid": "count" });
    const named = (name, control) => element("label", {}, name, control);
    const form = element(
      "div",
      { class: "filters" },
      named("Head or label", this.words),
      named("Number", this.column),
      named("at least", this.least),
      this.count,
    );
    this.head = element("tr", {});
    this.body = element("tbody", {});
    this.table = element("table", {}, element("thead", {}, this.head), this.body);
    this.scroll = element("div", { class: "scroll", role: "region", "aria-label": "Table of all heads", tabindex: 0 }, this.table);
    this.scroll.style.maxHeight = `${ROW * (SHOWN + 1)}px`;
    this.scroll.onscroll = () => this.drawRows();
    this.table.onclick = (event) => {
      const row = event.target.closest("tbody tr[data-at]");
      if (row) this.on.choose(this.order[Number(row.dataset.at)]);
    };
    holder.replaceChildren(form, this.scroll);
  }

  receive(message, heads) {
    Object.assign(this, { message, heads, label: null, sort: null });
    this.several = message.profiles.length > 1;
    const option = ({ name, title }) => element("option", { value: name }, title);
    this.column.replaceChildren(element("option", { value: "" }, "any"), ...message.columns.map(option));
    this.words.value = "";
    this.least.value = "0";
    this.filter(false);
  }

  /** Shows the heads of one label alone; null: of all. */
  showLabel(label) {
    this.label = label;
    this.filter();
  }

  /** The number of a head in a column of the message. */
  value({ profile, head }, column) {
    return this.message.profiles[profile].columns[column][head];
  }

  labelOf({ profile, head }) {
    const label = this.message.profiles[profile].labels[head];
    return label === NO_LABEL ? "" : this.message.labels[label].name;
  }

  /** Which heads are shown: those that all filters let pass. */
  filter(told = true) {
    const words = this.words.value.trim().toLowerCase();
    const column = this.column.value;
    const least = Number(this.least.value);
    this.least.disabled = column === "";
    const passes = (one) =>
      (this.label === null || this.message.profiles[one.profile].labels[one.head] === this.label) &&
      (column === "" || this.value(one, column) >= least) &&
      (words === "" || `${one.name} ${this.labelOf(one)}`.toLowerCase().includes(words));
    this.shown = this.message.profiles.map(({ names }) => new Uint8Array(names.length));
    this.found = this.heads.filter((one) => {
      const isShown = passes(one);
      this.shown[one.profile][one.head] = isShown ? 1 : 0;
      return isShown;
    });
    this.count.textContent = `${this.found.length.toLocaleString("en")} of ${this.heads.length.toLocaleString("en")} heads`;
    this.arrange();
    if (told) this.on.filter();
  }

  /** Sorts by a column, the largest first; once more, the smallest first; then as the model has them. */
  sortBy(name) {
    const { sort } = this;
    if (sort?.name !== name) this.sort = { name, down: true };
    else this.sort = sort.down ? { name, down: false } : null;
    this.arrange();
  }

  arrange() {
    const { sort } = this;
    this.order = [...this.found];
    if (sort) {
      const sign = sort.down ? -1 : 1;
      const number = (one) => this.value(one, sort.name);
      const missing = (one) => Number.isNaN(number(one));
      this.order.sort((a, b) => missing(a) - missing(b) || sign * (number(a) - number(b)) || 0);
    }
    this.drawHead();
    this.scroll.scrollTop = 0;
    this.table.ariaRowCount = String(this.order.length + 1);
    this.drawRows(true);
  }

  drawHead() {
    const plain = (name) => element("th", { scope: "col" }, name);
    const sortable = ({ name, title, meaning }) => {
      const mine = this.sort?.name === name;
      const order = mine ? (this.sort.down ? "descending" : "ascending") : "none";
      const arrow = mine ? (this.sort.down ? " ↓" : " ↑") : "";
      const sort = () => {
        this.sortBy(name);
        this.head.querySelector(`[data-testid=sort-${name}]`).focus({ preventScroll: true });
      };
      const control = { type: "button", title: meaning, "data-testid": `sort-${name}`, onclick: sort };
      return element("th", { scope: "col", "aria-sort": order }, element("button", control, title + arrow));
    };
    const first = this.several ? ["head", "label", "profile"] : ["head", "label"];
    this.head.replaceChildren(...first.map(plain), ...this.message.columns.map(sortable));
  }

  /** Makes the rows in sight, and room for the others. */
  drawRows(anew = false) {
    const first = Math.max(Math.floor(this.scroll.scrollTop / ROW) - BEYOND, 0);
    const last = Math.min(first + SHOWN + 2 * BEYOND, this.order.length);
    if (!anew && first === this.first && last === this.last) return;
    Object.assign(this, { first, last });
    const room = (rows) => element("tr", { class: "room", "aria-hidden": "true", style: `height: ${rows * ROW}px` });
    const rows = this.order.slice(first, last).map((one, n) => this.row(one, first + n));
    this.body.replaceChildren(room(first), ...rows, room(this.order.length - last));
    this.mark();
  }

  row(one, at) {
    const { message } = this;
    const cells = message.columns.map(({ name, decimals }) => element("td", {}, numeral(this.value(one, name), decimals)));
    const choose = element("button", { type: "button", "data-testid": `row-${at}` }, one.name);
    const note = message.profiles[one.profile].notes[one.head];
    const words = [`${this.labelOf(one) || "–"}${note ? ` (${note})` : ""}`, ...(this.several ? [message.profiles[one.profile].title] : [])];
    const first = element("th", { scope: "row" }, choose);
    const row = { "data-at": at, "aria-rowindex": at + 2 };
    return element("tr", row, first, ...words.map((word) => element("td", { class: "word" }, word)), ...cells);
  }

  /** Marks the chosen head's row where it is in sight. */
  draw(at) {
    this.at = at;
    this.mark();
  }

  mark() {
    for (const row of this.body.querySelectorAll("[data-at]")) {
      const one = this.order[Number(row.dataset.at)];
      const isChosen = one.profile === this.at?.profile && one.head === this.at?.head;
      row.classList.toggle("chosen", isChosen);
      row.querySelector("button").ariaCurrent = isChosen ? "true" : null;
    }
  }
}

export function numeral(value, decimals = 2) {
  if (Number.isNaN(value)) return "–";
  const text = value.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
}
