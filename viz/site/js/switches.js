// The switches of a sentence: the three of the app, and behind "More changes" what else can be turned.

import { button, Drawn, element, span } from "../../explorer/js/elements.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("switches");

const TRAINED = say("model_not_trained");
const ALWAYS = ["mask", "scale"]; // with the chosen head

export class Switches {
  drawn = new Drawn();

  /** `turn` takes the switch that is turned; null: all go back. `expect` takes the one that a pointer is on. */
  constructor(holder, { turn, expect }) {
    Object.assign(this, { holder, turn, expect });
  }

  /** `chosen`: the name of the chosen head's switch. `turned`: those of the switches that are. `areTogether`: whether
   *  several may be. One that is `missing` cannot be turned here. */
  show(switches, chosen, turned, areTogether) {
    if (!this.drawn.differs("all", JSON.stringify([switches, chosen, turned, areTogether]))) return;
    const { holder } = this;
    const isFirst = ({ name }) => ALWAYS.includes(name) || name === chosen;
    const isTurned = ({ name }) => turned.some((other) => other.name === name);
    const others = switches.filter((one) => !isFirst(one));
    const wasOpen = holder.querySelector("details")?.open || others.some(isTurned);
    const made = (one) => this.made(one, one.on !== isTurned(one));
    const focused = document.activeElement?.dataset.testid;
    const undo = turned.length > 0 && button("undo", () => this.turn(null), { class: "plain" }, "Undo");
    const none = areTogether ? "" : say("change_time");
    const words = [none, `${TRAINED} this change.`, `${TRAINED} these changes.`];
    const more = element("details", { open: wasOpen }, element("summary", {}, "More changes"), ...others.map(made));
    holder.replaceChildren(
      element("p", { class: "what" }, element("strong", {}, "What if …"), " ", undo || null),
      ...switches.filter(isFirst).map(made),
      ...(others.length ? [more] : []),
      element("p", { class: "quiet" }, words[Math.min(turned.length, 2)]),
    );
    holder.querySelector(`[data-testid="${focused}"]`)?.focus();
  }

  made({ name, label, missing = "", ...one }, isOn) {
    const state = { role: "switch", class: "switch", "aria-checked": String(isOn), disabled: Boolean(missing), title: missing };
    const whole = { name, label, ...one };
    const made = button(`switch-${name}`, () => this.turn(whole), state, span("knob"), label);
    made.onpointerenter = ({ pointerType }) => pointerType === "mouse" && !missing && this.expect(whole);
    return made;
  }
}
