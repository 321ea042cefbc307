// The chosen stage, large: cells and ticks, hatching, marks, colour scale, window, and what can be saved.

import { element, twoWaySwitch, write } from "./elements.js";
import { brief, scaleEnd } from "./numbers.js";
import { drawCorners, drawMarks, listen } from "./overlay.js";
import { context2d, hatch, paintFigure } from "./paint.js";
import { drawPlotly } from "./plotly.js";
import { formatsOf, save } from "./save.js";
import { cellText } from "./table.js";

export class Picture {
  /** `parts`: the elements by class. `actions`: choose(cell), move(rows, columns), enter(), leave(),
   *  setSpan("layer" or "head"), painted(). */
  constructor(root, parts, actions) {
    Object.assign(this, { root, parts, actions, around: new Map() });
    this.plotly = undefined; // null: it cannot be had
    const describe = (cell) => this.describe(cell);
    listen(parts.figure, parts.tooltip, () => this.figure, { ...actions, describe });
  }

  /** Draws a figure. `view`: stage, labels, palette, name of the file, whether the text is long. */
  draw(figure, view) {
    Object.assign(this, { figure, view });
    const { parts } = this;
    write(parts.look, view.stage.look);
    write(parts.title, figure.title);
    parts.figure.style.width = `${figure.layout.width}px`;
    parts.figure.style.height = `${figure.layout.height}px`;
    this.paint();
    this.drawHatching();
    const { layout, captions, rowAxis, columnAxis } = figure;
    this.unlessThere("corners", [layout, captions, rowAxis, columnAxis], () =>
      drawCorners(parts.corners, figure, view.palette),
    );
    this.drawLegend();
    this.drawWindow();
    const { renderer } = this.root.dataset;
    this.unlessThere("saves", renderer, () => this.drawSaves(renderer));
  }

  /** Draws something around the picture, unless it says so already: to lay it out again takes the browser
   *  longer than the picture. */
  unlessThere(name, facts, draw) {
    const { palette } = this.view;
    const said = JSON.stringify(facts);
    const there = this.around.get(name);
    if (there?.said === said && there.palette === palette) return;
    this.around.set(name, { said, palette });
    draw();
  }

  /** Frames a cell; the slow parts of the picture stay. */
  mark(cell) {
    this.parts.figure.setAttribute("aria-label", `${this.figure.title}. ${this.words(cell)}`);
    const { row, column } = cell;
    const { layout, window, rowAxis, columnAxis, rowLabels, columnLabels } = this.figure;
    const labels = [rowAxis, rowLabels[row], columnAxis, columnLabels[column]];
    this.unlessThere("marks", [layout, window, cell, labels], () =>
      drawMarks(this.parts.marks, this.figure, cell, this.view.palette),
    );
  }

  /** The cells and ticks: by Plotly, or on our canvas for long texts and until Plotly has drawn. */
  paint() {
    const { parts, root, figure, view } = this;
    root.dataset.painted = "false";
    root.dataset.renderer = view.byPlotly ? "plotly" : "canvas";
    if (view.byPlotly) {
      const drawing = drawPlotly(this.plotly, parts.plotly, figure, view.palette);
      const stillMeant = () => figure === this.figure;
      drawing.then(
        () => stillMeant() && this.painted(),
        (error) => stillMeant() && this.withoutPlotly(error),
      );
      return;
    }
    paintFigure(parts.own, figure, view.palette);
    if (this.plotly !== undefined || view.isLong) this.painted();
    else this.say("Drawing …");
  }

  painted() {
    const { parts, root, view } = this;
    parts.own.hidden = view.byPlotly;
    parts.plotly.hidden = !view.byPlotly;
    root.dataset.painted = "true";
    const missing = this.plotly === null && !view.isLong;
    this.say(missing ? "Plotly could not be loaded. This picture is drawn without it." : "");
    this.actions.painted();
  }

  withoutPlotly(error) {
    console.warn("Plotly could not draw the picture", error);
    this.plotly = null;
    this.draw(this.figure, { ...this.view, byPlotly: false });
  }

  say(text) {
    write(this.parts.notice, text);
    this.parts.notice.hidden = !text;
  }

  drawHatching() {
    const { layout, panels, window } = this.figure;
    this.parts.hatching.hidden = this.root.dataset.renderer !== "plotly"; // the canvas has its own
    if (this.parts.hatching.hidden) return;
    const context = context2d(this.parts.hatching, layout.width, layout.height);
    panels.forEach((panel, n) => hatch(context, panel, window, layout.boxes[n], this.view.palette));
  }

  /** The colour scales with their printed ends, and what hatching means. */
  drawLegend() {
    const { panels } = this.figure;
    const shown = panels.length === 1 ? panels : [panels[1], panels[2]];
    const leaks = panels.some((panel) => panel.leaks);
    const masked = panels.some((panel) => panel.masked?.includes(1));
    const ends = shown.map(({ quantity, low, high, equal, dropped }) => [quantity, low, high, equal, dropped]);
    this.unlessThere("legend", [ends, leaks, masked, this.view.span], () => {
      const scales = shown.map((panel) => this.scale(panel, panels.length > 1));
      const swatch = element(
        "span",
        { class: "scale" },
        element("i", { class: "swatch" }),
        leaks ? "not allowed; colour shows the weight it gets all the same" : "not allowed",
      );
      const span = shown[0].low < 0 ? [this.spanSwitch()] : [];
      this.parts.legend.replaceChildren(...scales, ...(masked ? [swatch] : []), ...span);
    });
  }

  /** Whether the colours span the numbers of all heads, so that heads compare, or of this one. */
  spanSwitch() {
    return twoWaySwitch("What the colours span", {
      options: { layer: "all heads", head: "this head" },
      chosen: this.view.span,
      choose: this.actions.setSpan,
      name: "span",
    });
  }

  scale({ quantity, low, high, equal, dropped }, named) {
    if (equal) {
      const said = dropped
        ? "no difference before dropout, which acts between these weights and the output"
        : "no difference: both runs are equal here";
      return element("span", { class: "scale" }, said);
    }
    const { gradient } = this.view.palette.scale[quantity];
    return element(
      "span",
      { class: "scale" },
      named ? (quantity === "difference" ? "difference" : "both runs") : null,
      element("span", { class: "number" }, scaleEnd(low)),
      element("i", { class: "ramp", style: `background:${gradient}` }),
      element("span", { class: "number" }, (low < 0 ? "+" : "") + scaleEnd(high)),
    );
  }

  /** What part of a long text is shown, and the way back. */
  drawWindow() {
    const { window } = this.figure;
    const { isLong } = this.view;
    this.parts.window.hidden = !isLong;
    this.parts.hint.hidden = isLong && !window.exact;
    if (!isLong) return;
    const facts = [window, this.figure.panels[0].low === 0];
    this.unlessThere("window", facts, () => this.parts.window.replaceChildren(...this.windowWords()));
  }

  windowWords() {
    const { window, panels } = this.figure;
    if (window.exact) {
      const last = [window.row + window.rows - 1, window.column + window.columns - 1];
      const attributes = { type: "button", "data-testid": "whole", onclick: this.actions.leave };
      return [
        `Rows ${window.row}–${last[0]}, columns ${window.column}–${last[1]}, every cell. `,
        element("button", attributes, "Back to the whole"),
      ];
    }
    const shared = `${window.rowBlock} × ${window.columnBlock}`;
    const most = panels[0].low === 0 ? "their maximum" : "the value of largest size";
    return [
      window.rowBlock * window.columnBlock > 1
        ? `One cell = ${shared} positions, ${most}. `
        : "Every position has its cell. ",
      "Click a place to see it larger.",
    ];
  }

  /** Buttons that save the picture and its numbers. */
  drawSaves(renderer) {
    const buttons = formatsOf(renderer).map((format) =>
      element(
        "button",
        {
          type: "button",
          "data-testid": `save-${format}`,
          "aria-label": `Save ${format === "csv" ? "the numbers" : "the picture"} as ${format}`,
          onclick: () => this.save(format, renderer),
        },
        format.toUpperCase(),
      ),
    );
    this.parts.saves.replaceChildren("Save ", ...buttons);
  }

  save(format, renderer) {
    const { figure, view, plotly } = this;
    const made = save(format, view.file, { figure, palette: view.palette, renderer, Plotly: plotly });
    return made.catch(() => this.say("The picture could not be saved."));
  }

  place(axis, position) {
    if (axis === "dimension") return `dimension ${position}`;
    return `${axis} ${position} “${this.view.labels[axis].full[position]}”`;
  }

  places({ row, column }) {
    const { rows, columns } = this.view.stage;
    return [this.place(rows, row), this.place(columns, column)];
  }

  /** One cell in words, with four decimals: for screen readers, and where formulas cannot be drawn. */
  words(cell) {
    const values = this.figure.panels.map((panel) => cellText(panel, cell.row, cell.column));
    return `${this.places(cell).join(", ")}: ${values.join(", ")}`;
  }

  /** The tooltip's lines for a cell under the pointer. */
  describe(cell) {
    const { panels, captions } = this.figure;
    const names = captions ? ["baseline", "changed", "difference"] : [this.view.stage.cell];
    const values = panels.map((panel, n) => {
      const at = cell.row * panel.columns + cell.column;
      const masked = panel.masked !== null && panel.masked[at] === 1;
      if (masked && !(panel.leaks && panel.values[at] !== 0)) return `${names[n]}: not allowed`;
      return `${names[n]}: ${brief(panel.values[at])}${masked ? " (masked)" : ""}`;
    });
    return [...this.places(cell), ...values];
  }
}
