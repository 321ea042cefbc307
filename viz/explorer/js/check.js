// The check of the picture: how far the numbers recomputed here are from the model's own.

import { Drawn, element } from "./elements.js";
import { magnitude } from "./numbers.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("check");

const AGREES = 1e-4; // relative to the largest output: up to here recomputed and recorded numbers count as equal

export class Check {
  drawn = new Drawn();

  /** `line`: where it is said in a sentence; `short`: where only its number stands. */
  constructor(line, short) {
    Object.assign(this, { line, short });
  }

  /** Writes the check of one head, and that of the whole run once it is known. */
  draw(derived, headName, { check, checked, device }) {
    if (!this.drawn.differs("line", derived, check, checked, device)) return;
    const { largest: gap, size } = derived.gap;
    const agrees = gap <= AGREES * Math.max(1, size);
    const what = derived.value ? "" : say("summed_over_dimensions");
    const figure = (number) => element("strong", { class: "number" }, magnitude(number));
    const ofRun = checked ? ["."] : [say("whole_run_being")];
    const mark = () => element("span", { class: agrees ? "tick" : "cross", "aria-hidden": "true" }, agrees ? "✓" : "✗");
    this.line.replaceChildren(
      mark(),
      say("check_weights_v", { what, head_name: headName }),
      agrees ? say("equals_model_own") : say("differs_model_own"),
      figure(gap),
      ...(check === null ? ofRun : [say("over_whole_run_largest"), figure(check), "."]),
      ...(device ? [say("pass_ran", { device })] : []),
    );
    this.short.title = this.line.textContent;
    this.short.replaceChildren(mark(), magnitude(gap));
  }
}
