// The check of the picture: how far the numbers recomputed here are from the model's own.

import { Drawn, element } from "./elements.js";
import { magnitude } from "./numbers.js";

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
    const what = derived.value ? "" : "summed over the dimensions, ";
    const figure = (number) => element("strong", { class: "number" }, magnitude(number));
    const ofRun = checked ? ["."] : ["; the whole run is being checked."];
    const mark = () => element("span", { class: agrees ? "tick" : "cross", "aria-hidden": "true" }, agrees ? "✓" : "✗");
    this.line.replaceChildren(
      mark(),
      `Check: weights · V, ${what}recomputed here from the recorded Q, K and V of ${headName},`,
      agrees ? " equals the model's own output to " : " differs from the model's own output by up to ",
      figure(gap),
      ...(check === null ? ofRun : ["; over the whole run the largest difference is ", figure(check), "."]),
      ...(device ? [` The pass ran on ${device}.`] : []),
    );
    this.short.title = this.line.textContent;
    this.short.replaceChildren(mark(), magnitude(gap));
  }
}
