// The picture that was shown, over the one that takes its place, until it has faded.

import { eased, inSteps, isStill } from "./motion.js";
import { paintFigure } from "./paint.js";

export const [HEAD, SWITCH] = [120, 350]; // milliseconds
const [ROW, LONGEST] = [25, 900]; // of a row that a mask leaves, and of all rows at most

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

  /** Shows a figure that goes row by row, from the first, or from the last where it comes back: a mask rolls away. */
  roll(figure, palette, isBack) {
    this.end();
    if (isStill()) return;
    const { canvas } = this;
    paintFigure(canvas, figure, palette);
    Object.assign(canvas, { hidden: false }).style.opacity = 1;
    const [box] = figure.layout.boxes;
    const { rows } = figure.window;
    const time = Math.min(rows * ROW, LONGEST);
    let passed = 0;
    this.stop = inSteps((step) => {
      passed = Math.min(passed + step, time);
      const gone = (passed / time) * 100;
      const [top, bottom] = [(box.top / figure.layout.height) * 100, ((box.top + box.height) / figure.layout.height) * 100];
      const edge = ((bottom - top) * gone) / 100;
      canvas.style.clipPath = isBack ? `inset(${top}% 0 ${100 - bottom + edge}%)` : `inset(${top + edge}% 0 ${100 - bottom}%)`;
      if (passed === time) this.end();
      return passed < time;
    });
  }

  end() {
    this.canvas.style.clipPath = "";
    this.stop();
    this.canvas.hidden = true;
  }
}
