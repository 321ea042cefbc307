// The attention explorer: one attention layer, explored in the browser.
//
// Python sends the layer once. Everything else is derived here (derive.js), so a change of head, stage or
// cell is one redraw and no journey. State lives in one object a mount; `choose` changes it, `render` draws
// what it says, and a report of the choice follows a quarter of a second later, the last one only.
//
// Layers of the picture, from below: Plotly or our canvas (cells and tick labels), hatching, marks (SVG),
// tooltip. All of them use the boxes of geometry.js. Only the lowest is slow, so only a change of head, stage,
// window, theme or size draws it again; choosing a cell moves marks.
//
// This file is joined with its neighbours into one script (bundle.py says why).

import { paletteOf } from "./colours.js";
import { decodeLayer, deriveHead, extent, hasHead, largestGap } from "./derive.js";
import { check, element, radioKeys } from "./elements.js";
import { drawEquation, filledTemplate } from "./equations.js";
import { PLOTLY_TOKENS, windowAround } from "./geometry.js";
import { loadKatex, loadPlotly } from "./libraries.js";
import { brief, magnitude, precise, scaleEnd } from "./numbers.js";
import { drawCorners, drawMarks, listen } from "./overlay.js";
import { context2d, hatch, paintFigure, paintThumbnail } from "./paint.js";
import { cellNumbers, drawDetails, drawEffect, drawTopKeys, terms } from "./panel.js";
import { drawPlotly } from "./plotly.js";
import { formatsOf, save } from "./save.js";
import { Sentence } from "./sentence.js";
import { cellText, drawTable } from "./table.js";
import { axisLength, cellOf, figureOf, panelOf, sharedRanges } from "./view.js";

const REPORT_DELAY = 250; // milliseconds
const DERIVED_CELLS = 2 ** 24; // cells of derived matrices kept; beyond, older heads are dropped
const TALLEST = 460; // pixels of a picture's box
const NARROWEST = 120;
const MAPPED_TOKENS = 128; // up to this many, every head's button shows its weights
const MAP = 22; // pixels of that picture
const THUMBNAIL = 56; // and of a stage's
const AGREES = 1e-4; // of the largest output: recomputed and recorded numbers count as equal
const explorers = new WeakMap();
// What the reader chose last, by mount. Streamlit may mount a place anew, with this script run anew.
const choices = (globalThis[Symbol.for("attention-explorer-choices")] ??= new Map());

export default function mount({ data, parentElement, setStateValue }) {
  let explorer = explorers.get(parentElement);
  if (explorer?.root !== parentElement.querySelector(".explorer")) {
    explorer = new Explorer(parentElement);
    explorers.set(parentElement, explorer);
  }
  explorer.report = (selection) => setStateValue("selection", selection);
  explorer.receive(data);
  return () => explorer.close();
}

class Explorer {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".explorer");
    this.state = { side: "reads", order: "largest", dimension: 0, window: null };
    this.derived = new Map();
    this.listeners = new AbortController();
    this.parts = Object.fromEntries(
      [
        ...["heads", "strip", "look", "title", "figure", "own", "plotly", "hatching", "marks"],
        ...["corners", "tooltip", "legend", "saves", "window", "hint", "notice", "general", "numeric", "effect"],
        ...["details", "top", "sentence", "check", "numbers", "unseen"],
      ].map((name) => [name, this.root.querySelector(`.${name}`)]),
    );
    this.sentence = new Sentence(this.parts.sentence);
    this.resize = new ResizeObserver(() => this.schedule());
    this.resize.observe(this.root.querySelector(".stage"));
    listen(this.parts.figure, this.parts.tooltip, () => this.figure, this.actions());
    this.parts.numbers.ontoggle = () => this.drawTable();
  }

  // --- what comes in -------------------------------------------------------------------------------

  /** New data or a new theme. The selection of Python counts only with a new revision. */
  receive(data) {
    if (data.layer !== this.received?.layer || data.baseline !== this.received?.baseline) {
      this.layer = decodeLayer(data.layer);
      this.baseline = data.baseline && decodeLayer(data.baseline);
      this.derived.clear();
      this.state.window = null;
    }
    const adopts = !this.received || data.revision !== this.received.revision;
    const { revision, ...chosen } = choices.get(data.mount) ?? {};
    const start = revision === data.revision ? chosen : data.selection;
    this.received = data;
    if (adopts) Object.assign(this.state, start, { window: null });
    this.labels = { query: data.queries, key: data.keys };
    this.palette = paletteOf(this.parent.host ?? this.parent, data.theme);
    this.clamp();
    this.loadLibraries(data.assets);
    this.buildControls();
    this.render();
  }

  clamp() {
    const { state, layer } = this;
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    state.head = within(state.head, layer.heads);
    state.query = within(state.query, layer.queries);
    state.key = within(state.key, layer.keys);
    if (!this.received.stages.some(({ name }) => name === state.stage)) state.stage = "weights";
    state.dimension = within(state.dimension, axisLength("dimension", this.stage, layer));
  }

  loadLibraries(assets) {
    if (this.loading) return;
    this.loading = true;
    loadKatex(assets).then((loaded) => {
      this.katex = loaded?.katex ?? null;
      const styles = this.root.getRootNode().adoptedStyleSheets;
      if (loaded && styles && !styles.includes(loaded.sheet)) {
        this.root.getRootNode().adoptedStyleSheets = [...styles, loaded.sheet];
      }
      this.schedule();
    });
    loadPlotly(assets).then((Plotly) => {
      this.Plotly = Plotly;
      this.schedule();
    });
  }

  close() {
    clearTimeout(this.timer);
    this.resize.disconnect();
    if (this.Plotly) this.Plotly.purge(this.parts.plotly);
    explorers.delete(this.parent);
  }

  // --- what the reader chooses ---------------------------------------------------------------------

  /** Changes the choice, draws it, and reports it later. */
  choose(change) {
    const before = { ...this.state };
    Object.assign(this.state, change);
    this.clamp();
    if (this.state.stage !== before.stage) this.state.window = null;
    this.follow();
    this.render();
    const reported = ["head", "stage", "query", "key"];
    if (reported.some((name) => this.state[name] !== before[name])) this.reportLater();
  }

  /** Keeps the chosen cell inside an exact window. */
  follow() {
    const { stage, state, layer } = this;
    if (!state.window) return;
    const { row, column } = cellOf(stage, state);
    const inside =
      row >= state.window.row &&
      row < state.window.row + state.window.rows &&
      column >= state.window.column &&
      column < state.window.column + state.window.columns;
    if (inside) return;
    const size = [axisLength(stage.rows, stage, layer), axisLength(stage.columns, stage, layer)];
    state.window = windowAround(...size, row, column);
  }

  reportLater() {
    const { head, stage, query, key } = this.state;
    const selection = { head, stage, query, key, revision: this.received.revision };
    choices.set(this.received.mount, selection);
    clearTimeout(this.timer);
    const wait = hasHead(this.layer, head) ? REPORT_DELAY : 0;
    this.timer = setTimeout(() => this.report(selection), wait);
  }

  /** What the figure's pointer and keys do. */
  actions() {
    return {
      describe: (cell) => this.describe(cell),
      choose: (cell) => {
        this.choose({ [this.stage.rows]: cell.row, [this.stage.columns]: cell.column });
        if (this.isLarge() && !this.state.window) this.zoom();
      },
      move: (rows, columns) => {
        const { stage, state } = this;
        const moved = { [stage.rows]: state[stage.rows] + rows };
        if (columns) moved[stage.columns] = state[stage.columns] + columns;
        this.choose(moved);
        this.announce();
      },
      enter: () => this.isLarge() && this.zoom(),
      leave: () => this.choose({ window: null }),
    };
  }

  zoom() {
    const { stage, layer, state } = this;
    const size = [axisLength(stage.rows, stage, layer), axisLength(stage.columns, stage, layer)];
    const { row, column } = cellOf(stage, state);
    this.choose({ window: windowAround(...size, row, column) });
  }

  isLarge() {
    return Math.max(this.layer.queries, this.layer.keys) > PLOTLY_TOKENS;
  }

  // --- what is drawn -------------------------------------------------------------------------------

  get stage() {
    return this.received.stages.find(({ name }) => name === this.state.stage);
  }

  headName(head = this.state.head) {
    return `${this.layer.label}H${head}`;
  }

  derivedOf(layer, head) {
    const key = `${layer === this.baseline ? "before" : "after"} ${head}`;
    let one = this.derived.get(key);
    if (!one) {
      one = deriveHead(layer, head);
      const most = Math.max(2, Math.floor(DERIVED_CELLS / (4 * layer.queries * layer.keys)));
      while (this.derived.size >= most) this.derived.delete(this.derived.keys().next().value);
      this.derived.set(key, one);
    }
    return one;
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.received && this.render());
  }

  render() {
    const { state, layer, root } = this;
    Object.assign(root.dataset, {
      head: state.head,
      stage: state.stage,
      query: state.query,
      key: state.key,
    });
    this.markControls();
    if (!hasHead(layer, state.head)) {
      root.dataset.ready = "false";
      this.say(`Fetching head ${state.head} …`);
      return;
    }
    this.available = this.parts.figure.parentElement.clientWidth;
    if (this.available < NARROWEST) return; // in a tab that is not open
    const derived = this.derivedOf(layer, state.head);
    const before = this.baseline ? this.derivedOf(this.baseline, state.head) : null;
    root.classList.toggle("compared", Boolean(before));
    this.drawThumbnails(derived);
    this.drawFigure(derived, before);
    this.drawHeadMaps();
    const scene = this.scene(derived, before);
    this.drawPanel(scene);
    this.sentence.draw(scene);
    this.drawCheck(derived);
    this.drawTable();
  }

  /** Everything the panel and the sentence draw from. */
  scene(derived, before) {
    const { row, column } = cellOf(this.stage, this.state);
    const at = row * this.figure.panels[0].columns + column;
    return {
      stage: this.stage,
      layer: this.layer,
      baseline: this.baseline,
      derived,
      before,
      cell: this.state,
      cellValues: this.figure.panels.slice(0, 2).map((panel) => panel.values[at]),
      order: this.state.order,
      side: this.state.side,
      queries: this.labels.query,
      keys: this.labels.key,
      palette: this.palette,
      choose: (change) => this.choose(change),
      setOrder: (order) => this.choose({ order }),
      setSide: (side) => this.choose({ side }),
    };
  }

  // --- heads and stages ----------------------------------------------------------------------------

  buildControls() {
    this.buildHeads();
    this.buildStages();
  }

  buildHeads() {
    const { heads, ablated, label } = this.layer;
    const signature = `${label} ${heads} ${ablated}`;
    if (signature === this.builtHeads) return;
    this.builtHeads = signature;
    this.mapped = null;
    const radios = Array.from({ length: heads }, (_, head) => {
      const zeroed = ablated.includes(head);
      return element(
        "button",
        {
          type: "button",
          role: "radio",
          class: zeroed ? "zeroed" : "",
          "aria-label": `Head ${head}${zeroed ? ", its output is set to zero" : ""}`,
          title: zeroed ? "This head's output is set to zero after it is computed" : "",
          "data-testid": `head-${head}`,
          onclick: () => this.choose({ head }),
        },
        element("canvas", { "aria-hidden": "true", hidden: true }),
        head === 0 ? this.headName(0) : `H${head}`,
      );
    });
    this.parts.heads.replaceChildren(...radios);
    radioKeys(this.parts.heads, heads, () => this.state.head, (head) => this.choose({ head }));
  }

  buildStages() {
    const { stages } = this.received;
    const signature = JSON.stringify(stages.map(({ name, step }) => [name, step]));
    if (signature === this.builtStages) return;
    this.builtStages = signature;
    this.parts.strip.replaceChildren(
      ...stages.flatMap(({ name, label, step, quantity }) => [
        step ? element("span", { class: "step", "aria-hidden": "true" }, step) : null,
        element(
          "button",
          {
            type: "button",
            role: "radio",
            class: `thumbnail ${quantity}`,
            "data-testid": `stage-${name}`,
            "aria-label": step ? `${label} (${step})` : label,
            onclick: () => this.choose({ stage: name }),
          },
          element("canvas", { "aria-hidden": "true" }),
          element("span", {}, label),
        ),
      ]).filter(Boolean),
    );
    const names = stages.map(({ name }) => name);
    const chosen = () => names.indexOf(this.state.stage);
    radioKeys(this.parts.strip, names.length, chosen, (n) => this.choose({ stage: names[n] }));
  }

  /** A small picture of every head's weights in its button, one head at a time while nothing else runs. */
  drawHeadMaps() {
    const { layer, palette } = this;
    const signature = [layer, palette.background].map(String).join() + Boolean(this.baseline);
    if (this.mapped === layer && this.mappedFor === signature) return;
    [this.mapped, this.mappedFor] = [layer, signature];
    if (Math.max(layer.queries, layer.keys) > MAPPED_TOKENS) return;
    const stage = this.received.stages.find(({ name }) => name === "weights");
    const canvases = [...this.parts.heads.querySelectorAll("canvas")];
    const draw = (head) => {
      if (this.layer !== layer || this.palette !== palette || head >= layer.heads) return;
      if (hasHead(layer, head)) {
        const panel = panelOf(stage, layer, this.derivedOf(layer, head), layer.range);
        canvases[head].hidden = false;
        paintThumbnail(canvases[head], panel, palette, MAP, MAP);
      }
      setTimeout(() => draw(head + 1));
    };
    setTimeout(() => draw(0));
  }

  markControls() {
    check([...this.parts.heads.children], this.state.head);
    const { stages } = this.received;
    const radios = [...this.parts.strip.querySelectorAll("[role=radio]")];
    check(radios, stages.findIndex(({ name }) => name === this.state.stage));
    radios.forEach((radio, n) => {
      radio.style.setProperty("--hue", this.palette.ink[stages[n].quantity]);
    });
  }

  drawThumbnails(derived) {
    const key = [this.state.head, this.palette.background, this.palette.dark];
    if (this.thumbnailsOf === derived && String(key) === this.thumbnailKey) return;
    this.thumbnailsOf = derived;
    this.thumbnailKey = String(key);
    const ranges = sharedRanges(this.layer, this.baseline);
    this.parts.strip.querySelectorAll("canvas").forEach((canvas, n) => {
      const stage = this.received.stages[n];
      const panel = panelOf(stage, this.layer, derived, ranges);
      paintThumbnail(canvas, panel, this.palette, THUMBNAIL, THUMBNAIL);
    });
  }

  // --- the picture ---------------------------------------------------------------------------------

  drawFigure(derived, before) {
    const { parts, stage, state, palette, available } = this;
    const title = stage.title.replaceAll("{head}", this.headName());
    const key = JSON.stringify([state.head, stage.name, state.window, available, palette]);
    const renderer = this.Plotly && !this.isLarge() ? "plotly" : "canvas";
    if (key !== this.drawnKey || derived !== this.drawnOf || renderer !== this.root.dataset.renderer) {
      this.figure = figureOf({
        stage,
        layer: this.layer,
        baseline: this.baseline,
        derived,
        before,
        labels: this.labels,
        window: state.window,
        room: { available, tallest: TALLEST },
        title,
      });
      [this.drawnKey, this.drawnOf] = [key, derived];
      parts.look.textContent = stage.look;
      parts.title.textContent = title;
      parts.figure.style.width = `${this.figure.layout.width}px`;
      parts.figure.style.height = `${this.figure.layout.height}px`;
      this.paint(renderer);
      this.drawHatching();
      drawCorners(parts.corners, this.figure, palette);
      this.drawLegend();
      this.drawWindow();
      this.drawSaves();
    }
    parts.figure.setAttribute("aria-label", `${title}. ${this.cellWords()}`);
    drawMarks(parts.marks, this.figure, cellOf(stage, state), palette);
  }

  /** The cells and ticks, by Plotly or on our own canvas. */
  paint(renderer) {
    const { parts, root, figure, palette } = this;
    root.dataset.ready = "false";
    root.dataset.renderer = renderer;
    if (renderer === "plotly") {
      const drawing = drawPlotly(this.Plotly, parts.plotly, figure, palette);
      drawing.then(() => figure === this.figure && this.painted(), (error) => this.withoutPlotly(error));
      return;
    }
    paintFigure(parts.own, figure, palette);
    if (this.Plotly !== undefined || this.isLarge()) this.painted();
    else this.say("Drawing …");
  }

  painted() {
    const { parts, root } = this;
    const plotly = root.dataset.renderer === "plotly";
    parts.own.hidden = plotly;
    parts.plotly.hidden = !plotly;
    root.dataset.ready = "true";
    const missing = this.Plotly === null && !this.isLarge();
    this.say(missing ? "Plotly could not be loaded. This picture is drawn without it." : "");
  }

  withoutPlotly(error) {
    console.warn("Plotly could not draw the picture", error);
    this.Plotly = null;
    this.schedule();
  }

  say(text) {
    this.parts.notice.textContent = text;
    this.parts.notice.hidden = !text;
  }

  drawHatching() {
    const { layout, panels, window } = this.figure;
    const context = context2d(this.parts.hatching, layout.width, layout.height);
    this.parts.hatching.hidden = this.root.dataset.renderer !== "plotly";
    if (this.parts.hatching.hidden) return;
    panels.forEach((panel, n) => hatch(context, panel, window, layout.boxes[n], this.palette));
  }

  /** The colour scales with their printed ends, and what hatching means. */
  drawLegend() {
    const { panels } = this.figure;
    const shown = panels.length === 1 ? panels : [panels[1], panels[2]];
    const scales = shown.map((panel) => {
      const { gradient, diverging } = this.palette.scale[panel.quantity];
      const ends = diverging ? [panel.low, 0, panel.high] : [panel.low, panel.high];
      return element(
        "span",
        { class: "scale" },
        panels.length === 1 ? null : panel.quantity === "difference" ? "difference" : "both runs",
        element("span", { class: "number" }, scaleEnd(ends[0])),
        element("i", { class: "ramp", style: `background:${gradient}` }),
        element("span", { class: "number" }, (ends[0] < 0 ? "+" : "") + scaleEnd(ends.at(-1))),
      );
    });
    const masked = panels.some((panel) => panel.masked?.includes(1));
    const leaks = panels.some((panel) => panel.leaks);
    const swatch = masked
      ? element(
          "span",
          { class: "scale" },
          element("i", { class: "swatch" }),
          leaks ? "not allowed; colour shows the weight it gets all the same" : "not allowed",
        )
      : null;
    this.parts.legend.replaceChildren(...[...scales, swatch].filter(Boolean));
  }

  /** What part of a long text is shown, and the way back. */
  drawWindow() {
    const { window, panels } = this.figure;
    this.parts.window.hidden = !this.isLarge();
    this.parts.hint.hidden = this.isLarge() && !window.exact;
    if (!this.isLarge()) return;
    const back = element(
      "button",
      { type: "button", "data-testid": "whole", onclick: () => this.choose({ window: null }) },
      "Back to the whole",
    );
    const last = [window.row + window.rows - 1, window.column + window.columns - 1];
    const shared = `${window.rowBlock} × ${window.columnBlock}`;
    const most = panels[0].low === 0 ? "their maximum" : "the value of largest size";
    this.parts.window.replaceChildren(
      ...(window.exact
        ? [`Rows ${window.row}–${last[0]}, columns ${window.column}–${last[1]}, every cell. `, back]
        : [
            window.rowBlock * window.columnBlock > 1
              ? `One cell = ${shared} positions, ${most}. `
              : "Every position has its cell. ",
            "Click a place to see it larger.",
          ]),
    );
  }

  /** Buttons that save the picture and its numbers. */
  drawSaves() {
    const { renderer } = this.root.dataset;
    const name = `attention-${this.headName()}-${this.stage.name}`;
    const buttons = formatsOf(renderer).map((format) =>
      element(
        "button",
        {
          type: "button",
          "data-testid": `save-${format}`,
          "aria-label": `Save ${format === "csv" ? "the numbers" : "the picture"} as ${format}`,
          onclick: () =>
            save(format, name, { ...this, renderer }).catch(() =>
              this.say("The picture could not be saved."),
            ),
        },
        format.toUpperCase(),
      ),
    );
    this.parts.saves.replaceChildren("Save ", ...buttons);
  }

  // --- words about cells ---------------------------------------------------------------------------

  place(axis, position) {
    if (axis === "dimension") return `dimension ${position}`;
    return `${axis} ${position} “${this.labels[axis].full[position]}”`;
  }

  cellWords() {
    const { row, column } = cellOf(this.stage, this.state);
    const place = `${this.place(this.stage.rows, row)}, ${this.place(this.stage.columns, column)}`;
    const values = this.figure.panels.map((panel) => cellText(panel, row, column));
    return `${place}: ${values.join(", ")}`;
  }

  announce() {
    this.parts.unseen.textContent = this.cellWords();
  }

  /** The tooltip's lines for a cell under the pointer. */
  describe({ row, column }) {
    const { stage, figure } = this;
    const places = [this.place(stage.rows, row), this.place(stage.columns, column)];
    const names = figure.captions ? ["baseline", "changed", "difference"] : [stage.cell];
    const values = figure.panels.map((panel, n) => {
      const cell = row * panel.columns + column;
      const masked = panel.masked !== null && panel.masked[cell] === 1;
      const value = brief(panel.values[cell]);
      if (masked && !(panel.leaks && panel.values[cell] !== 0)) return `${names[n]}: not allowed`;
      return `${names[n]}: ${value}${masked ? " (masked)" : ""}`;
    });
    return [...places, ...values];
  }

  // --- beside and below ----------------------------------------------------------------------------

  drawPanel(scene) {
    const { parts, stage, layer, palette, state } = this;
    const formula = this.received.formulas[stage.name];
    if (this.katex === undefined) {
      parts.general.textContent = formula.plain;
    } else {
      const general = filledTemplate(formula.general, {}, palette.ink);
      if (general !== this.general) drawEquation(parts.general, this.katex, general, formula.plain);
      this.general = general;
      const { name, values } = cellNumbers(stage.name, layer, scene.derived, state, state.order);
      const numeric = filledTemplate(formula.numeric[name], values, palette.ink);
      drawEquation(parts.numeric, this.katex, numeric, this.cellWords());
    }
    drawEffect(parts.effect, scene);
    drawDetails(parts.details, scene);
    drawTopKeys(parts.top, scene);
  }

  drawCheck(derived) {
    if (derived === this.checkedOf) return;
    this.checkedOf = derived;
    const { check: whole } = this.received;
    const gap = largestGap(derived.output, derived.recorded);
    const agrees = gap <= AGREES * Math.max(1, extent(derived.recorded));
    const figure = (value) => element("strong", { class: "number" }, magnitude(value));
    this.parts.check.replaceChildren(
      element("span", { class: agrees ? "tick" : "cross", "aria-hidden": "true" }, agrees ? "✓" : "✗"),
      `Check: weights · V, recomputed here from the recorded Q, K and V of ${this.headName()},`,
      agrees ? " equals the model's own output to " : " differs from the model's own output by up to ",
      figure(gap),
      ...(whole === null ? ["."] : ["; over the whole run the largest difference is ", figure(whole), "."]),
    );
  }

  drawTable() {
    const { numbers } = this.parts;
    if (!numbers.open || !this.figure) return;
    drawTable(numbers.querySelector(".scroll"), this.figure, cellOf(this.stage, this.state));
  }
}
