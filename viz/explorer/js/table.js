// The shown numbers as a plain table, for screen readers and for copying. Built only when it is open.

import { table } from "./elements.js";
import { contains, spanned, windowAround, wholeWindow, WINDOW } from "./geometry.js";
import { cellText } from "./paint.js";

/** A table of the figure's panels, at most 64 rows and columns around the chosen cell. */
export function drawTable(holder, figure, chosen) {
  holder.replaceChildren(
    ...figure.panels.map((panel, n) => {
      const caption = figure.captions ? `${figure.title} — ${figure.captions[n]}` : figure.title;
      return tableOf(figure, panel, shownPart(figure, panel, chosen), caption);
    }),
  );
}

function shownPart({ window }, panel, { row, column }) {
  if (window.exact && contains(window, row, column)) return window;
  if (panel.rows <= WINDOW && panel.columns <= WINDOW) return wholeWindow(panel.rows, panel.columns);
  return windowAround(panel.rows, panel.columns, row, column);
}

function tableOf(figure, panel, part, caption) {
  const positions = (start, count) => Array.from({ length: count }, (_, n) => start + n);
  const columns = positions(part.column, part.columns);
  const names = columns.map((column) => columnName(figure, column));
  const rows = positions(part.row, part.rows).map((row) => [
    axisLabel(figure.rowAxis, figure.rowLabels, row),
    ...columns.map((column) => cellText(panel, row, column)),
  ]);
  const isWhole = part.rows === panel.rows && part.columns === panel.columns;
  return table(["", ...names], rows, caption + (isWhole ? "" : `, ${spanned(part)}`));
}

/** A column's label; that of the sink has no position. */
export function columnName({ columnAxis, columnLabels, sink }, column) {
  return column === sink ? columnLabels[column] : axisLabel(columnAxis, columnLabels, column);
}

/** The position comes first, so that no spreadsheet takes a token for a formula. */
export function axisLabel(axis, labels, position) {
  return axis === "dimension" ? String(position) : `${position} ${labels[position]}`;
}
