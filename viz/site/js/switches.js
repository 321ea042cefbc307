// The switches of a sentence.

import { button, Drawn, element, span } from "../../explorer/js/elements.js";

const TRAINED = "The model was not trained with";

export class Switches {
  drawn = new Drawn();

  /** `turn` takes the switch that is turned; null: all go back. */
  constructor(holder, turn) {
    Object.assign(this, { holder, turn });
  }

  /** `turned`: those of the switches that are. `areTogether`: whether several may be. */
  show(switches, turned, areTogether) {
    if (!this.drawn.differs("all", JSON.stringify([switches, turned, areTogether]))) return;
    const made = switches.map((one) => {
      const { name, label, on } = one;
      const isOn = on === !turned.some((other) => other.name === name);
      const attributes = { role: "switch", class: "switch", "aria-checked": String(isOn) };
      return button(`switch-${name}`, () => this.turn(one), attributes, span("knob"), label);
    });
    const focused = document.activeElement?.dataset.testid;
    const undo = turned.length > 0 && button("undo", () => this.turn(null), { class: "plain" }, "Undo");
    const none = areTogether ? "" : "One change at a time.";
    const words = [none, `${TRAINED} this change.`, `${TRAINED} these changes.`];
    this.holder.replaceChildren(
      element("p", { class: "what" }, element("strong", {}, "What if …"), " ", undo || null),
      ...made,
      element("p", { class: "quiet" }, words[Math.min(turned.length, 2)]),
    );
    this.holder.querySelector(`[data-testid="${focused}"]`)?.focus();
  }
}
