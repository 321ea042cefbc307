// The check below the picture: how far the numbers recomputed here are from the model's own.

import { Drawn, element } from "./elements.js";
import { fetchCheck } from "./libraries.js";
import { magnitude } from "./numbers.js";

const AGREES = 1e-4; // relative to the largest output: up to here recomputed and recorded numbers count as equal

export class Check {
  drawn = new Drawn();

  constructor(line) {
    this.line = line;
  }

  /** Fetches the check of a long run, once; `redraw` is called before and after. */
  async fetch({ address, check }, redraw) {
    if (check !== null || this.ofRun?.address === address) return;
    const ofRun = (this.ofRun = { address, found: null, waiting: true });
    redraw();
    Object.assign(ofRun, { found: await fetchCheck(address), waiting: false });
    redraw();
  }

  /** Writes the check of one head, and that of the whole run once it is known. */
  draw(derived, headName, { address, check, device }) {
    const { found, waiting } = this.ofRun?.address === address ? this.ofRun : {};
    const whole = check ?? found ?? null;
    if (!this.drawn.differs("line", derived, whole, waiting, device)) return;
    const { largest: gap, size } = derived.gap;
    const agrees = gap <= AGREES * Math.max(1, size);
    const what = derived.value ? "" : "summed over the dimensions, ";
    const figure = (number) => element("strong", { class: "number" }, magnitude(number));
    const ofRun = waiting ? ["; the whole run is being checked."] : ["."];
    this.line.replaceChildren(
      element("span", { class: agrees ? "tick" : "cross", "aria-hidden": "true" }, agrees ? "✓" : "✗"),
      `Check: weights · V, ${what}recomputed here from the recorded Q, K and V of ${headName},`,
      agrees ? " equals the model's own output to " : " differs from the model's own output by up to ",
      figure(gap),
      ...(whole === null ? ofRun : ["; over the whole run the largest difference is ", figure(whole), "."]),
      ...(device ? [` The pass ran on ${device}.`] : []),
    );
  }
}
