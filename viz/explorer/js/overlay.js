// What lies over the figure: the chosen cell's frame, its row and column, their labels, the tooltip.

import { element, shape } from "./elements.js";
import { cellAt, cellBox, contains } from "./geometry.js";
import { FONT } from "./paint.js";

const BADGE = 17; // height of the chosen row's and column's label

/** Frames the chosen cell in every panel and labels its row and column. */
export function drawMarks(svg, figure, chosen, palette) {
  const { layout, window } = figure;
  svg.setAttribute("width", layout.width);
  svg.setAttribute("height", layout.height);
  const inks = [axisInk(figure.rowAxis, palette), axisInk(figure.columnAxis, palette)];
  svg.replaceChildren(
    ...layout.boxes.flatMap((box, n) => [
      frame(box, palette),
      ...(contains(window, chosen.row, chosen.column)
        ? [
            ...bands(box, window, chosen, inks),
            ...badges(figure, box, n, chosen, inks, palette),
            ...cellFrame(cellBox(box, window, chosen.row, chosen.column), palette),
          ]
        : []),
    ]),
  );
}

function axisInk(axis, palette) {
  return axis === "dimension" ? palette.text : palette.ink[axis];
}

function frame(box, palette) {
  return outline(box, { stroke: palette.text, "stroke-opacity": 0.22 });
}

function outline({ left, top, width, height }, attributes) {
  return shape("rect", { x: left, y: top, width, height, fill: "none", ...attributes });
}

function bands(box, window, { row, column }, [rowInk, columnInk]) {
  const cell = cellBox(box, window, row, column);
  const across = { left: box.left, top: cell.top, width: box.width, height: cell.height };
  const down = { left: cell.left, top: box.top, width: cell.width, height: box.height };
  return [
    outline(across, { stroke: rowInk, "stroke-opacity": 0.75 }),
    outline(down, { stroke: columnInk, "stroke-opacity": 0.75 }),
  ];
}

/** A dark and a light line, so that the frame shows on every colour. */
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

function badges(figure, box, n, { row, column }, [rowInk, columnInk], palette) {
  const { layout, window } = figure;
  const cell = cellBox(box, window, row, column);
  const marks = [];
  if (n === 0 || layout.stacked) {
    const y = cell.top + cell.height / 2;
    marks.push(...label(figure.rowLabels[row], box.left - 6, y, "end", 0, rowInk, palette));
  }
  const x = cell.left + cell.width / 2;
  const slant = layout.slanted ? -45 : 0;
  const anchor = layout.slanted ? "start" : "middle";
  const y = box.top - (layout.slanted ? 7 : 10);
  marks.push(...label(figure.columnLabels[column], x, y, anchor, slant, columnInk, palette));
  return marks;
}

/** A label in the ink of its axis on a plate that covers the tick label below. */
function label(text, x, y, anchor, slant, ink, palette) {
  const width = text.length * 6.7 + 8;
  const left = { start: x - 4, middle: x - width / 2, end: x - width + 4 }[anchor];
  const turn = `rotate(${slant} ${x} ${y})`;
  return [
    shape("rect", {
      x: left,
      y: y - BADGE / 2,
      width,
      height: BADGE,
      rx: 3,
      fill: ink,
      transform: turn,
    }),
    shape(
      "text",
      {
        x,
        y: y + 4,
        "text-anchor": anchor,
        transform: turn,
        fill: palette.background,
        "font-family": palette.mono,
        "font-size": FONT,
        "font-weight": 600,
      },
      text,
    ),
  ];
}

const AXIS_NAMES = { query: "query", key: "key", dimension: "dim." };

/** Names of the axes in the upper left corner, and the caption above each panel. */
export function drawCorners(holder, figure, palette) {
  const { layout } = figure;
  holder.replaceChildren(
    ...layout.boxes.flatMap((box, n) => {
      const items = [];
      if (n === 0 || layout.stacked) {
        items.push(
          element(
            "div",
            { class: "corner", style: `left:0;width:${box.left - 14}px;top:${box.top - 36}px` },
            axisName(figure.columnAxis, "→", palette),
            axisName(figure.rowAxis, "↓", palette),
          ),
        );
      }
      if (figure.captions) {
        const top = layout.stacked ? captionTop(layout, n) : 0;
        const style = `left:${box.left}px;width:${box.width}px;top:${top}px`;
        items.push(element("div", { class: "caption", style }, figure.captions[n]));
      }
      return items;
    }),
  );
}

function captionTop(layout, n) {
  return n === 0 ? 0 : layout.boxes[n].top - layout.boxes[0].top;
}

function axisName(axis, arrow, palette) {
  return element("span", { style: `color:${axisInk(axis, palette)}` }, `${AXIS_NAMES[axis]} ${arrow}`);
}

/** Pointer and keys on the figure. `actions`: describe(cell), choose(cell), move(rows, columns), leave(). */
export function listen(holder, tooltip, current, actions) {
  const cellUnder = (event) => {
    const figure = current();
    if (!figure) return null;
    const { layout, window } = figure;
    const bounds = holder.getBoundingClientRect();
    return cellAt(layout, window, event.clientX - bounds.left, event.clientY - bounds.top);
  };
  holder.onpointermove = (event) => {
    const cell = event.pointerType === "touch" ? null : cellUnder(event);
    holder.style.cursor = cell ? "crosshair" : "default";
    showTooltip(tooltip, holder, event, cell && actions.describe(cell));
  };
  holder.onpointerleave = () => showTooltip(tooltip, holder, null, null);
  holder.onclick = (event) => {
    const cell = cellUnder(event);
    if (cell) actions.choose(cell);
  };
  holder.onkeydown = (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [rows, columns] = moves[event.key] ?? [];
    if (rows !== undefined) actions.move(rows, columns);
    else if (event.key === "Enter") actions.enter();
    else if (event.key === "Escape") actions.leave();
    else return;
    event.preventDefault();
  };
}

function showTooltip(tooltip, holder, event, lines) {
  tooltip.hidden = !lines;
  if (!lines) return;
  tooltip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  const bounds = holder.getBoundingClientRect();
  const x = event.clientX - bounds.left;
  const y = event.clientY - bounds.top;
  const right = x + 14 + tooltip.offsetWidth < holder.clientWidth;
  const below = y + 18 + tooltip.offsetHeight < holder.clientHeight;
  tooltip.style.left = `${Math.max(0, right ? x + 14 : x - 10 - tooltip.offsetWidth)}px`;
  tooltip.style.top = `${Math.max(0, below ? y + 18 : y - 10 - tooltip.offsetHeight)}px`;
}
