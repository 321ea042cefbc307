// The picture that was shown, over the one that takes its place, until it has faded.

import { eased, inSteps, isStill } from "./motion.js";
import { paintFigure } from "./paint.js";

export const [HEAD, SWITCH] = [120, 350]; // milliseconds

export class Fade {
  stop = () => {};

  constructor(canvas) {
    this.canvas = canvas;
  }

  /** Shows a figure that fades within so many milliseconds. */
  start(figure, palette, milliseconds) {
    this.end();
    if (isStill()) return;
    const { canvas } = this;
    paintFigure(canvas, figure, palette);
    canvas.hidden = false;
    let passed = 0;
    const show = () => (canvas.style.opacity = 1 - eased(passed / milliseconds));
    show();
    this.stop = inSteps((step) => {
      passed = Math.min(passed + step, milliseconds);
      show();
      if (passed === milliseconds) this.end();
      return passed < milliseconds;
    });
  }

  end() {
    this.stop();
    this.canvas.hidden = true;
  }
}
