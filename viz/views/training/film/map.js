// One head's map on a canvas: weights, what is not allowed, and the framed cells of a known pattern.

const LABELS = 32; // more labels than this on an axis cannot be read
const FONT = 12;
const TALLEST = 470; // pixels of the cells

function decodeBytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function decodeCells(text) {
  return text === null ? null : decodeBytes(text);
}

/** The weights of all checkpoints, from the float32 of those cells that are allowed; 0 in the others. */
function decodeWeights(text, allowed) {
  const sent = new Float32Array(decodeBytes(text).buffer);
  if (allowed === null) return sent;
  const open = Array.from(allowed.keys()).filter((cell) => allowed[cell]);
  const maps = new Float32Array((sent.length / open.length) * allowed.length);
  sent.forEach((weight, n) => {
    maps[Math.floor(n / open.length) * allowed.length + open[n % open.length]] = weight;
  });
  return maps;
}

/** Where the cells of a map lie on its canvas, given the width there is. */
function layoutOf(data, available, context, mono) {
  context.font = `${FONT}px ${mono}`;
  const widest = (labels) =>
    Math.max(...shownLabels(labels).map(([, label]) => context.measureText(label).width), 8);
  const left = Math.min(widest(data.queries) + 26, 150);
  const rows = data.queries.length;
  const columns = data.keys.length;
  const room = Math.max(available - left - 46, 80); // a slanted last label needs the rest
  const cell = Math.min(room / columns, TALLEST / rows, 56);
  const slanted = widest(data.keys) + 4 > cell * Math.ceil(columns / LABELS);
  const top = (slanted ? widest(data.keys) * 0.72 + 14 : 20) + 16;
  return { left, top, cell, rows, columns, slanted };
}

function shownLabels(labels) {
  const every = Math.ceil(labels.length / LABELS);
  return labels.map((label, at) => [at, label]).filter(([at]) => at % every === 0);
}

/** Draws the map of one checkpoint. weights: (query, key) of it; cell: [query, key] or null. */
function drawMap(canvas, { data, weights, layout, palette, cell }) {
  const { left, top, cell: size, rows, columns } = layout;
  const ratio = globalThis.devicePixelRatio || 1;
  const [width, height] = [left + columns * size + 46, top + rows * size + 4];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const gap = size >= 8 ? 1 : 0;
  const box = (row, column) => [left + column * size, top + row * size, size - gap, size - gap];
  const hatching = hatchingOf(context, palette.masked);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const at = row * columns + column;
      const masked = data.cells.allowed !== null && !data.cells.allowed[at];
      context.fillStyle = masked ? hatching : palette.colourOf(weights[at]);
      context.fillRect(...box(row, column));
    }
  }
  frameCells(context, data.cells.framed, columns, box, palette);
  drawLabels(context, data, layout, palette);
  if (cell) {
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.strokeRect(...box(...cell));
  }
}

function frameCells(context, framed, columns, box, palette) {
  if (framed === null) return;
  context.strokeStyle = palette.text;
  context.lineWidth = 1;
  framed.forEach((is, at) => {
    if (!is) return;
    const [x, y, width, height] = box(Math.floor(at / columns), at % columns);
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  });
}

function hatchingOf(context, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inside = tile.getContext("2d");
  inside.strokeStyle = colour;
  inside.globalAlpha = 0.45;
  inside.beginPath();
  for (const shift of [-6, 0, 6]) {
    inside.moveTo(shift, 6);
    inside.lineTo(shift + 6, 0);
  }
  inside.stroke();
  return context.createPattern(tile, "repeat");
}

function drawLabels(context, data, { left, top, cell, rows, columns, slanted }, palette) {
  context.fillStyle = palette.text;
  context.font = `${FONT}px ${palette.mono}`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [at, label] of shownLabels(data.queries)) {
    context.fillText(label, left - 6, top + (at + 0.5) * cell);
  }
  for (const [at, label] of shownLabels(data.keys)) {
    context.save();
    context.translate(left + (at + 0.5) * cell, top - 8);
    if (slanted) context.rotate(-Math.PI / 4);
    context.textAlign = slanted ? "left" : "center";
    context.fillText(label, 0, 0);
    context.restore();
  }
  context.fillStyle = palette.quiet;
  context.font = `${FONT - 1}px ${palette.font}`;
  context.textAlign = "left";
  context.fillText("key →", left, 7);
  context.save();
  context.translate(8, top + (rows * cell) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText("← query", 0, 0);
  context.restore();
}

/** The cell under a point of the canvas, or null. */
function cellAt({ left, top, cell, rows, columns }, x, y) {
  const [row, column] = [Math.floor((y - top) / cell), Math.floor((x - left) / cell)];
  const inside = row >= 0 && row < rows && column >= 0 && column < columns;
  return inside ? [row, column] : null;
}
