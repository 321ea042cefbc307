// The chosen stage as a large picture: cells, ticks, hatching, marks, colour scale, window, buttons to save it.

import { button, choiceOf, Drawn, element, sentenceCase, span, write } from "./elements.js";
import { spanned } from "./geometry.js";
import { beyondInWords } from "./colour_end.js";
import { brief, scaleEnd } from "./numbers.js";
import { drawCorners, drawMarks, drawRings, listen } from "./overlay.js";
import { cellText, context2d, hatch, paintFigure } from "./paint.js";
import { drawPlotly } from "./plotly.js";
import { save } from "./save.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("picture");

const RUNG = 6000; // milliseconds for which a ring stays that words have led to

/** Two runs that share a scale, as one panel of it. */
function together(before, after) {
  return { ...after, beyond: before.beyond + after.beyond, count: before.values.length + after.values.length };
}

export class Picture {
  around = new Drawn();
  rings = [];
  lit = null;
  plotly = undefined; // null if it cannot be loaded
  isAlone = false; // whether it is to do without
  awaited = ""; // what is on its way
  said = "";

  /** `parts`: the elements by class. `actions`: choose(cell), light({ query, key } or null), move(rows, columns),
   *  zoom(cell, cell), enter(), leave(), whole(), setSpan("layer" or "head"), hasCard(cell), painted(). */
  constructor(root, parts, actions) {
    Object.assign(this, { root, parts, actions });
    const describe = (cell) => this.describe(cell);
    const light = (cell) => this.light(cell);
    listen(parts.figure, parts.tooltip, () => this.figure, { ...actions, describe, light });
  }

  /** The cell of the largest number in a window. */
  largestIn({ row, rows, column, columns }) {
    const { values, columns: width } = this.figure.panels.at(-1);
    const cells = Array.from({ length: rows * columns }, (_, n) => ({ row: row + Math.floor(n / columns), column: column + (n % columns) }));
    const size = (cell) => Math.abs(values[cell.row * width + cell.column]) || 0;
    return cells.reduce((most, cell) => (size(cell) > size(most) ? cell : most));
  }

  /** Tells which query and key the pointer is at, each once; null where it is at none. */
  light(cell) {
    const isCell = cell && this.isOfTokens && cell.column !== this.figure.sink;
    const shown = isCell ? `${cell.row} ${cell.column}` : null;
    if (shown === this.lit) return;
    this.lit = shown;
    this.actions.light(shown === null ? null : { query: cell.row, key: cell.column });
  }

  /** Whether its rows are queries and its columns keys. */
  get isOfTokens() {
    return this.figure.rowAxis === "query" && this.figure.columnAxis === "key";
  }

  /** Rings a cell { query, key }, a row { query }, a column { key } or a `diagonal`; null: nothing. */
  point(place) {
    this.rings = place === null ? [] : [place];
    this.parts.rings.classList.remove("once");
    this.drawRings();
  }

  /** Rings such places for a while, so that the eye finds them. */
  ring(places) {
    this.rings = places;
    this.parts.rings.classList.add("once");
    this.drawRings();
    setTimeout(() => this.rings === places && this.point(null), RUNG);
  }

  drawRings() {
    const { parts, figure, view } = this;
    if (!this.rings.length || !this.isOfTokens) parts.rings.replaceChildren();
    else drawRings(parts.rings, figure, this.rings, view.palette);
  }

  /** Draws a figure. `view`: stage, labels, palette, name of the file, whether the text is long; `saved` makes the
   *  figure of a saved picture. */
  draw(figure, view) {
    Object.assign(this, { figure, view });
    const { parts } = this;
    write(parts.look, view.stage.look);
    parts.figure.style.width = `${figure.layout.width}px`;
    parts.figure.style.height = `${figure.layout.height}px`;
    this.paint();
    this.drawRings();
    this.drawHatching();
    const { layout, captions, rowAxis, columnAxis } = figure;
    if (this.differs("corners", [layout, captions, rowAxis, columnAxis])) {
      drawCorners(parts.corners, figure, view.palette);
    }
    this.drawLegend();
    this.drawWindow();
    const { renderer } = this.root.dataset;
    if (this.differs("saves", renderer)) this.drawSaves(renderer);
  }

  /** Whether the facts behind a part around the picture have changed. To lay such a part out takes the browser
   *  longer than to draw the picture. */
  differs(part, facts) {
    return this.around.differs(part, JSON.stringify(facts), this.view.palette);
  }

  /** Frames a cell. The slow parts of the picture stay as they are. */
  mark(cell) {
    this.parts.figure.setAttribute("aria-label", `${this.figure.title}. ${this.words(cell)}`);
    const { row, column } = cell;
    const { layout, window, rowAxis, columnAxis, rowLabels, columnLabels, block, sink } = this.figure;
    const labels = [rowAxis, rowLabels[row], columnAxis, columnLabels[column]];
    if (!this.differs("marks", [layout, window, cell, labels, block, sink])) return;
    drawMarks(this.parts.marks, this.figure, cell, this.view.palette);
  }

  /** Draws cells and ticks: with Plotly, or on our own canvas for long texts and until Plotly has loaded. */
  paint() {
    const { parts, root, figure, view } = this;
    root.dataset.painted = "false";
    root.dataset.renderer = view.byPlotly ? "plotly" : "canvas";
    root.dataset.scan = view.certificate?.run?.scan?.length ?? 0;
    if (view.byPlotly) {
      const stillMeant = () => figure === this.figure;
      drawPlotly(this.plotly, parts.plotly, figure, view.palette).then(
        () => stillMeant() && this.painted(),
        (error) => stillMeant() && this.withoutPlotly(error),
      );
      return;
    }
    paintFigure(parts.own, figure, view.palette);
    if (this.plotly !== undefined || view.isLong) this.painted();
  }

  painted() {
    const { parts, root, view } = this;
    parts.own.hidden = view.byPlotly;
    parts.plotly.hidden = !view.byPlotly;
    root.dataset.painted = "true";
    const missing = this.plotly === null && !view.isLong && !this.isAlone;
    this.say(missing ? say("plotly_could_not") : "");
    this.actions.painted();
  }

  withoutPlotly(error) {
    console.warn(say("plotly_could_not_draw"), error);
    this.plotly = null;
    this.draw(this.figure, { ...this.view, byPlotly: false });
  }

  /** Says what is on its way, "" for nothing. No other notice takes its place: an older picture may still be
   *  being painted. */
  waitFor(text) {
    this.awaited = text;
    this.say(this.said);
  }

  say(text) {
    this.said = text;
    const notice = this.awaited || text;
    write(this.parts.notice, notice);
    this.parts.notice.hidden = !notice;
  }

  drawHatching() {
    const { layout, panels, window } = this.figure;
    this.parts.hatching.hidden = !this.view.byPlotly; // the canvas has its own hatching
    if (this.parts.hatching.hidden) return;
    const context = context2d(this.parts.hatching, layout.width, layout.height);
    panels.forEach((panel, n) => hatch(context, panel, window, layout.boxes[n], this.view.palette));
  }

  /** Draws the colour scales with their ends, and what hatching means. */
  drawLegend() {
    const { panels, runs } = this.figure;
    const compared = panels.length === 3;
    const shown = compared ? [together(...panels), panels[2]] : panels;
    const names = compared ? ["both runs", "difference"] : (runs ?? [null]);
    const leaks = panels.some((panel) => panel.leaks);
    const masked = panels.some((panel) => panel.masked?.includes(1));
    const ends = shown.map((one) => [one.quantity, one.low, one.high, one.equal, one.dropped, one.beyond]);
    if (!this.differs("legend", [ends, leaks, masked, this.view.span, names])) return;
    const colour = leaks ? say("colour_shows_weight") : "";
    this.parts.legend.replaceChildren(
      ...shown.map((panel, n) => this.scale(panel, names[n])),
      ...(masked ? [span("scale", element("i", { class: "swatch" }), `masked${colour}`)] : []),
      ...(shown[0].low < 0 && !this.view.stage.group ? [this.spanSwitch()] : []),
    );
  }

  /** A switch: the colours span the numbers of all heads, so that heads can be compared, or of this head. */
  spanSwitch() {
    return choiceOf(say("colours_span"), {
      options: { layer: "all heads", head: "this head" },
      chosen: this.view.span,
      choose: this.actions.setSpan,
      name: "span",
    });
  }

  scale(panel, name) {
    const { quantity, low, high, equal, dropped } = panel;
    if (equal && dropped) {
      return span("scale", say("difference_before_dropout"));
    }
    if (equal) return span("scale", say("difference_both_runs"));
    const { gradient } = this.view.palette.scale[quantity];
    return span(
      "scale",
      name,
      span("number", scaleEnd(low)),
      element("i", { class: "ramp", style: `background:${gradient}` }),
      span("number", (low < 0 ? "+" : "") + scaleEnd(high)),
      beyondInWords(panel),
    );
  }

  /** Says which part of a long text is shown, with a button back to the whole. */
  drawWindow() {
    const { window, panels } = this.figure;
    const isPart = window.exact || this.view.isLong;
    this.parts.window.hidden = !isPart;
    const isPositive = panels[0].low === 0;
    if (!isPart || !this.differs("window", [window, isPositive])) return;
    this.parts.window.replaceChildren(...this.windowWords(window, isPositive));
  }

  windowWords(window, isPositive) {
    if (window.exact) {
      const whole = button("whole", this.actions.whole, {}, say("back_whole_picture"));
      return [`${sentenceCase(spanned(window))}, every cell. `, whole];
    }
    const { rowBlock, columnBlock } = window;
    const most = isPositive ? "their maximum" : say("value_largest_size");
    const cell =
      rowBlock * columnBlock > 1
        ? `One cell = ${rowBlock} × ${columnBlock} positions, ${most}. `
        : say("every_position_cell");
    return [cell, say("click_place_draw")];
  }

  /** Buttons that save the picture and its numbers. */
  drawSaves(renderer) {
    const buttons = ["png", "svg", "pdf", "csv"].map((format) => {
      const label = `Save ${format === "csv" ? "the numbers" : "the picture"} as ${format}`;
      const made = () => this.save(format, renderer);
      return button(`save-${format}`, made, { "aria-label": label }, format.toUpperCase());
    });
    this.parts.saves.replaceChildren("Save ", ...buttons);
  }

  save(format, renderer) {
    const { view, plotly } = this;
    const { palette, certificate } = view;
    const made = save(format, view.file, { figure: view.saved(), palette, renderer, Plotly: plotly, ...certificate });
    return made.catch(() => this.say(say("picture_could_not")));
  }

  places({ row, column }) {
    const { labels, stage } = this.view;
    const place = (axis, position) => {
      if (axis === "dimension") return `dimension ${position}`;
      if (axis === "key" && position === this.figure.sink) return say("sink_head");
      return `${axis} ${position} “${labels[axis].full[position]}”`;
    };
    return [place(stage.rows, row), place(stage.columns, column)];
  }

  /** One cell in words, with four decimals: for screen readers, and where formulas cannot be drawn. */
  words(cell) {
    const values = this.figure.panels.map((panel) => cellText(panel, cell.row, cell.column));
    return `${this.places(cell).join(", ")}: ${values.join(", ")}`;
  }

  /** The tooltip's lines for a cell under the pointer; null for the one whose card is open. */
  describe(cell) {
    if (this.actions.hasCard(cell)) return null;
    const { panels, runs } = this.figure;
    const names = runs ?? [this.view.stage.cell];
    const values = panels.map((panel) => cellText(panel, cell.row, cell.column, brief));
    return [...this.places(cell), ...values.map((value, n) => `${names[n]}: ${value}`)];
  }
}
