// From the choice to the figure: the matrix of a stage becomes a panel, the panels become a figure.

import { beyond, colourEnd } from "./colour_end.js";
import { deriveHead, difference, extent } from "./derive.js";
import { figureLayout, wholeWindow } from "./geometry.js";
import { whenRead } from "./when_read.js";

const COMPARED_CELLS = 2 ** 17; // of all heads together: up to here their differences share one colour scale
const sharedRanges = new WeakMap(); // from a changed layer to its largest differences, by stage
const CAPTIONS = ["baseline: unchanged run", "changed run", "changed − baseline"];
const RUNS = ["baseline", "changed", "difference"];
export const LONG = 48; // tokens: of more, only the first ones of words are written above and beside the map
export const SINK = "sink"; // the last column of the weights of a head that has one
const STEPS = ["before", "after"]; // of a step that changes a vector

/** A head as it is called: L2H5, or H5 beside others of its layer. */
export function headName(head, layerLabel = "") {
  return `${layerLabel}H${head}`;
}

/** Whether one line of tokens is queries and keys. */
export function isOneText({ kind, queries, keys }) {
  return kind !== "cross" && queries === keys;
}

/** How many positions an axis has. */
export function axisLength(axis, stage, layer) {
  if (axis === "query") return layer.queries;
  if (axis === "key") return layer.keys + (stage.sink ? 1 : 0);
  if (stage.width) return stage.width;
  return stage.name === "value" || stage.name === "output" ? layer.valueWidth : layer.width;
}

/** Row and column of the chosen cell in the matrix of a stage. */
export function cellOf(stage, cell) {
  return { row: cell[stage.rows], column: cell[stage.columns] };
}

/** One stage of one head as a panel: values, size, colours, range, masked cells. */
export function panelOf(stage, layer, derived, ranges, name = stage.name) {
  const hides = stage.name === "masked" || stage.name === "weights";
  const range = ranges[name === "masked" ? "biased" : name] || 1;
  const weights = stage.name === "weights";
  const shown = stage.name === "output" ? "recorded" : stage.sink ? "weights_and_sink" : name;
  const values = derived[shown];
  return {
    values,
    rows: axisLength(stage.rows, stage, layer),
    columns: axisLength(stage.columns, stage, layer),
    quantity: stage.quantity,
    low: weights ? 0 : -range,
    high: weights ? 1 : range,
    masked: hides ? derived[stage.sink ? "hidden_and_sink" : "hidden"] : null,
    leaks: weights && Number.isFinite(layer.mask_value),
    beyond: stage.group && values ? beyond(values, range) : 0,
  };
}

/** Changed minus baseline. A cell that is masked in only one run has no difference of masked scores. */
function differencePanel({ stage, layer, baseline, span }, before, after) {
  const values = difference(before.values, after.values);
  const own = extent(values);
  const end = stage.group ? colourEnd(values) : own;
  const largest = span === "head" ? end : (largestDifference(stage, layer, baseline) ?? end);
  const masked = hiddenInDifference(before.masked, after.masked, stage.name === "masked");
  return {
    ...after,
    values,
    quantity: "difference",
    low: -(largest || 1),
    high: largest || 1,
    equal: own === 0,
    dropped: stage.name === "weights" && layer.dropped !== null,
    masked,
    leaks: before.leaks || after.leaks,
    beyond: stage.group ? beyond(values, largest) : 0,
  };
}

/** The largest difference of a stage over all heads, so that heads can be compared. Null if not all heads have
 *  arrived, or if they have too many cells. */
function largestDifference({ name, group }, layer, baseline) {
  const { heads, queries, keys } = layer;
  if (group) return null; // all heads together, and rotary positions of one
  if (layer.sent < heads || baseline.sent < heads || heads * queries * keys > COMPARED_CELLS) return null;
  if (sharedRanges.get(layer)?.baseline !== baseline) sharedRanges.set(layer, { baseline });
  const known = sharedRanges.get(layer);
  const matrix = (run, head) => deriveHead(run, head)[MATRIX[name] ?? name];
  const gap = (head) => {
    const [before, after] = [matrix(baseline, head), matrix(layer, head)];
    return before && after ? extent(difference(before, after)) : 0;
  };
  known[name] ??= Math.max(...Array.from({ length: heads }, (_, head) => gap(head)));
  return known[name] || null;
}

/** Cells masked in both runs or, with `either`, in at least one; null if there are none. */
function hiddenInDifference(before, after, either) {
  if (before === null && after === null) return null;
  if (before === null || after === null) return either ? (before ?? after) : null;
  return after.map((hidden, cell) => (either ? hidden | before[cell] : hidden & before[cell]));
}

/** The largest magnitude of each quantity, found when it is first read: over all heads or in the shown one; around the
 *  heads, where the colours of the picture end. Two runs share it. */
export function rangesOf({ layer, baseline, derived, before, span }) {
  const largestOf = (run, one, name) => {
    if (span !== "head" && name in run.range) return run.range[name];
    if (AROUND.includes(name)) return one[name] ? colourEnd(one[name]) : 0;
    return extent(one[MATRIX[name] ?? name] ?? []);
  };
  const largest = (name) =>
    Math.max(largestOf(layer, derived, name), before ? largestOf(baseline, before, name) : 0);
  const names = new Set([...Object.keys(layer.range), ...AROUND]);
  return whenRead((name) => (names.has(name) ? largest(name) : undefined));
}

const AROUND = ["norm", "query_norm", "key_norm", "positions", "concatenated", "written"].flatMap((name) => [name, `before_${name}`]);

const MATRIX = { output: "recorded" };

/** The figure of a stage: one panel, or baseline, changed and difference beside each other. `plan.run`: the only one
 *  of these that is shown, or null. */
export function figureOf(plan) {
  const { stage, layer, baseline, derived, before, labels, window, room, title } = plan;
  const ranges = rangesOf(plan);
  const changed = panelOf(stage, layer, derived, ranges);
  let [panels, captions, runs] = [[changed], null, null];
  if (before) {
    const unchanged = panelOf(stage, baseline, before, ranges);
    panels = [unchanged, changed, differencePanel(plan, unchanged, changed)];
    [captions, runs] = [CAPTIONS, RUNS];
  } else if (stage.captions.length) {
    panels = [panelOf(stage, layer, derived, ranges, `before_${stage.name}`), changed];
    [captions, runs] = [stage.captions, STEPS];
  }
  const compared = panels;
  if (before && plan.run) {
    const only = RUNS.indexOf(plan.run);
    [panels, captions, runs] = [[panels[only]], null, [RUNS[only]]];
  }
  const shown = window ?? wholeWindow(changed.rows, changed.columns);
  const dimensions = Array.from({ length: changed.columns }, (_, n) => String(n));
  const sink = stage.sink ? [SINK] : [];
  const axis = (name, form) => (name === "dimension" ? dimensions : labels[name][form]);
  const figure = {
    panels,
    compared,
    window: shown,
    title,
    captions,
    runs,
    block: stage.block && { column: plan.head * stage.block, columns: stage.block },
    rowAxis: stage.rows,
    columnAxis: stage.columns,
    rowLabels: axis(stage.rows, "short"),
    columnLabels: [...axis(stage.columns, "short"), ...sink],
    rowTickLabels: axis(stage.rows, "plotly"),
    columnTickLabels: [...axis(stage.columns, "plotly"), ...sink],
    sink: stage.sink ? layer.keys : null,
  };
  const square = stage.columns !== "dimension";
  const rowWords = plan.header && changed.rows > LONG && stage.rows !== "dimension" ? axis(stage.rows, "word") : null;
  return { ...figure, layout: figureLayout({ ...room, ...figure, count: panels.length, square, header: plan.header, rowWords }) };
}
