// One head's map on a canvas: weights, what is masked, and the framed cells of a known pattern.

import { inkedColour } from "../../../explorer/js/colours.js";
import { context2d, hatchPattern } from "../../../explorer/js/paint.js";

const LABELS = 32; // more labels than this on an axis cannot be read
const FONT = 13;
const TALLEST = 470; // pixels of the cells in a low window
const AROUND = 430; // of the window, above and below them
const ABOVE = 232; // pixels of the lecture view above and below the cells
const QUIET = 0.68; // opacity of the names of the axes

/** Where the cells of a map lie on its canvas, given the width there is. */
export function layoutOf(data, available, context, mono) {
  context.font = `${FONT}px ${mono}`;
  const widest = (labels) =>
    Math.max(...shownLabels(labels).map(([, label]) => context.measureText(label).width), 8);
  const left = Math.min(widest(data.queries) + 26, 150);
  const rows = data.queries.length;
  const columns = data.keys.length;
  const room = Math.max(available - left - 46, 80); // a slanted last label needs the rest
  const cell = Math.min(room / columns, tallest() / rows, 56);
  const slanted = widest(data.keys) + 4 > cell * Math.ceil(columns / LABELS);
  const top = (slanted ? widest(data.keys) * 0.72 + 14 : 20) + 16;
  return { left, top, cell, rows, columns, slanted };
}

/** The lecture view, which is drawn larger as a whole, has the height of the window. */
function tallest() {
  const page = document.documentElement;
  if (!("lecture" in page.dataset)) return Math.max(TALLEST, innerHeight - AROUND);
  const larger = Number(getComputedStyle(page).getPropertyValue("--larger")) || 1;
  return Math.max(innerHeight / larger - ABOVE, 160);
}

function shownLabels(labels) {
  const every = Math.ceil(labels.length / LABELS);
  return labels.map((label, at) => [at, label]).filter(([at]) => at % every === 0);
}

/** Draws the map of one checkpoint. weights: (query, key) of it; cell: [query, key] or null. */
export function drawMap(canvas, { data, weights, layout, palette, cell }) {
  const { left, top, cell: size, rows, columns } = layout;
  const context = context2d(canvas, left + columns * size + 46, top + rows * size + 4);
  const gap = size >= 8 ? 1 : 0;
  const box = (at, inset = 0) => [
    left + (at % columns) * size + inset,
    top + Math.floor(at / columns) * size + inset,
    size - gap - 2 * inset,
    size - gap - 2 * inset,
  ];
  const hatching = hatchPattern(context, palette, true);
  for (let at = 0; at < rows * columns; at++) {
    const masked = data.allowed !== null && !data.allowed[at];
    const colour = () => inkedColour(palette.scale.weight, weights[at], 0, 1).background;
    context.fillStyle = masked ? hatching : colour();
    context.fillRect(...box(at));
  }
  const frame = (at, colour, width, inset) => {
    Object.assign(context, { strokeStyle: colour, lineWidth: width });
    context.strokeRect(...box(at, inset));
  };
  data.framed?.forEach((is, at) => is && frame(at, palette.text, 1, 0.5));
  drawLabels(context, data, layout, palette);
  if (cell) frame(cell[0] * columns + cell[1], palette.text, 2, 0);
}

function drawLabels(context, data, { left, top, cell, rows, columns, slanted }, palette) {
  const write = (text, x, y, { turn = 0, align = "left" }) => {
    context.save();
    context.translate(x, y);
    context.rotate(turn);
    context.textAlign = align;
    context.fillText(text, 0, 0);
    context.restore();
  };
  Object.assign(context, { fillStyle: palette.text, textBaseline: "middle" });
  context.font = `${FONT}px ${palette.mono}`;
  for (const [at, label] of shownLabels(data.queries)) {
    write(label, left - 6, top + (at + 0.5) * cell, { align: "right" });
  }
  const above = slanted ? { turn: -Math.PI / 4 } : { align: "center" };
  for (const [at, label] of shownLabels(data.keys)) {
    write(label, left + (at + 0.5) * cell, top - 8, above);
  }
  Object.assign(context, { globalAlpha: QUIET, font: `${FONT}px sans-serif` });
  write("key →", left, 7, {});
  write("← query", 8, top + (rows * cell) / 2, { turn: -Math.PI / 2, align: "center" });
}

/** The cell under a point of the canvas, or null. */
export function cellAt({ left, top, cell, rows, columns }, x, y) {
  const [row, column] = [Math.floor((y - top) / cell), Math.floor((x - left) / cell)];
  const inside = row >= 0 && row < rows && column >= 0 && column < columns;
  return inside ? [row, column] : null;
}
