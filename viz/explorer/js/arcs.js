// Arcs over tokens: from the chosen one to what it attends to. An arc's width and opacity are its weight.
//
// The arcs only follow the boxes of the tokens, and lie beneath them.

import { shape } from "./elements.js";
import { rowOf } from "./steps.js";

export const ARC_TOKENS = 60; // of more tokens no arcs are drawn
const WIDEST = 12; // pixels: an arc of weight 1
const FAINT = 0.01; // below, an arc could not be seen
const HIGHEST = 44; // pixels that an arc rises: the room above and below a line of chips

/** The arcs of a query, one to each key that it attends to. */
export function arcsOf({ derived, layer }, query) {
  const weights = Array.from(rowOf(derived.weights, query, layer.keys));
  return weights.map((weight, key) => ({ from: query, to: key, token: key, weight })).filter(({ weight }) => weight >= FAINT);
}

/** An arc between two boxes, rising with their distance; a token's arc to itself is a loop. */
function arcPath(from, to, highest) {
  const [x1, y1] = [from.left + from.width / 2, from.top];
  const [x2, y2] = [to.left + to.width / 2, to.top];
  const away = Math.hypot(x2 - x1, y2 - y1);
  const rise = -Math.min(10 + away * 0.22, highest);
  if (from === to) return `M${x1 - 5},${y1} C${x1 - 16},${y1 + rise * 2} ${x1 + 16},${y1 + rise * 2} ${x1 + 5},${y1}`;
  return `M${x1},${y1} C${x1},${y1 + rise * 1.33} ${x2},${y2 + rise * 1.33} ${x2},${y2}`;
}

/** The arcs over one line of tokens. */
export class Arcs {
  /** `point` takes the arc under the pointer, or null. `highest`: pixels that an arc rises. */
  constructor(point, highest = HIGHEST) {
    this.highest = highest;
    this.svg = shape("svg", { class: "arcs", "aria-hidden": "true" });
    this.svg.onpointerover = ({ target }) => point(this.arcs[this.paths.indexOf(target)] ?? null);
    this.svg.onpointerout = () => point(null);
    this.paths = [];
    this.arcs = [];
  }

  /** Where the tokens are. They lie in the element that holds the SVG. */
  measure(chips) {
    const boxes = chips.map((chip) => ({
      left: chip.offsetLeft,
      top: chip.offsetTop,
      width: chip.offsetWidth,
      height: chip.offsetHeight,
    }));
    const { scrollWidth, scrollHeight } = this.svg.parentElement;
    this.stand(boxes, scrollWidth, scrollHeight);
  }

  /** Puts the arcs over boxes { left, top, width, height }, in a picture of this size. */
  stand(boxes, width, height) {
    this.boxes = boxes;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
  }

  /** Draws arcs { from, to, weight, token }: boxes by their number, and the position of the token that is attended to.
   *  The path elements are kept and used again. */
  draw(arcs, palette) {
    this.arcs = arcs;
    while (this.paths.length < arcs.length) {
      const path = shape("path", { fill: "none", "stroke-linecap": "round" });
      this.paths.push(path);
      this.svg.append(path);
    }
    this.paths.forEach((path, n) => {
      const arc = arcs[n];
      path.style.display = arc ? "" : "none";
      if (arc) this.place(path, arc, palette);
    });
  }

  place(path, { from, to, weight, token }, palette) {
    path.setAttribute("d", arcPath(this.boxes[from], this.boxes[to], this.highest));
    path.setAttribute("stroke", token === 0 ? palette.masked : palette.ink.weight);
    path.setAttribute("stroke-width", weight * WIDEST);
    path.setAttribute("stroke-opacity", 0.25 + 0.75 * weight);
    Object.assign(path.dataset, { token, weight });
  }

  /** Lights the arc between two tokens; null lights none. */
  light(pair) {
    this.svg.classList.toggle("lighting", pair !== null);
    this.paths.forEach((path, n) => {
      const arc = this.arcs[n];
      path.classList.toggle("lit", Boolean(arc && pair && arc.from === pair.from && arc.to === pair.to));
    });
  }
}
