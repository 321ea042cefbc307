// The picture that was shown, over the one that takes its place, until it has faded.

import { eased, inSteps, isStill } from "./motion.js";
import { paintFigure } from "./paint.js";

export const [HEAD, SWITCH] = [120, 350]; // milliseconds
const [ROW, LONGEST, SETTLES] = [25, 900, 250]; // from a row to the next, of all rows at most, and of one row

export class Fade {
  stop = () => {};
  ended = null; // what hears of the end of a switch

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

  /** From before a switch to after it. `rolls`: "away" where the switch lifts the mask, whose hatch rolls along the
   *  diagonal, row after row; "back" where it comes back; null: the older picture fades. `also` moves with it: it takes
   *  the milliseconds that have passed and returns how long it takes; `ended` hears of the end. */
  turn(figure, palette, { rolls, also, ended }) {
    this.end();
    if (isStill()) return ended();
    const { canvas } = this;
    paintFigure(canvas, figure, palette);
    Object.assign(canvas, { hidden: false }).style.opacity = 1;
    this.ended = ended;
    const apart = Math.min(ROW, LONGEST / figure.window.rows);
    const own = rolls ? figure.window.rows * apart + SETTLES : SWITCH;
    let [passed, time] = [0, own];
    const show = () => {
      if (rolls) canvas.style.clipPath = rolledTo(passed, apart, figure, rolls === "back");
      else canvas.style.opacity = 1 - eased(upTo(passed, own) / own);
      time = Math.max(own, also(passed));
    };
    show();
    this.stop = inSteps((step) => {
      passed = Math.min(passed + step, time);
      show();
      if (passed === time) this.end();
      return passed < time;
    });
  }

  get isTurning() {
    return this.ended !== null;
  }

  end() {
    const { ended } = this;
    this.stop();
    Object.assign(this, { ended: null, stop: () => {} });
    this.canvas.style.clipPath = "";
    this.canvas.hidden = true;
    ended?.();
  }
}

export function upTo(passed, most) {
  return Math.min(Math.max(passed, 0), most);
}

/** What is left of the older picture, as a CSS path: of each row the part at its right or, where the mask comes back
 *  from the right, at its left. */
function rolledTo(passed, apart, { layout, window: { rows } }, isBack) {
  const [{ left: start, top, width, height }] = layout.boxes;
  const edge = Array.from({ length: rows }, (_, row) => {
    const turn = isBack ? rows - 1 - row : row;
    const gone = eased(upTo(passed - turn * apart, SETTLES) / SETTLES);
    const x = start + width * (isBack ? 1 - gone : gone);
    return [[x, top + (row * height) / rows], [x, top + ((row + 1) * height) / rows]];
  });
  const side = isBack ? start : start + width;
  const corners = [[side, top], ...edge.flat(), [side, top + height]];
  return `polygon(${corners.map(([x, y]) => `${x}px ${y}px`).join(",")})`;
}
