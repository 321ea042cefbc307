// The figure as Plotly heatmaps. Plotly draws cells and tick labels in the boxes of geometry.js. Frames, hatching,
// tooltips and clicks are on top and never make it draw again.

import { simple } from "./numbers.js";
import { FONT, isHidden } from "./paint.js";

const NUMBERED = 12; // up to this many rows and columns, cells carry their numbers
const NUMBER = { largest: 12, smallest: 9, letter: 0.61, around: 4, line: 1.3 }; // pixels, or relative to the size

/** Draws or redraws a figure in `element`. Resolves when it is on the page. */
export function drawPlotly(Plotly, element, figure, palette) {
  const { data, layout } = plotlyFigure(figure, palette);
  return Plotly.react(element, data, layout, { staticPlot: true, displayModeBar: false });
}

/** Data and layout of a figure, without colour scales. */
export function plotlyFigure(figure, palette) {
  const data = figure.panels.map((panel, n) => trace(panel, n, figure, palette));
  return { data, layout: layoutOf(figure, palette) };
}

function trace(panel, n, figure, palette) {
  const { window } = figure;
  const rows = rowsOf(panel, window);
  return {
    type: "heatmap",
    z: rows,
    ...{ x0: window.column, dx: 1, y0: window.row, dy: 1 },
    xaxis: axisId("x", n),
    yaxis: axisId("y", n),
    zmin: panel.low,
    zmax: panel.high,
    colorscale: palette.scale[panel.quantity].plotly,
    showscale: false,
    hoverinfo: "skip",
    ...numbersIn(rows, figure, n, palette),
  };
}

/** The values of a window, row by row. A masked cell is NaN, which Plotly leaves empty. */
function rowsOf(panel, window) {
  return Array.from({ length: window.rows }, (_, i) => {
    const start = (window.row + i) * panel.columns + window.column;
    const row = panel.values.subarray(start, start + window.columns);
    return row.map((value, j) => (isHidden(panel, start + j) ? NaN : value));
  });
}

function numbersIn(rows, figure, n, palette) {
  const { window, layout } = figure;
  if (window.rows > NUMBERED || window.columns > NUMBERED) return {};
  const text = rows.map((row) => Array.from(row, (value) => (Number.isNaN(value) ? "" : simple(value))));
  const size = sizeThatFits(text.flat(), layout.boxes[n], window);
  if (size < NUMBER.smallest) return {};
  return { text, texttemplate: "%{text}", textfont: { family: palette.mono, size } };
}

/** The largest size of letters, up to the usual one, at which every number fits its cell. */
function sizeThatFits(numbers, box, window) {
  const longest = Math.max(...numbers.map((number) => number.length));
  const across = (box.width / window.columns - NUMBER.around) / (longest * NUMBER.letter);
  const down = box.height / window.rows / NUMBER.line;
  return Math.min(NUMBER.largest, across, down);
}

function axisId(letter, n) {
  return n === 0 ? letter : `${letter}${n + 1}`;
}

function layoutOf(figure, palette) {
  const { layout, window } = figure;
  const axis = (ticks, labels, more) => ({
    showgrid: false,
    zeroline: false,
    showline: false,
    ticks: "",
    ticklabelstandoff: 4,
    ticklabeloverflow: "allow", // measuring every label for "hide" takes 40 of 60 ms
    fixedrange: true,
    automargin: false,
    tickfont: { family: palette.mono, size: FONT, color: palette.text },
    tickvals: ticks,
    ticktext: ticks.map((tick) => labels[tick]),
    ...more,
  });
  const axes = layout.boxes.map(({ left, top, width, height, hasRowLabels }, n) => ({
    [axisId("xaxis", n)]: axis(layout.columnTicks, figure.columnTickLabels, {
      anchor: axisId("y", n),
      domain: [left / layout.width, (left + width) / layout.width],
      range: [window.column - 0.5, window.column + window.columns - 0.5],
      side: "top",
      tickangle: layout.slanted ? -45 : 0,
    }),
    [axisId("yaxis", n)]: axis(layout.rowTicks, figure.rowTickLabels, {
      anchor: axisId("x", n),
      domain: [1 - (top + height) / layout.height, 1 - top / layout.height],
      range: [window.row + window.rows - 0.5, window.row - 0.5],
      showticklabels: hasRowLabels,
    }),
  }));
  return Object.assign({}, ...axes, {
    width: layout.width,
    height: layout.height,
    margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
  });
}
