// The shown numbers as a plain table, for screen readers and for copying. Built only when it is open.

import { element } from "./elements.js";
import { contains, windowAround, wholeWindow, WINDOW } from "./geometry.js";
import { precise } from "./numbers.js";

/** A table of the figure's panels, at most 64 rows and columns around the chosen cell. */
export function drawTable(holder, figure, chosen) {
  holder.replaceChildren(
    ...figure.panels.map((panel, n) => {
      const part = shownPart(figure, panel, chosen);
      const caption = figure.captions ? `${figure.title} — ${figure.captions[n]}` : figure.title;
      return tableOf(figure, panel, part, caption);
    }),
  );
}

function shownPart({ window }, panel, { row, column }) {
  if (window.exact && contains(window, row, column)) return window;
  if (panel.rows <= WINDOW && panel.columns <= WINDOW) {
    return wholeWindow(panel.rows, panel.columns);
  }
  return windowAround(panel.rows, panel.columns, row, column);
}

function tableOf(figure, panel, part, caption) {
  const columns = range(part.column, part.columns);
  const rows = range(part.row, part.rows);
  const names = columns.map((column) => axisLabel(figure.columnAxis, figure.columnLabels, column));
  return element(
    "table",
    {},
    element("caption", {}, caption + partName(panel, part)),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("td", {}),
        ...names.map((name) => element("th", { scope: "col" }, name)),
      ),
    ),
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, axisLabel(figure.rowAxis, figure.rowLabels, row)),
          ...columns.map((column) => element("td", {}, cellText(panel, row, column))),
        ),
      ),
    ),
  );
}

function range(start, count) {
  return Array.from({ length: count }, (_, n) => start + n);
}

function axisLabel(axis, labels, position) {
  return axis === "dimension" ? String(position) : `${position} ${labels[position]}`;
}

function partName(panel, part) {
  if (part.rows === panel.rows && part.columns === panel.columns) return "";
  const last = [part.row + part.rows - 1, part.column + part.columns - 1];
  return `, rows ${part.row}–${last[0]}, columns ${part.column}–${last[1]}`;
}

/** Four decimals, or "not allowed" where the mask hides the cell. */
export function cellText(panel, row, column) {
  const cell = row * panel.columns + column;
  const value = panel.values[cell];
  const masked = panel.masked !== null && panel.masked[cell] === 1;
  if (!masked) return precise(value);
  return panel.leaks && value !== 0 ? `${precise(value)} (masked)` : "not allowed";
}
