// Which run the map shows: the changed one, while "Before" is held the unchanged one, or what the change makes of it.

import { button } from "./elements.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("runs");

export const HOLD = "explorer-before"; // on the document: the key is held, or is let go

export class Runs {
  held = null; // the run that is shown again when "Before" is let go

  /** `choose` takes { run }. */
  constructor(holder, choose, signal) {
    Object.assign(this, { holder, choose });
    const press = (run) => (event) => !event.detail && this.toggle(run); // by the keyboard: a pointer holds it
    this.before = button("run-baseline", press("baseline"), { title: say("hold_key_b") }, "Before");
    this.gap = button("run-difference", () => this.toggle("difference"), {}, "Difference");
    this.before.onpointerdown = ({ pointerId }) => {
      this.before.setPointerCapture(pointerId);
      this.hold(true);
    };
    this.before.onlostpointercapture = () => this.hold(false);
    this.before.oncontextmenu = () => false; // a finger that holds it
    document.addEventListener(HOLD, ({ detail }) => this.hold(detail), { signal });
    holder.replaceChildren(this.before, this.gap);
  }

  /** `isCompared`: whether there is an unchanged run beside the shown one. */
  draw(run, isCompared) {
    Object.assign(this, { run, isCompared });
    this.holder.hidden = !isCompared;
    this.before.ariaPressed = String(run === "baseline");
    this.gap.ariaPressed = String(run === "difference");
  }

  toggle(run) {
    this.choose({ run: this.run === run ? "changed" : run });
  }

  hold(on) {
    if (on === (this.held !== null) || (on && !this.isCompared)) return;
    const run = on ? "baseline" : this.held;
    this.held = on ? this.run : null;
    this.choose({ run });
  }
}
