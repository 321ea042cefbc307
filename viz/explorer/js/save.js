// The shown picture as a file: PNG or SVG with title and colour scale, and its numbers as CSV.

import { element } from "./elements.js";
import { scaleEnd } from "./numbers.js";
import { context2d, hatch, isHidden, paintFigure } from "./paint.js";
import { plotlyFigure } from "./plotly.js";
import { axisLabel, columnName } from "./table.js";

const MARGIN = { l: 12, r: 96, t: 22, b: 12 }; // the lines of the title are added to the top
const TITLE = "600 14px sans-serif";
const TITLE_LINE = 18;
const NOTE = "12px sans-serif";
const DENSITY = 2; // pixels of the PNG for each CSS pixel

/** Makes a file and lets the browser download it. `name` has no extension. */
export async function save(format, name, { figure, palette, renderer, Plotly }) {
  const makers = {
    csv: () => csvAddress(figure),
    plotly: () => plotlyImage(Plotly, format, figure, palette),
    canvas: () => canvasImage(figure, palette),
  };
  const href = await makers[format === "csv" ? "csv" : renderer]();
  element("a", { href, download: `${name}.${format}` }).click();
}

function csvAddress(figure) {
  const address = URL.createObjectURL(new Blob([csvOf(figure)], { type: "text/csv;charset=utf-8" }));
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return address;
}

/** Plotly's image of the figure, with title, colour scales and hatching. */
function plotlyImage(Plotly, format, figure, palette) {
  const { data, layout } = plotlyFigure(figure, palette);
  const last = data.length - 1;
  data.forEach((trace, n) => {
    trace.showscale = n === 0 || n === last;
    trace.colorbar = {
      thickness: 12,
      outlinewidth: 0,
      len: last ? 0.5 : 1,
      y: last && n === last ? 0.2 : last ? 0.75 : 0.5,
      tickfont: { color: palette.text, size: 11 },
    };
  });
  const width = layout.width + MARGIN.l + MARGIN.r;
  const title = titleLines(figure.title, width - 2 * MARGIN.l);
  const margin = { ...MARGIN, t: MARGIN.t + TITLE_LINE * title.length };
  const height = layout.height + margin.t + margin.b;
  const whole = { x: 0, y: 1, sizex: 1, sizey: 1, xref: "paper", yref: "paper" };
  const picture = {
    ...layout,
    width,
    height,
    margin,
    paper_bgcolor: palette.background,
    title: {
      text: title.join("<br>"),
      x: MARGIN.l / width,
      y: 1 - 16 / height,
      yanchor: "top",
      font: { family: "sans-serif", weight: 600, size: 14, color: palette.text },
    },
    images: [{ ...whole, source: hatchImage(figure, palette), sizing: "stretch", layer: "above" }],
    annotations: captions(figure, palette),
  };
  const scale = format === "png" ? DENSITY : 1;
  return Plotly.toImage({ data, layout: picture }, { format, width, height, scale });
}

/** A title, broken into lines of at most this width. */
function titleLines(title, width) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = TITLE;
  const lines = [""];
  for (const word of title.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (pen.measureText(longer).width <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function captions({ captions: texts, layout }, palette) {
  return (texts ?? []).map((text, n) => ({
    text,
    showarrow: false,
    xref: "paper",
    yref: "paper",
    xanchor: "left",
    yanchor: "top",
    x: layout.boxes[n].left / layout.width,
    y: 1 - layout.boxes[n].captionTop / layout.height,
    font: { size: 12, color: palette.text },
  }));
}

function hatchImage(figure, palette) {
  const canvas = document.createElement("canvas");
  const { layout, panels, window } = figure;
  const context = context2d(canvas, layout.width, layout.height);
  panels.forEach((panel, n) => hatch(context, panel, window, layout.boxes[n], palette));
  return canvas.toDataURL("image/png");
}

/** Our own drawing of the figure, with its title and the ends of the colour scale in words. */
function canvasImage(figure, palette) {
  const drawn = document.createElement("canvas");
  paintFigure(drawn, figure, palette);
  const { width, height } = figure.layout;
  const [first] = figure.panels;
  const note = `colours from ${scaleEnd(first.low)} to ${scaleEnd(first.high)}${sharing(figure)}`;
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  pen.font = NOTE;
  const wide = Math.max(width, Math.ceil(pen.measureText(note).width));
  const title = titleLines(figure.title, wide);
  const top = MARGIN.t + TITLE_LINE * title.length;
  const context = context2d(canvas, wide + 2 * MARGIN.l, height + top + MARGIN.b + 20);
  context.fillStyle = palette.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(drawn, MARGIN.l, top, width, height);
  context.fillStyle = palette.text;
  context.font = TITLE;
  title.forEach((line, n) => context.fillText(line, MARGIN.l, 24 + n * TITLE_LINE));
  context.font = NOTE;
  context.fillText(note, MARGIN.l, height + top + 14);
  return canvas.toDataURL("image/png");
}

function sharing({ window }) {
  const { rowBlock, columnBlock } = window;
  return rowBlock * columnBlock > 1 ? `; one cell = ${rowBlock} × ${columnBlock} positions` : "";
}

/** All numbers of the matrix, also those outside the window; masked cells are empty. */
function csvOf(figure) {
  const { panels, runs, rowAxis, columnAxis, rowLabels, columnLabels } = figure;
  const names = columnLabels.map((_, n) => columnName(figure, n));
  const head = [runs && "run", `${rowAxis} \\ ${columnAxis}`, ...names];
  const lines = [head.filter(Boolean).map(quoted).join(",")];
  panels.forEach((panel, n) => {
    for (let row = 0; row < panel.rows; row++) {
      const label = quoted(axisLabel(rowAxis, rowLabels, row));
      const values = Array.from({ length: panel.columns }, (_, column) => csvCell(panel, row, column));
      lines.push([...(runs ? [runs[n]] : []), label, ...values].join(","));
    }
  });
  return lines.join("\r\n") + "\r\n";
}

function csvCell(panel, row, column) {
  const cell = row * panel.columns + column;
  const value = panel.values[cell];
  return isHidden(panel, cell) || !Number.isFinite(value) ? "" : String(value);
}

export function quoted(text) {
  return `"${text.replaceAll('"', '""')}"`;
}
