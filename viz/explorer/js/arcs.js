// Arcs over the chips of a sentence: from the chosen token to what it reads (above the line), and from those
// that read it (below). An arc's width and opacity are its weight.
//
// The chips are laid out by the browser; the arcs only follow their boxes, and lie beneath the pointer.

import { shape } from "./elements.js";

export const ARC_TOKENS = 60; // of more tokens the shades alone are shown
const WIDEST = 12; // pixels: an arc of weight 1
const FAINT = 0.01; // below, an arc could not be seen
const HIGHEST = 44; // pixels that an arc rises: the room above and below a line of chips

/** The arcs of a token: to what it reads, and from the others that read it. */
export function arcsOf({ derived, layer, token: chosen }) {
  const weight = (query, key) => derived.weights[query * layer.keys + key];
  const arcs = [];
  for (let token = 0; token < layer.keys; token++) {
    arcs.push({ token, weight: weight(chosen, token), reads: true });
    if (token !== chosen) arcs.push({ token, weight: weight(token, chosen), reads: false });
  }
  return arcs.filter((arc) => arc.weight >= FAINT);
}

/** An arc between two boxes, rising with their distance; a token's arc to itself is a loop. */
function arcPath(from, to, isAbove) {
  const side = isAbove ? -1 : 1;
  const edge = (box) => box.top + (isAbove ? 0 : box.height);
  const [x1, y1] = [from.left + from.width / 2, edge(from)];
  const [x2, y2] = [to.left + to.width / 2, edge(to)];
  const away = Math.hypot(x2 - x1, y2 - y1);
  const rise = side * Math.min(10 + away * 0.22, HIGHEST);
  if (from === to) return `M${x1 - 5},${y1} C${x1 - 16},${y1 + rise * 2} ${x1 + 16},${y1 + rise * 2} ${x1 + 5},${y1}`;
  return `M${x1},${y1} C${x1},${y1 + rise * 1.33} ${x2},${y2 + rise * 1.33} ${x2},${y2}`;
}

/** The arcs of one line of chips. */
export class Arcs {
  constructor() {
    this.svg = shape("svg", { class: "arcs", "aria-hidden": "true" });
    this.boxes = null;
    this.paths = [];
  }

  /** Where the chips are, which is another place where their numbers change: `chips` lie in the element that
   *  holds the SVG. */
  measure(chips) {
    this.boxes = chips.map((chip) => ({
      left: chip.offsetLeft,
      top: chip.offsetTop,
      width: chip.offsetWidth,
      height: chip.offsetHeight,
    }));
    const parent = this.svg.parentElement;
    this.svg.setAttribute("width", parent.scrollWidth);
    this.svg.setAttribute("height", parent.scrollHeight);
  }

  /** Draws the arcs of a token; the path elements are kept and used again. */
  draw(arcs, chosen, palette) {
    while (this.paths.length < arcs.length) {
      const path = shape("path", { fill: "none", "stroke-linecap": "round" });
      this.paths.push(path);
      this.svg.append(path);
    }
    this.paths.forEach((path, n) => {
      const arc = arcs[n];
      path.style.display = arc ? "" : "none";
      if (arc) this.place(path, arc, chosen, palette);
    });
  }

  place(path, { token, weight, reads }, chosen, palette) {
    path.setAttribute("d", arcPath(this.boxes[chosen], this.boxes[token], reads));
    path.setAttribute("stroke", token === 0 && reads ? palette.masked : palette.ink.weight);
    path.setAttribute("stroke-width", weight * WIDEST);
    path.setAttribute("stroke-opacity", 0.25 + 0.75 * weight);
    Object.assign(path.dataset, { token, weight, reads });
  }
}
