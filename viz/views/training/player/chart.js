// Curves against the training step as SVG, with the chosen step marked, and bars of moved weights.

import { element, shape, span } from "../../../explorer/js/elements.js";

const CHART = { height: 118, left: 34, right: 10, top: 8, bottom: 20 };

/** The last value of a line at or before a step; null before its first. */
function valueAt(line, step) {
  const before = line.steps.filter((at) => at <= step).length;
  return before ? line.values[before - 1] : null;
}

export function numeral(value, decimals = 2) {
  return value === null ? "–" : value.toFixed(decimals);
}

/** Two decimals; more where two would call a small number nothing. */
function short(value) {
  return numeral(value, value !== null && value > 0 && value < 0.01 ? 4 : 2);
}

/** One chart: its title, its lines by name with the value at the chosen step, and the curves. */
export function chartOf(chart, { width, step, lastStep, palette, choose }) {
  const { height, left, right, top, bottom } = CHART;
  const x = (at) => left + (at / Math.max(lastStep, 1)) * (width - left - right);
  const y = (value) => top + (1 - value / chart.high) * (height - top - bottom);
  const line = (name, x1, x2, y1, y2) => shape("line", { class: name, x1, x2, y1, y2 });
  const text = (at, height, anchor, words) =>
    shape("text", { x: at, y: height, "text-anchor": anchor }, words);
  const picture = shape(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...[0, chart.high / 2, chart.high].flatMap((value) => [
      line("grid", left, width - right, y(value), y(value)),
      text(left - 5, y(value) + 4, "end", String(value)),
    ]),
    text(x(0), height - 5, "start", "step 0"),
    text(x(lastStep / 2), height - 5, "middle", String(lastStep / 2)),
    text(x(lastStep), height - 5, "end", String(lastStep)),
    line("now", x(step), x(step), top, height - bottom),
    ...chart.lines.flatMap((one) => curveOf(one, { step, x, y, palette })),
  );
  const stepUnder = (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    return ((at - left) / (width - left - right)) * lastStep;
  };
  picture.onpointerdown = (event) => choose(stepUnder(event));
  picture.onpointermove = (event) => event.buttons && choose(stepUnder(event));
  const names = chart.lines.map((one) =>
    element("li", {}, swatch(one, palette), `${one.name} `, span("value", short(valueAt(one, step)))),
  );
  const legend = element("ul", { class: "names" }, ...names);
  return element("div", { class: "chart" }, element("h3", {}, chart.title), legend, picture);
}

/** A line, and a dot where the chosen step is. */
function curveOf(line, { step, x, y, palette }) {
  const points = line.steps.map((at, n) => `${x(at)},${y(line.values[n])}`).join(" ");
  const stroke = { stroke: colour(line, palette), "stroke-width": 2, "stroke-dasharray": line.dash };
  const curve = shape("polyline", { points, fill: "none", ...stroke });
  const value = valueAt(line, step);
  if (value === null) return [curve];
  return [curve, shape("circle", { cx: x(step), cy: y(value), r: 3.5, fill: colour(line, palette) })];
}

function swatch(line, palette) {
  const stroke = { stroke: colour(line, palette), "stroke-width": 3, "stroke-dasharray": line.dash };
  const drawn = shape("line", { x1: 0, x2: 22, y1: 4, y2: 4, ...stroke });
  return shape("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, drawn);
}

function colour(line, palette) {
  return line.colour[palette.dark ? 1 : 0];
}

/** Bars: how far each part has moved since the start, and since the checkpoint before. */
export function movementOf({ parts, sinceStart, sinceLast, colour }, at, palette) {
  const most = Math.max(...sinceStart.flat(), 1e-9);
  const background = colour[palette.dark ? 1 : 0];
  const value = (share) => span("value", `${Math.round(100 * share)} %`);
  const rows = parts.flatMap((part, n) => {
    const [far, near] = [sinceStart[at][n], sinceLast[at][n]];
    const track = element("span", { class: "track", "aria-hidden": "true" });
    for (const [share, opacity] of [[far, 0.4], [near, 1]]) {
      const bar = element("span");
      Object.assign(bar.style, { width: `${(100 * share) / most}%`, background, opacity });
      track.append(bar);
    }
    return [element("span", {}, part), track, value(far), value(near)];
  });
  const heads = ["part", "", "since the start", "since the last"].map((name) => span("head", name));
  const title = "How far the weights have moved, in per cent of their length at step 0; a sub-layer with its norm";
  return [element("h3", {}, title), element("div", { class: "moved" }, ...heads, ...rows)];
}
