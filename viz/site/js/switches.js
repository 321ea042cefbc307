// The switches of a sentence. One is turned at a time: those are the runs that were recorded.

import { button, element, span } from "../../explorer/js/elements.js";

export class Switches {
  /** `turn` takes the name of the switch that is turned, or "". */
  constructor(holder, turn) {
    Object.assign(this, { holder, turn });
  }

  show(switches, turned) {
    const made = switches.map(({ name, label, on }) => {
      const isOn = on === (name !== turned);
      const attributes = { role: "switch", class: "switch", "aria-checked": String(isOn) };
      return button(`switch-${name}`, () => this.turn(name === turned ? "" : name), attributes, span("knob"), label);
    });
    const focused = document.activeElement?.dataset.testid;
    const undo = turned && button("undo", () => this.turn(""), { class: "plain" }, "Undo");
    this.holder.replaceChildren(
      element("p", { class: "what" }, element("strong", {}, "What if …"), " ", undo || null),
      ...made,
      element("p", { class: "quiet" }, turned ? "The model was not trained with this change." : "One change at a time."),
    );
    this.holder.querySelector(`[data-testid="${focused}"]`)?.focus();
  }
}
