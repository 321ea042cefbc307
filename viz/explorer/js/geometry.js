// The layout of a figure: the shown window of a matrix, its ticks and its boxes.
// One geometry serves Plotly, the canvas and everything laid over them.

export const PLOTLY_TOKENS = 64; // beyond this, Plotly is too slow and the canvas draws
export const WINDOW = 64; // positions of a window that shows part of a long text cell by cell
const OVERVIEW = 256; // cells along a side of an overview; beyond, positions share a cell
const LABELS = 32;
export const LETTER = 7.9; // width of a letter of the 13-pixel monospaced face
const LINE = 14; // pixels that a label needs on its axis
const DIMENSION_LABEL = 26; // pixels that a dimension's number needs on its axis
const LARGEST_CELL = 96;
const CORNER = 74; // room for the names of the axes, and of the bars
const PASSES = 5;
const LEVEL = 36; // room above a box for level labels
const BELOW = 8; // room below a box
const LOWEST = 120; // pixels of a box, whatever room there is
const SLANT = Math.SQRT1_2;
const WITHOUT_TICKS = { ticks: [], slanted: false, height: 0, overhang: 4 };

/** At most `limit` evenly spaced positions of `count`, from `start` on. As in viz/notation/labels.py. */
export function tickPositions(count, limit = LABELS, start = 0) {
  const stride = Math.ceil(count / Math.max(limit, 1));
  const ticks = [];
  for (let position = 0; position < count; position += stride) ticks.push(start + position);
  return ticks;
}

/** The first tokens of words among `count` positions from `start` on, no two nearer than `apart`. `words`: the number
 *  of each token's word. */
export function wordStarts(words, start, count, apart) {
  const starts = [];
  for (let at = start; at < Math.min(start + count, words.length); at++) {
    const isFirst = at === 0 || words[at] !== words[at - 1];
    if (isFirst && (!starts.length || at - starts.at(-1) >= apart)) starts.push(at);
  }
  return starts;
}

/** The whole matrix; where it has more rows or columns than `most`, neighbouring positions share a cell. */
export function wholeWindow(rows, columns, most = OVERVIEW) {
  const blocks = { rowBlock: Math.ceil(rows / most), columnBlock: Math.ceil(columns / most) };
  return { row: 0, rows, column: 0, columns, ...blocks, exact: false };
}

/** A window around one cell that shows every position. */
export function windowAround(rows, columns, row, column) {
  const start = (position, count) => within(position - WINDOW / 2, count - WINDOW + 1);
  const place = { row: start(row, rows), column: start(column, columns) };
  const size = { rows: Math.min(rows, WINDOW), columns: Math.min(columns, WINDOW) };
  return { ...place, ...size, rowBlock: 1, columnBlock: 1, exact: true };
}

/** The window between two cells, each a corner of it. */
export function windowBetween(one, other) {
  const side = (name) => [Math.min(one[name], other[name]), Math.abs(one[name] - other[name]) + 1];
  const [[row, rows], [column, columns]] = [side("row"), side("column")];
  const blocks = wholeWindow(rows, columns);
  return { ...blocks, row, column, exact: blocks.rowBlock * blocks.columnBlock === 1 };
}

/** The nearest of `count` positions. */
export function within(position, count) {
  return Math.max(Math.min(position, count - 1), 0);
}

/** The rows and columns of a window, in words. */
export function spanned({ row, rows, column, columns }) {
  return `rows ${row}–${row + rows - 1}, columns ${column}–${column + columns - 1}`;
}

export function contains({ row: top, rows, column: left, columns }, row, column) {
  return row >= top && row < top + rows && column >= left && column < left + columns;
}

/** Boxes, ticks and size of a figure with `count` panels side by side, or stacked where it is narrow. A panel
 *  with its labels is at most as tall as `tallest`. `header`: pixels above it for tokens that are no ticks, or 0.
 *  `rowWords`: the numbers of the rows' words, where only the first token of each has its label; or null. */
export function figureLayout(plan) {
  const { available, tallest, count, window, rowLabels, square, header = 0, rowWords = null } = plan;
  const stacked = count > 1 && available < 640;
  const gap = stacked ? 34 : 18;
  const captions = count > 1 ? 22 : 0;
  const abreast = stacked ? 1 : count;
  const left = Math.max(widest(rowLabels, window.row, window.rows) * LETTER + 12, CORNER);
  const room = (available - left - 6 - gap * (abreast - 1)) / abreast;
  let [size, columns, overhang, top] = [null, null, 4, Math.max(header, LEVEL) + captions];
  for (let pass = 0; pass < PASSES; pass++) {
    size = boxSize(room - overhang, Math.max(tallest - top - BELOW, LOWEST), window, square);
    columns = header && square ? WITHOUT_TICKS : columnTicks(size.width, plan);
    const needed = Math.max(columns.height, LEVEL) + captions;
    if (columns.overhang <= overhang && needed <= top) break;
    // Slanted labels need room beside the box and above it, which makes it smaller.
    [overhang, top] = [Math.max(columns.overhang, overhang), Math.max(needed, top)];
  }
  const boxes = Array.from({ length: count }, (_, n) => ({
    left: left + (stacked ? 0 : n * (size.width + gap + overhang)),
    top: top + (stacked ? n * (size.height + top + gap) : 0),
    captionTop: stacked ? n * (size.height + top + gap) : 0,
    hasRowLabels: n === 0 || stacked,
    ...size,
  }));
  const last = boxes[count - 1];
  return {
    boxes,
    header,
    slanted: columns.slanted,
    columnTicks: columns.ticks,
    rowTicks: rowWords
      ? wordStarts(rowWords, window.row, window.rows, Math.ceil((LINE * window.rows) / size.height))
      : tickPositions(window.rows, tickLimit(size.height), window.row),
    width: last.left + last.width + overhang + 6,
    height: last.top + last.height + BELOW,
  };
}

function tickLimit(length) {
  return Math.min(LABELS, Math.floor(length / LINE));
}

function widest(labels, start, count) {
  let length = 2;
  for (let n = start; n < start + count; n++) length = Math.max(length, labels[n].length);
  return length;
}

/** Ticks of the columns, the height of their labels, and how far slanted ones reach to the right. */
function columnTicks(width, { window, columnLabels, columnAxis }) {
  if (columnAxis === "dimension") return dimensionTicks(width, window);
  const ticks = tickPositions(window.columns, tickLimit(width), window.column);
  const cell = width / window.columns;
  const lengths = ticks.map((tick) => columnLabels[tick].length * LETTER);
  const longest = Math.max(...lengths);
  const slanted = longest + 8 > width / ticks.length;
  if (!slanted) return { ticks, slanted, height: 24, overhang: 4 };
  const beyond = ticks.map((tick, n) => {
    const reach = (tick - window.column + 0.5) * cell + lengths[n] * SLANT + 8;
    return reach - width;
  });
  return { ticks, slanted, height: longest * SLANT + 20, overhang: Math.max(4, ...beyond) };
}

/** Dimensions are numbers: every second, fourth, eighth … is labelled, never slanted. */
function dimensionTicks(width, window) {
  let stride = 1;
  while ((width / window.columns) * stride < DIMENSION_LABEL) stride *= 2;
  const first = Math.ceil(window.column / stride) * stride;
  const count = Math.ceil((window.column + window.columns - first) / stride);
  const ticks = Array.from({ length: count }, (_, n) => first + n * stride);
  return { ticks, slanted: false, height: 24, overhang: 10 };
}

function boxSize(room, tallest, window, square) {
  const rows = Math.ceil(window.rows / window.rowBlock);
  const columns = Math.ceil(window.columns / window.columnBlock);
  const side = Math.min(room, tallest, LARGEST_CELL * rows);
  if (!square) return { width: room, height: side };
  const cell = Math.min(room / columns, tallest / rows, LARGEST_CELL);
  const width = Math.max(cell * columns, Math.min(room, side / 2));
  return { width, height: Math.max(cell * rows, Math.min(side, room / 4)) };
}

/** The cell of the matrix under a point of the figure; null beside the panels. */
export function cellAt(layout, window, x, y) {
  for (const { left, top, width, height } of layout.boxes) {
    const row = window.row + Math.floor(((y - top) / height) * window.rows);
    const column = window.column + Math.floor(((x - left) / width) * window.columns);
    if (contains(window, row, column)) return { row, column };
  }
  return null;
}

/** A cell's rectangle in a box of the figure. */
export function cellBox(box, window, row, column) {
  const width = box.width / window.columns;
  const height = box.height / window.rows;
  return {
    left: box.left + (column - window.column) * width,
    top: box.top + (row - window.row) * height,
    width,
    height,
  };
}
