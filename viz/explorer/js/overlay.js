// What is drawn over the figure: the frame of the chosen cell, its row and column, their labels, the tooltip.

import { drawnLarger, element, shape } from "./elements.js";
import { cellAt, cellBox, contains, LETTER } from "./geometry.js";
import { FONT } from "./paint.js";

const BADGE = 17; // height of the chosen row's and column's label
const BRUSHED = 12; // pixels along both sides of a box
const [LOWEST, HALF] = [11, 4.5]; // of a slanted one between others; half of a line of letters

/** Frames the chosen cell in every panel and labels its row and column. */
export function drawMarks(svg, figure, chosen, palette) {
  const { layout, window } = figure;
  const isShown = contains(window, chosen.row, chosen.column);
  svg.setAttribute("width", layout.width);
  svg.setAttribute("height", layout.height);
  svg.replaceChildren(
    ...layout.boxes.flatMap((box) => [
      outline(box, { stroke: palette.text, "stroke-opacity": 0.22 }),
      ...(figure.sink === null ? [] : [sinkFrame(figure, box, palette)]),
      ...(figure.block ? [headFrame(figure, box, palette)] : []),
      ...(isShown ? cellMarks(figure, box, chosen, palette) : []),
    ]),
  );
}

/** Frames the column of the sink, which is no key. */
function sinkFrame({ sink, window }, box, palette) {
  if (!contains(window, window.row, sink)) return shape("g", {});
  const { left, width } = cellBox(box, window, window.row, sink);
  const dashes = { "stroke-dasharray": "4 3", "data-mark": "sink" };
  return outline({ ...box, left, width }, { stroke: palette.text, "stroke-width": 1.5, ...dashes });
}

/** Frames the columns of one head among those of all. */
function headFrame({ block, window }, box, palette) {
  const first = cellBox(box, window, window.row, Math.max(block.column, window.column));
  const end = Math.min(block.column + block.columns, window.column + window.columns);
  const width = Math.max((end - Math.max(block.column, window.column)) * first.width, 0);
  return outline({ ...box, left: first.left, width }, { stroke: palette.ink.weight, "stroke-width": 2 });
}

/** Rings places in every panel: a cell, a whole row or column, or the cells `diagonal` columns beside the
 *  diagonal. Nothing is drawn of what the window does not show. */
export function drawRings(svg, figure, rings, palette) {
  const { layout, window } = figure;
  svg.setAttribute("width", layout.width);
  svg.setAttribute("height", layout.height);
  const places = rings.flatMap(({ query = null, key = null, diagonal = null }) =>
    diagonal === null ? [{ row: query, column: key }] : onDiagonal(window, diagonal),
  );
  const around = (box) => places.flatMap((place) => ringAround(box, window, place, palette));
  svg.replaceChildren(...layout.boxes.flatMap(around));
}

/** The cells of a window that lie so many columns beside the diagonal. */
function onDiagonal({ row, rows, column, columns }, beside) {
  const cells = Array.from({ length: rows }, (_, n) => ({ row: row + n, column: row + n + beside }));
  return cells.filter((cell) => cell.column >= column && cell.column < column + columns);
}

/** Without a row it is the whole column, without a column the whole row. */
function ringAround(box, window, { row, column }, palette) {
  const place = { ...box };
  const [top, left] = [row ?? window.row, column ?? window.column];
  if (!contains(window, top, left)) return [];
  const cell = cellBox(box, window, top, left);
  if (row !== null) Object.assign(place, { top: cell.top, height: cell.height });
  if (column !== null) Object.assign(place, { left: cell.left, width: cell.width });
  return [
    outline(place, { stroke: palette.background, "stroke-width": 5, rx: 2 }),
    outline(place, { stroke: palette.ink.weight, "stroke-width": 2.5, rx: 2, "data-ring": `${row},${column}` }),
  ];
}

function cellMarks(figure, box, { row, column }, palette) {
  const { layout, window, rowLabels, columnLabels } = figure;
  const [rowInk, columnInk] = [figure.rowAxis, figure.columnAxis].map((axis) => axisInk(axis, palette));
  const cell = cellBox(box, window, row, column);
  const y = cell.top + cell.height / 2;
  const above = { x: cell.left + cell.width / 2, y: box.top - (layout.slanted ? 7 : 10) };
  const height = Math.max(Math.min(BADGE, 2 * (ticksApart(figure, box) - HALF)), LOWEST);
  const turned = layout.slanted ? { anchor: "start", slant: -45, height } : { anchor: "middle", slant: 0 };
  const beside = { x: box.left - 6, y, anchor: "end", slant: 0 };
  return [
    outline({ ...box, top: cell.top, height: cell.height }, { stroke: rowInk, "stroke-opacity": 0.75 }),
    outline({ ...box, left: cell.left, width: cell.width }, { stroke: columnInk, "stroke-opacity": 0.75 }),
    ...(box.hasRowLabels ? label(rowLabels[row], beside, rowInk, palette) : []),
    ...(layout.header && figure.columnAxis === "key" ? [] : label(columnLabels[column], { ...above, ...turned }, columnInk, palette)),
    ...cellFrame(cell, palette),
  ];
}

/** Pixels between the lines of two slanted labels above the columns. */
function ticksApart({ layout, window }, box) {
  const [first, second] = layout.columnTicks;
  return second === undefined ? Infinity : ((second - first) * cellBox(box, window, 0, 0).width) / Math.SQRT2;
}

function axisInk(axis, palette) {
  return axis === "dimension" ? palette.text : palette.ink[axis];
}

function outline({ left, top, width, height }, attributes) {
  return shape("rect", { x: left, y: top, width, height, fill: "none", ...attributes });
}

/** A dark and a light line, so that the frame is visible on every colour. */
function cellFrame({ left, top, width, height }, palette) {
  const grown = (by) => ({
    left: left - by,
    top: top - by,
    width: Math.max(width, 3) + 2 * by,
    height: Math.max(height, 3) + 2 * by,
  });
  return [
    outline(grown(2), { stroke: palette.background, "stroke-width": 2, rx: 2 }),
    outline(grown(0.5), { stroke: palette.text, "stroke-width": 2, rx: 1, "data-mark": "cell" }),
  ];
}

/** A label on a plate in the ink of its axis, which covers the tick label. */
function label(text, { x, y, anchor, slant, height = BADGE }, ink, palette) {
  const width = text.length * LETTER + 8;
  const left = { start: x - 4, middle: x - width / 2, end: x - width + 4 }[anchor];
  const transform = `rotate(${slant} ${x} ${y})`;
  const plate = { x: left, y: y - height / 2, width, height, rx: 3, fill: ink, transform };
  const letters = { "font-family": palette.mono, "font-size": FONT, "font-weight": 600 };
  const place = { x, y: y + 4, "text-anchor": anchor, transform, fill: palette.background };
  return [shape("rect", plate), shape("text", { ...place, ...letters }, text)];
}

const AXIS_NAMES = { query: "query", key: "key", dimension: "dim." };

/** Names of the axes in the upper left corner, and the caption above each panel. */
export function drawCorners(holder, { layout, captions, rowAxis, columnAxis }, palette) {
  const axisName = (axis, arrow) =>
    element("span", { style: `color:${axisInk(axis, palette)}` }, `${AXIS_NAMES[axis]} ${arrow}`);
  holder.replaceChildren(
    ...layout.boxes.flatMap((box, n) => {
      const corner = `left:0;width:${box.left - 14}px;top:${box.top - 36}px`;
      const above = `left:${box.left}px;width:${box.width}px;top:${box.captionTop}px`;
      const names = [axisName(columnAxis, "→"), axisName(rowAxis, "↓")];
      return [
        box.hasRowLabels && element("div", { class: "corner", style: corner }, ...names),
        captions && element("div", { class: "caption", style: above }, captions[n]),
      ].filter(Boolean);
    }),
  );
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Listens to pointer and keys on the figure. `actions`: describe(cell), whose lines are null where they are to be
 *  read elsewhere, light(cell or null), choose(cell), zoom(cell, cell), move(rows, columns), enter(), leave(). */
export function listen(holder, tooltip, current, actions) {
  const cellUnder = (event) => {
    const figure = current();
    if (!figure) return null;
    const { x, y } = placeIn(holder, event);
    return cellAt(figure.layout, figure.window, x, y);
  };
  const brush = new Brush(holder);
  holder.onpointerdown = (event) => event.pointerType !== "touch" && brush.begin(event, cellUnder(event));
  holder.onpointermove = (event) => {
    const cell = event.pointerType === "touch" ? null : cellUnder(event);
    brush.draw(event);
    holder.style.cursor = cell ? "crosshair" : "default";
    showTooltip(tooltip, holder, event, cell && actions.describe(cell));
    actions.light(cell);
  };
  holder.onpointerleave = () => {
    showTooltip(tooltip, holder, null, null);
    actions.light(null);
  };
  holder.onclick = (event) => {
    const cell = cellUnder(event);
    const first = brush.end(event);
    if (first) return cell && actions.zoom(first, cell);
    if (cell) actions.choose(cell);
    showTooltip(tooltip, holder, event, cell && actions.describe(cell));
  };
  holder.onkeydown = (event) => {
    if (event.key in MOVES) actions.move(...MOVES[event.key]);
    else if (event.key === "Enter") actions.enter();
    else if (event.key === "Escape") actions.leave();
    else return;
    event.preventDefault();
  };
}

/** A box that the pointer draws over the cells. Below BRUSHED pixels it is a click. */
class Brush {
  box = element("div", { class: "brush", hidden: true });

  constructor(holder) {
    this.holder = holder;
    holder.append(this.box);
  }

  begin(event, cell) {
    this.start = cell && { cell, place: placeIn(this.holder, event) };
  }

  draw(event) {
    const isDrawn = this.start && event.buttons === 1 && this.isWide(event);
    this.box.hidden = !isDrawn;
    if (!isDrawn) return;
    const [one, other] = [this.start.place, placeIn(this.holder, event)];
    for (const [axis, edge, side] of [["x", "left", "width"], ["y", "top", "height"]]) {
      this.box.style[edge] = `${Math.min(one[axis], other[axis])}px`;
      this.box.style[side] = `${Math.abs(one[axis] - other[axis])}px`;
    }
  }

  /** The cell where a box began that ends here; null where none was drawn. */
  end(event) {
    const { start } = this;
    const isBox = start && this.isWide(event);
    this.start = null;
    this.box.hidden = true;
    return isBox ? start.cell : null;
  }

  isWide(event) {
    const { x, y } = placeIn(this.holder, event);
    return Math.min(Math.abs(x - this.start.place.x), Math.abs(y - this.start.place.y)) >= BRUSHED;
  }
}

/** Where the pointer is in an element, in the element's own pixels. */
function placeIn(holder, { clientX, clientY }) {
  const bounds = holder.getBoundingClientRect();
  const larger = drawnLarger();
  return { x: (clientX - bounds.left) / larger, y: (clientY - bounds.top) / larger };
}

function showTooltip(tooltip, holder, event, lines) {
  tooltip.hidden = !lines;
  if (!lines) return;
  tooltip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  const { x, y } = placeIn(holder, event);
  const right = x + 14 + tooltip.offsetWidth < holder.clientWidth;
  const below = y + 18 + tooltip.offsetHeight < holder.clientHeight;
  tooltip.style.left = `${Math.max(0, right ? x + 14 : x - 10 - tooltip.offsetWidth)}px`;
  tooltip.style.top = `${Math.max(0, below ? y + 18 : y - 10 - tooltip.offsetHeight)}px`;
}
