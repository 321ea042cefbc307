// Pixels: cells, hatching, thumbnails, and the figure drawn without Plotly.

import { colourPixels } from "./colours.js";
import { Drawn, drawnLarger } from "./elements.js";
import { cellBox, wholeWindow } from "./geometry.js";
import { precise } from "./numbers.js";

const THUMBNAIL_CELLS = 96;
export const FONT = 13;

/** The values of a window of a panel. Positions that share a cell give the value of largest magnitude; a cell
 *  whose positions are all masked is NaN. */
function sample(panel, window) {
  const rows = Math.ceil(window.rows / window.rowBlock);
  const columns = Math.ceil(window.columns / window.columnBlock);
  const values = new Float32Array(rows * columns).fill(NaN);
  const hiding = hidingMask(panel);
  for (let i = 0; i < window.rows; i++) {
    const start = (window.row + i) * panel.columns + window.column;
    const shown = Math.floor(i / window.rowBlock) * columns;
    for (let j = 0; j < window.columns; j++) {
      if (hiding !== null && hiding[start + j] === 1) continue;
      const value = panel.values[start + j];
      const cell = shown + Math.floor(j / window.columnBlock);
      if (!(Math.abs(value) <= Math.abs(values[cell]))) values[cell] = value;
    }
  }
  return { values, rows, columns };
}

/** The mask of the cells without a colour; null if there are none. A masked cell that still gets weight keeps its
 *  colour. */
function hidingMask(panel) {
  return panel.leaks ? null : panel.masked;
}

/** Whether a cell has no colour. */
export function isHidden(panel, cell) {
  return hidingMask(panel)?.[cell] === 1;
}

/** A cell's number, or "masked" where the mask hides it. */
export function cellText(panel, row, column, written = precise) {
  const cell = row * panel.columns + column;
  const value = panel.values[cell];
  if (panel.masked?.[cell] !== 1) return written(value);
  return panel.leaks && value !== 0 ? `${written(value)} (masked)` : "masked";
}

/** The cells of a sample as a small canvas, one pixel a cell; masked ones are transparent. */
function raster(sampled, panel, palette) {
  const canvas = document.createElement("canvas");
  paintPixels(canvas, sampled, palette.scale[panel.quantity], panel);
  return canvas;
}

/** Makes a canvas as large as a matrix and colours one pixel a cell. */
export function paintPixels(canvas, { values, rows, columns }, scale, range) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  colourPixels(new Uint32Array(image.data.buffer), values, scale, range);
  context.putImageData(image, 0, 0);
}

/** Pixels of the screen for one of the page. */
function densityNow() {
  return (globalThis.devicePixelRatio || 1) * drawnLarger();
}

/** Gives a canvas this size in CSS pixels, at the screen's density, and returns its empty context. */
export function context2d(canvas, width, height) {
  const density = densityNow();
  const [columns, rows] = [Math.round(width * density), Math.round(height * density)];
  const context = canvas.getContext("2d");
  if (canvas.width !== columns || canvas.height !== rows) {
    Object.assign(canvas, { width: columns, height: rows });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  } else {
    context.reset();
  }
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}

/** Hatching at the density of a context; `ground`: on grey. */
export function hatchPattern(context, palette, ground) {
  const density = context.getTransform().a;
  const size = Math.round(6 * density);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  if (ground) {
    pen.fillStyle = palette.dark ? "#2c2c32" : "#f1f0f3";
    pen.fillRect(0, 0, size, size);
  }
  pen.strokeStyle = palette.masked;
  pen.globalAlpha = ground ? 0.55 : 0.9;
  pen.lineWidth = density;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / density));
  return pattern;
}

/** Hatches the masked cells of a panel: grey, or only lines where a masked cell still gets weight. */
export function hatch(context, panel, window, box, palette) {
  drawHatching(context, maskedCells(panel, window), panel, box, palette);
}

function drawHatching(context, masked, panel, box, palette) {
  if (masked === null) return;
  context.fillStyle = hatchPattern(context, palette, !panel.leaks);
  const width = box.width / masked.columns;
  const height = box.height / masked.rows;
  for (let row = 0; row < masked.rows; row++) {
    for (let column = 0; column < masked.columns; column++) {
      if (!masked.cells[row * masked.columns + column]) continue;
      let end = column;
      while (end < masked.columns && masked.cells[row * masked.columns + end]) end++;
      context.fillRect(
        box.left + column * width,
        box.top + row * height,
        (end - column) * width,
        height + 0.5 * (row < masked.rows - 1),
      );
      column = end;
    }
  }
}

/** For each cell of a window whether it is masked, 1 or 0; null without a mask. */
function maskedCells(panel, window, sampled = sample({ ...panel, leaks: false }, window)) {
  if (panel.masked === null) return null;
  return { ...sampled, cells: sampled.values.map(Number.isNaN) };
}

/** Cells and hatching of one panel in a box. */
function paintPanel(context, { raster, masked }, panel, box, palette) {
  context.imageSmoothingEnabled = false;
  context.drawImage(raster, box.left, box.top, box.width, box.height);
  drawHatching(context, masked, panel, box, palette);
}

/** The cells of a panel as a small canvas, and those that are masked. */
function cellsOf(panel, window, palette) {
  const sampled = sample(panel, window);
  const masked = maskedCells(panel, window, panel.leaks ? undefined : sampled);
  return { raster: raster(sampled, panel, palette), masked };
}

const latestCells = new WeakMap(); // from a matrix to its cells as they were last painted
const latestThumbnails = new WeakMap(); // and to those of its small picture

/** The cells of a panel as a small canvas, one pixel a cell. */
export function paintedCells(panel, window, palette) {
  return cellsOf(panel, window, palette).raster;
}

/** The same, kept with the matrix: comparing two heads, one goes back and forth. `store`: of large or of small
 *  pictures. */
function keptCells(panel, window, palette, store = latestCells) {
  const { values, quantity, low, high, masked, leaks } = panel;
  const facts = [quantity, low, high, masked, leaks, palette, ...Object.values(window)];
  const kept = store.get(values);
  if (kept && facts.every((fact, n) => fact === kept.facts[n])) return kept.cells;
  const cells = cellsOf(panel, window, palette);
  store.set(values, { facts, cells });
  return cells;
}

/** A small square picture of a panel. */
export function paintThumbnail(canvas, panel, palette, side) {
  const window = wholeWindow(panel.rows, panel.columns, THUMBNAIL_CELLS);
  const box = { left: 0, top: 0, width: side, height: side };
  paintPanel(context2d(canvas, side, side), keptCells(panel, window, palette, latestThumbnails), panel, box, palette);
}

/** Three dots for a panel whose values have not arrived. */
export function paintAwaited(canvas, palette, side) {
  const context = context2d(canvas, side, side);
  context.fillStyle = palette.masked;
  for (const across of [0.3, 0.5, 0.7]) {
    context.beginPath();
    context.arc(across * side, side / 2, side / 20, 0, 2 * Math.PI);
    context.fill();
  }
}

/** The whole figure without Plotly: cells, hatching and tick labels. */
export function paintFigure(canvas, figure, palette) {
  const { layout, window, panels } = figure;
  const context = context2d(canvas, layout.width, layout.height);
  panels.forEach((panel, n) => {
    paintPanel(context, keptCells(panel, window, palette), panel, layout.boxes[n], palette);
  });
  context.drawImage(ticksOf(figure, palette), 0, 0, layout.width, layout.height);
}

const drawn = new Drawn();
let ticks = null; // as last drawn

/** The tick labels of a figure on a canvas of their own. They are the same for all heads, and to write letters
 *  on a canvas of the page would lay out the page. */
function ticksOf(figure, palette) {
  const { layout, window, rowLabels, columnLabels } = figure;
  const labels = [layout.rowTicks.map((row) => rowLabels[row]), layout.columnTicks.map((column) => columnLabels[column])];
  if (drawn.differs("ticks", JSON.stringify([layout, window, labels, palette.signature, densityNow()]))) {
    ticks = document.createElement("canvas");
    const context = context2d(ticks, layout.width, layout.height);
    for (const box of layout.boxes) paintTicks(context, figure, box, palette);
  }
  return ticks;
}

function paintTicks(context, figure, box, palette) {
  context.fillStyle = palette.text;
  context.font = `${FONT}px ${palette.mono}`;
  context.textBaseline = "middle";
  for (const { text, x, y, align, slant } of tickLabels(figure, box)) {
    context.save();
    context.translate(x, y);
    context.rotate((slant * Math.PI) / 180);
    context.textAlign = align;
    context.fillText(text, 0, 0);
    context.restore();
  }
}

/** The tick labels of a box, each with its place in the figure; half of its height lies above that. */
export function tickLabels({ layout, window, rowLabels, columnLabels }, box) {
  const middle = (row, column) => {
    const { left, top, width, height } = cellBox(box, window, row, column);
    return { x: left + width / 2, y: top + height / 2 };
  };
  const rows = box.hasRowLabels ? layout.rowTicks : [];
  const above = layout.slanted
    ? { y: box.top - 7, align: "start", slant: -45 }
    : { y: box.top - 10, align: "center", slant: 0 };
  const beside = { x: box.left - 6, align: "end", slant: 0 };
  return [
    ...rows.map((row) => ({ ...middle(row, window.column), ...beside, text: rowLabels[row] })),
    ...layout.columnTicks.map((column) => ({
      ...middle(window.row, column),
      ...above,
      text: columnLabels[column],
    })),
  ];
}
