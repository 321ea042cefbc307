// The shown picture as a file: PNG, SVG or PDF with title and colour scale, and its numbers as CSV.

import { certificateOf, certified, certifiedPdf, SVG } from "./certificate.js";
import { element, shape } from "./elements.js";
import { beyondInWords } from "./colour_end.js";
import { scaleEnd } from "./numbers.js";
import { context2d, FONT, hatch, isHidden, paintedCells, tickLabels } from "./paint.js";
import { rasterOf } from "./pdf.js";
import { plotlyFigure } from "./plotly.js";
import { axisLabel, columnName } from "./table.js";

const MARGIN = { l: 12, r: 96, t: 22, b: 12 }; // the lines of the title are added to the top
const TITLE = "600 14px sans-serif";
const TITLE_LINE = 18;
const NOTE = "13px sans-serif";
export const UTF8 = "\ufeff"; // at the beginning of a file: spreadsheets take it for another encoding without
const DENSITY = 2; // pixels of the PNG for each CSS pixel
const [CELL, BORDER] = [3, 4]; // pixels of a cell of a code to scan, and cells around it (ISO 18004, 5.3.8)

/** Makes a file and lets the browser download it. `name` has no extension. `run`, `view`: what its certificate says
 *  beside its numbers; a picture of no run that can be made again has none. */
export async function save(format, name, drawn) {
  const href = await addressIn(format, drawn);
  const link = element("a", { href, download: `${name}.${format}`, hidden: true });
  document.body.append(link); // VS Code hears of a click there
  link.click();
  link.remove();
}

async function addressIn(format, { figure, palette, renderer, Plotly, run, view }) {
  if (format === "csv") return addressOf([UTF8, csvOf(figure)], "text/csv;charset=utf-8");
  const svg = await (renderer === "plotly" ? plotlyImage(Plotly, figure, palette) : svgImage(figure, palette));
  const whole = run?.scan ? withCode(svg, run.scan) : svg; // of which the others are made
  const certificate = run && certificateOf(run, view, figure);
  if (format === "pdf") return addressOf(await certifiedPdf(whole, certificate), "application/pdf");
  const made = format === "png" ? (await rasterOf(whole, DENSITY)).canvas.toDataURL("image/png") : whole;
  return certificate ? certified(made, certificate) : made;
}

/** A drawing with a code to scan under it, dark on white in both themes. address: of an SVG. rows: "1" is dark. */
function withCode(address, rows) {
  const inner = new DOMParser().parseFromString(decodeURIComponent(address.slice(SVG.length)), "image/svg+xml");
  const drawn = inner.documentElement;
  const [width, height] = ["width", "height"].map((name) => Number.parseFloat(drawn.getAttribute(name)));
  const side = CELL * (rows.length + 2 * BORDER);
  const dark = rows.flatMap((row, y) => [...row].map((cell, x) => (cell === "1" ? `M${x} ${y}h1v1h-1z` : "")));
  const transform = `translate(${CELL * BORDER} ${height + CELL * BORDER}) scale(${CELL})`;
  const code = { transform, d: dark.join(""), fill: "#000", "shape-rendering": "crispEdges" };
  const size = { width: Math.max(width, side), height: height + side };
  const whole = shape(
    "svg",
    { ...size, viewBox: `0 0 ${size.width} ${size.height}` },
    shape("rect", { width: "100%", height: "100%", fill: "#fff" }),
    document.importNode(drawn, true),
    shape("path", { class: "code-to-scan", ...code }),
  );
  return SVG + encodeURIComponent(new XMLSerializer().serializeToString(whole));
}

function addressOf(parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return address;
}

/** Plotly's image of the figure, with title, colour scales and hatching. */
function plotlyImage(Plotly, figure, palette) {
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
  const words = [figure.title, ...clippings(figure)].join("; ");
  const title = titleLines(words, width - 2 * MARGIN.l);
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
  return Plotly.toImage({ data, layout: picture }, { format: "svg", width, height });
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

/** Our own drawing of the figure, with its words: its cells as one image a panel and all words as text. */
function svgImage(figure, palette) {
  const { layout, panels, window } = figure;
  const { top, words, width, height } = framed(figure);
  const place = { transform: `translate(${MARGIN.l} ${top})` };
  const cells = panels.map((panel, n) => {
    const { left: x, top: y, ...size } = layout.boxes[n];
    const box = { x, y, width: size.width, height: size.height, preserveAspectRatio: "none" };
    const href = paintedCells(panel, window, palette).toDataURL("image/png");
    return shape("image", { ...box, href, style: "image-rendering:pixelated" });
  });
  const hatching = { width: layout.width, height: layout.height, href: hatchImage(figure, palette) };
  const ticks = layout.boxes.flatMap((box) => tickLabels(figure, box)).map(({ text, x, y, align, slant }) => {
    const anchor = align === "center" ? "middle" : align;
    const at = { transform: `translate(${x} ${y}) rotate(${slant})`, y: 4, "text-anchor": anchor };
    return shape("text", at, text);
  });
  const letters = { "font-family": palette.mono, "font-size": FONT };
  const drawn = shape(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, fill: palette.text },
    shape("rect", { width: "100%", height: "100%", fill: palette.background }),
    shape("g", place, ...cells, shape("image", hatching), shape("g", letters, ...ticks)),
    ...words.map(({ text, font, x, y }) => shape("text", { x, y, style: `font:${font}` }, text)),
  );
  return `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(drawn))}`;
}

/** The words around a saved figure: its title, the captions of its panels, and the ends of the colour scale. */
function framed({ title: said, layout, panels, captions: names, ...figure }) {
  const ends = `colours from ${scaleEnd(panels[0].low)} to ${scaleEnd(panels[0].high)}`;
  const note = [ends, ...clippings({ panels, captions: names }), ...sharing(figure)].join("; ");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = NOTE;
  const wide = Math.max(layout.width, Math.ceil(pen.measureText(note).width));
  const title = titleLines(said, wide);
  const top = MARGIN.t + TITLE_LINE * title.length;
  const words = [
    ...title.map((text, n) => ({ text, font: TITLE, x: MARGIN.l, y: 24 + n * TITLE_LINE })),
    ...(names ?? []).map((text, n) => {
      const { left, captionTop } = layout.boxes[n];
      return { text, font: NOTE, x: MARGIN.l + left, y: top + captionTop + 14 };
    }),
    { text: note, font: NOTE, x: MARGIN.l, y: layout.height + top + 14 },
  ];
  return { top, words, width: wide + 2 * MARGIN.l, height: layout.height + top + MARGIN.b + 20 };
}

function sharing({ window }) {
  const { rowBlock, columnBlock } = window;
  return rowBlock * columnBlock > 1 ? [`one cell = ${rowBlock} × ${columnBlock} positions`] : [];
}

/** Of each panel whose colours end early, what lies beyond. */
function clippings({ panels, captions: names }) {
  const said = panels.map((panel, n) => [names?.[n], beyondInWords(panel)]);
  return said.filter(([, words]) => words).map((both) => both.filter(Boolean).join(": "));
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
