// What stands behind the ⋯ at the upper right of the picture: its files, its numbers as a table, its code, the check.
// The check's number stands beside it.

import { button, element, span, toggle } from "./elements.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("more");

export class More {
  isOpen = false;

  /** `opens`: by name what each of its buttons does, told whether it is on. */
  constructor({ more, root }, opens) {
    this.saves = element("p", { class: "saves" });
    this.check = element("p", { class: "check", "data-testid": "check" });
    this.ways = element("p", { class: "opens" });
    this.opens = opens;
    this.on = new Set();
    this.short = span("checked");
    this.dots = button("more", () => this.open(!this.isOpen), { class: "dots", "aria-label": say("save_table_code") }, "⋯");
    this.list = element("div", { class: "morelist", role: "group", "aria-label": say("save_table_code"), hidden: true });
    this.list.append(this.check, this.saves, this.ways);
    more.replaceChildren(this.short, this.dots, this.list);
    more.onkeydown = (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      event.preventDefault();
      this.open(false);
      this.dots.focus();
    };
    root.addEventListener("pointerdown", ({ target }) => this.isOpen && !more.contains(target) && this.open(false));
    this.draw();
  }

  open(isOpen) {
    this.isOpen = isOpen;
    this.draw();
  }

  draw() {
    this.list.hidden = !this.isOpen;
    this.dots.ariaExpanded = String(this.isOpen);
    const names = Object.entries(this.opens);
    this.ways.replaceChildren(...names.map(([name, { label }]) => toggle(`open-${name}`, label, this.on.has(name), (on) => this.turn(name, on))));
  }

  turn(name, on) {
    this.on[on ? "add" : "delete"](name);
    this.draw();
    this.opens[name].turn(on);
  }

  has(name) {
    return this.on.has(name);
  }
}
