// Draws what an explorer shows: the picture at once, everything beside it after the next frame.
//
// The picture has four layers, from below: Plotly or our own canvas (cells and tick labels), hatching, marks
// (SVG), tooltip. All use the boxes of geometry.js. Only the lowest is slow. It is drawn again when head, stage,
// window, theme or size change; choosing another cell only moves the marks. Data from Python are drawn on the
// canvas first, and by Plotly after the next frame.

import { Card, drawWays } from "./card.js";
import { Check } from "./check.js";
import { Claim } from "./claim.js";
import { Code } from "./code.js";
import { DerivedHeads } from "./derived_heads.js";
import { hasHead } from "./derive.js";
import { Detail } from "./detail.js";
import { afterFrame, drawnLarger, Drawn, keepingFocus } from "./elements.js";
import { Fade, HEAD } from "./fade.js";
import { loadKatex, loadPlotly } from "./libraries.js";
import { drawAlso, drawHeadline, writeParts } from "./headline.js";
import { Header } from "./header.js";
import { More } from "./more.js";
import { runNumbers, stopNumbers } from "./motion.js";
import { drawNow, drawSure } from "./now.js";
import { brief, precise, simple } from "./numbers.js";
import { Panel } from "./panel.js";
import { Picture } from "./picture.js";
import { Play } from "./play.js";
import { REPORTED } from "./python.js";
import { Readout, readoutOf } from "./readout.js";
import { drawRow } from "./row.js";
import { Runs } from "./runs.js";
import { drawTable } from "./table.js";
import { cellOf, figureOf } from "./view.js";

const FRAMED = window !== window.top; // in a page of somebody else's, where all of the map is in sight
// Pixels of a picture, which fits the window between these.
const [LOWEST, TALLEST] = [FRAMED ? 240 : 300, 900];
const BELOW = 48; // pixels of the window that stay free below it, for its legend
const [BESIDE, BESIDE_IN_LECTURE] = [284, 180]; // pixels beside the map, with the gap
const LEAST = 560; // pixels in which map and row stand beside each other
const NARROWEST = 120;
// Pixels of a saved picture. That of a changed run has the unchanged one and the difference beside it.
const [ONE, THREE] = [{ available: 720, tallest: 660 }, { available: 1380, tallest: 520 }];
const RUN = 700; // milliseconds in which a number of the page runs from before to after
const WIDE = 1600; // pixels of a window in which full detail has both runs and their difference beside each other

export class Drawing {
  drawn = new Drawn();
  derived = new DerivedHeads();
  resized = true;
  dropRest = () => {}; // cancels what is to be drawn after the next frame

  /** `explorer`: what is shown and chosen. `actions`: what the picture's pointer and keys do. */
  constructor(explorer, actions) {
    const { root, parts } = explorer;
    Object.assign(this, { explorer, root, parts });
    const light = (cell) => this.header.light(cell);
    this.picture = new Picture(root, parts, { ...actions, light, painted: () => this.settle() });
    this.claim = new Claim(parts.claim, actions.follow);
    this.panel = new Panel(parts);
    this.code = new Code(parts);
    this.readout = new Readout(parts.readout);
    this.more = new More({ more: parts.more, root }, this.behind());
    parts.saves = this.more.saves;
    this.header = new Header(parts.header, (cell) => this.picture.point(cell));
    this.fade = new Fade(parts.fade);
    this.card = new Card(parts.card, () => {
      explorer.choose({ card: null });
      parts.figure.focus();
    });
    this.shownRun = new Runs(parts.runs, (run) => explorer.choose(run), explorer.mountedUntil.signal);
    const tell = (detail) => explorer.python.told.detail(detail);
    const explained = () => explorer.isHere && this.explain(this.scene(...this.runs()));
    this.detail = new Detail(parts.detail, this.readout.how, root, { tell, explained });
    this.play = new Play(parts.openplay, explorer);
    this.check = new Check(this.more.check, this.more.short);
    this.measureAgain = () => {
      this.resized = true;
      this.schedule();
    };
    const isOther = () => root.clientWidth !== this.width || parts.headline.offsetHeight !== this.titleHeight;
    this.resize = new ResizeObserver(() => isOther() && this.measureAgain());
    for (const part of [parts.stage, parts.headline, root]) this.resize.observe(part);
    addEventListener("resize", this.measureAgain); // a window that becomes lower leaves the width as it is
  }

  /** What else can be opened: each button of the ⋯. */
  behind() {
    const showTable = (on) => {
      this.parts.numbers.hidden = !on;
      this.drawTable();
    };
    const showCode = (on) => {
      this.code.choose(on ? "code" : "formula");
      this.detail.explain(on);
    };
    return { table: { label: "Numbers as a table", turn: showTable }, code: { label: "Code", turn: showCode } };
  }

  load(assets) {
    if (this.loading) return;
    this.loading = true;
    if (assets.plotly === null) Object.assign(this.picture, { isAlone: true, plotly: null });
    else this.take(loadPlotly(assets), this.picture, "plotly");
  }

  /** Draws again with a library, once it is here. */
  async take(library, holder, name) {
    holder[name] = await library;
    this.schedule();
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.explorer.received && this.draw());
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.dropRest();
    this.play.pause();
    this.resize.disconnect();
    removeEventListener("resize", this.measureAgain);
    this.fade.end();
    delete document.documentElement.dataset.run;
    this.picture.plotly?.purge(this.parts.plotly);
  }

  /** Draws the picture now and everything beside it right after the browser has shown it. */
  draw() {
    const { root, explorer } = this;
    const { layer, state } = explorer;
    this.dropRest();
    this.claim.draw(explorer.received.claims ?? [], layer.name, state.head);
    this.measure();
    for (const name of REPORTED) root.dataset[name] = state[name];
    root.dataset.queries = layer.queries;
    root.dataset.layer = layer.name;
    root.dataset.changed = explorer.baseline !== null;
    root.dataset.ready = "false";
    this.beside = false;
    explorer.controls.mark(explorer);
    if (!explorer.isHere) {
      const sent = hasHead(layer, state.head);
      const what = `${sent ? "the values of " : ""}head ${state.head}`;
      this.picture.waitFor(`Fetching ${sent && explorer.stage.group ? "the vectors of this stage" : what} …`);
      return;
    }
    if (!explorer.python.opening) this.picture.waitFor("");
    if (this.available < NARROWEST) return; // in a tab that is not open
    keepingFocus(root, () => {
      this.drawPicture();
      this.drawAround();
    });
    this.dropRest = afterFrame(() => keepingFocus(root, () => this.drawBeside()));
  }

  /** Measures how large the picture may be. That is slow right after a change of the page. */
  measure() {
    const { root, isSplit } = this;
    if (!this.resized && isSplit === root.classList.contains("split")) return;
    this.width = root.clientWidth;
    this.titleHeight = this.parts.headline.offsetHeight;
    this.isNarrow = matchMedia("(max-width: 900px)").matches || this.width < LEAST;
    root.classList.toggle("narrow", this.isNarrow); // all that is below the map
    root.classList.toggle("split", isSplit);
    const isLecture = root.classList.contains("projected");
    this.available = this.width - (isSplit || this.isNarrow ? 0 : isLecture ? BESIDE_IN_LECTURE : BESIDE);
    this.tallest = this.roomBelow();
    this.resized = false;
  }

  /** How tall the picture may be, so that all of it is seen where the page is not scrolled. */
  roomBelow() {
    if (this.explorer.tallest) return this.explorer.tallest;
    const host = this.root.getRootNode().host ?? this.root;
    const scrolled = host.closest("[data-testid=stMain]")?.scrollTop ?? scrollY;
    const top = this.parts.figure.getBoundingClientRect().top + scrolled;
    if (this.isNarrow && !FRAMED) return TALLEST; // one scrolls
    const below = this.root.classList.contains("projected") ? 0 : BELOW;
    return Math.min(Math.max((innerHeight - top) / drawnLarger() - below, LOWEST), TALLEST);
  }

  /** Whether both runs and their difference stand beside each other. */
  get isSplit() {
    const { received, baseline, state } = this.explorer;
    return received.hero.detail === "full" && baseline !== null && state.run === "changed" && innerWidth >= WIDE;
  }

  drawPicture() {
    const { explorer, picture, available, tallest } = this;
    const { stage, state, layer, baseline, labels, palette, isLong, headName, received } = explorer;
    const { window, span } = state;
    const [derived, before] = this.runs();
    const byPlotly = picture.plotly && !isLong && !explorer.quick;
    const run = this.isSplit ? null : state.run;
    const { certificate: saved } = received;
    const facts = [derived, before, palette, stage, window, span, run, available, tallest, byPlotly, saved?.scan];
    if (this.drawn.differs("picture", ...facts)) {
      const room = { available, tallest };
      const title = stage.title.replaceAll("{head}", headName);
      const of = { stage, layer, baseline, derived, before, labels, window, span, run, head: state.head };
      const header = this.isSplit ? 0 : this.header.height(this.root, layer, labels.key);
      const file = `attention-${headName.replaceAll(" ", "-")}-${stage.name}`;
      const certificate = { run: saved, view: { place: layer.name, head: state.head, stage: stage.name } };
      const whole = () => figureOf({ ...of, run: null, room: before ? THREE : ONE, title, header: 0 });
      const view = { stage, labels, palette, file, isLong, byPlotly, span, certificate, saved: whole };
      const figure = figureOf({ ...of, room, title, header });
      this.fadeTo(figure, derived);
      picture.draw(figure, view);
      this.root.style.setProperty("--map", `${figure.layout.width}px`);
      this.root.style.setProperty("--top", `${figure.layout.boxes[0].top}px`);
    }
    picture.mark(cellOf(stage, state));
  }

  /** On the same map another head or stage fades in, and what a switch changes, more slowly: a mask rolls away. */
  fadeTo(figure, derived) {
    const { picture, faded } = this;
    const { received, stage } = this.explorer;
    const { layout, rowLabels, columnLabels, panels } = figure;
    const place = JSON.stringify([layout.boxes, rowLabels, columnLabels]);
    this.faded = { derived, stage, run: received.run, place };
    if (faded?.place !== place || (faded.derived === derived && faded.stage === stage)) return;
    const { palette } = picture.view;
    if (faded.run === received.run) return this.fade.start(picture.figure, palette, HEAD);
    this.fade.end();
    const [was, is] = [picture.figure.panels[0].masked, panels[0].masked].map(Boolean);
    this.turning = { figure: picture.figure, palette, rolls: was === is ? null : was ? "away" : "back" };
  }

  /** Begins the way from before a switch to after it: map, bars, numbers of the page, then the title. */
  turn() {
    const { turning } = this;
    if (!turning) return;
    const also = (passed) => {
      runNumbers(Math.min(passed / RUN, 1));
      return Math.max(this.header.rise(passed), RUN);
    };
    const ended = () => {
      runNumbers(1);
      this.header.rise(Infinity);
      this.turning = null;
      if (this.explorer.isHere) this.drawTitle();
    };
    this.fade.turn(turning.figure, turning.palette, { rolls: turning.rolls, also, ended });
  }

  /** Numbers that still stand on the page are those of the run that is left: they stay as they are. */
  leaveNumbers() {
    this.fade.end();
    stopNumbers();
  }

  /** The tokens above the map with their arcs, what the numbers say in a sentence, and what is chosen beside them. */
  drawAround() {
    const { explorer, parts, picture } = this;
    const scene = this.scene(...this.runs());
    const shown = shownScene(scene);
    this.header.draw(shown, picture.figure);
    const isNew = this.turning && !this.fade.isTurning;
    if (!this.turning) this.drawTitle();
    else if (isNew) this.turn();
    this.shownRun.draw(scene.run, scene.before !== null);
    this.card.draw(shown, picture.figure, parts.figure, explorer.headName);
    drawWays(this.readout.ways, shown);
    this.detail.draw(scene.hero.detail, brief(scene.cellValues.at(-1)));
    const { dataset } = document.documentElement;
    if (dataset.run !== scene.run) dataset.run = scene.run; // to write it again would be a change of the page's style
  }

  /** The words and numbers of the chosen cell: after a switch they come last. */
  drawTitle() {
    const { parts, header } = this;
    const shown = shownScene(this.scene(...this.runs()));
    this.root.classList.toggle("changed", shown.before !== null);
    drawHeadline(parts.headline, shown);
    drawAlso(parts.also, shown);
    drawNow(parts.large, shown);
    drawSure(parts.surename, shown, header.isAbove);
    writeParts(parts.job, shown.hero.job ? [shown.hero.job] : []);
  }

  /** Draws Plotly's picture if the canvas was first, then stages, row, panel, check and table. */
  drawBeside() {
    const { explorer } = this;
    explorer.quick = false;
    this.drawPicture();
    const [derived, before] = this.runs();
    explorer.controls.drawStages(explorer, derived, before);
    const scene = this.scene(derived, before);
    const shown = shownScene(scene);
    const isBeside = !this.isSplit && !this.isNarrow;
    drawRow(this.parts.top, shown, isBeside ? this.picture.figure.layout.boxes[0].height : Infinity);
    this.play.draw();
    if (this.detail.isExplained) this.explain(scene);
    this.readout.say(readoutOf(shown, explorer.headName));
    this.drawCheck();
    this.drawTable();
    this.beside = true;
    this.settle();
    this.derived.foresee(explorer.layer);
    explorer.python.askForCheck(explorer.received);
  }

  /** How the chosen number is computed. */
  explain(scene) {
    this.katexLoading ??= this.take(loadKatex(this.explorer.received.assets, this.root), this, "katex");
    this.panel.draw(scene);
    this.code.draw(scene);
  }

  /** Marks the explorer as ready once everything is drawn. */
  settle() {
    const { dataset } = this.root;
    dataset.ready = String(dataset.painted === "true" && this.beside);
  }

  /** The derived matrices of the chosen head: in the shown run, and in the baseline if there is one. */
  runs() {
    const { layer, baseline, state } = this.explorer;
    return [layer, baseline].map((run) => run && this.derived.of(run, state.head));
  }

  /** Everything that stands around the picture is drawn from. */
  scene(derived, before) {
    const { explorer, picture, katex } = this;
    const { stage, state, layer, baseline, labels, palette, received } = explorer;
    const { row, column } = cellOf(stage, state);
    const panels = picture.figure.compared.slice(0, 2);
    return {
      ...{ stage, layer, baseline, derived, before, palette, katex },
      ...{ cell: state, order: state.order, queries: labels.query, keys: labels.key },
      hero: received.hero,
      written: received.hero.detail === "simple" ? simple : precise,
      ...{ run: state.run, card: state.card },
      formula: received.formulas[stage.name],
      code: received.code,
      words: picture.words({ row, column }),
      cellValues: panels.map((panel) => panel.values[row * panel.columns + column]),
      change: (change) => explorer.choose(change),
      setOrder: (order) => explorer.choose({ order }),
    };
  }

  drawCheck() {
    const { headName, received } = this.explorer;
    this.check.draw(this.runs()[0], headName, received);
  }

  drawTable() {
    const { numbers } = this.parts;
    const { figure } = this.picture;
    const { stage, state } = this.explorer;
    if (numbers.hidden || !figure) return;
    drawTable(numbers, figure, cellOf(stage, state));
  }
}

const unchanged = new WeakMap(); // from what is shown beside a layer to that of the unchanged run

/** The scene of the run that is shown: while "Before" is, that of the unchanged one. */
function shownScene(scene) {
  const { hero, run, baseline, before } = scene;
  if (run !== "baseline" || !before) return scene;
  if (!unchanged.has(hero)) {
    unchanged.set(hero, { ...hero, sure: hero.sure && { before: null, after: hero.sure.before } });
  }
  return { ...scene, layer: baseline, derived: before, before: null, hero: unchanged.get(hero), isUnchanged: true };
}
