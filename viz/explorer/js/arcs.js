// Arcs over the chips of a sentence: from the chosen tokens to what they attend to (above the line), and from
// those that attend to them (below). An arc's width and opacity are its weight.
//
// The chips are laid out by the browser; the arcs only follow their boxes. They lie beneath the chips.

import { shape } from "./elements.js";
import { meanWeight } from "./groups.js";

export const ARC_TOKENS = 60; // of more tokens the shades alone are shown
const WIDEST = 12; // pixels: an arc of weight 1
const FAINT = 0.01; // below, an arc could not be seen
const HIGHEST = 44; // pixels that an arc rises: the room above and below a line of chips

/** The arcs of the chosen groups: to what they attend to, and from the others that attend to them. What several
 *  give to one group sums up to their mean. `withoutFirst` leaves out what the first token gets. */
export function arcsOf({ derived, layer, groups, chosen, withoutFirst }) {
  const asking = chosen.reduce((count, group) => count + groups[group].length, 0);
  const weight = (from, to) => meanWeight(derived.weights, layer.keys, groups[from], groups[to]);
  const arcs = [];
  groups.forEach((_, other) => {
    for (const one of chosen) {
      const share = groups[one].length / asking;
      arcs.push({ from: one, to: other, weight: weight(one, other) * share, reads: true });
      if (!chosen.includes(other)) {
        arcs.push({ from: other, to: one, weight: weight(other, one), reads: false });
      }
    }
  });
  return arcs.filter(({ to, weight: seen }) => seen >= FAINT && !(withoutFirst && to === 0));
}

/** An arc between two boxes, rising with their distance; a token's arc to itself is a loop. */
function arcPath(from, to, isAbove, highest) {
  const side = isAbove ? -1 : 1;
  const edge = (box) => box.top + (isAbove ? 0 : box.height);
  const [x1, y1] = [from.left + from.width / 2, edge(from)];
  const [x2, y2] = [to.left + to.width / 2, edge(to)];
  const away = Math.hypot(x2 - x1, y2 - y1);
  const rise = side * Math.min(10 + away * 0.22, highest);
  if (from === to) return `M${x1 - 5},${y1} C${x1 - 16},${y1 + rise * 2} ${x1 + 16},${y1 + rise * 2} ${x1 + 5},${y1}`;
  return `M${x1},${y1} C${x1},${y1 + rise * 1.33} ${x2},${y2 + rise * 1.33} ${x2},${y2}`;
}

/** The arcs of one line of chips. */
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

  /** Where the chips are. They lie in the element that holds the SVG. */
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

  /** Draws arcs; the path elements are kept and used again. */
  draw(arcs, groups, palette) {
    this.arcs = arcs;
    while (this.paths.length < arcs.length) {
      const path = shape("path", { fill: "none", "stroke-linecap": "round" });
      this.paths.push(path);
      this.svg.append(path);
    }
    this.paths.forEach((path, n) => {
      const arc = arcs[n];
      path.style.display = arc ? "" : "none";
      if (arc) this.place(path, arc, groups, palette);
    });
  }

  place(path, { from, to, weight, reads }, groups, palette) {
    const other = reads ? to : from; // the end that is not chosen
    path.setAttribute("d", arcPath(this.boxes[from], this.boxes[to], reads, this.highest));
    path.setAttribute("stroke", groups[to][0] === 0 ? palette.masked : palette.ink.weight);
    path.setAttribute("stroke-width", weight * WIDEST);
    path.setAttribute("stroke-opacity", 0.25 + 0.75 * weight);
    Object.assign(path.dataset, { token: groups[other][0], weight, reads });
  }

  /** Lights the arc between two groups; null lights none. */
  light(pair) {
    this.svg.classList.toggle("lighting", pair !== null);
    this.paths.forEach((path, n) => {
      const arc = this.arcs[n];
      path.classList.toggle("lit", Boolean(arc && pair && arc.from === pair.from && arc.to === pair.to));
    });
  }
}
