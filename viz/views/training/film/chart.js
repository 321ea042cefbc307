// Curves against the training step as SVG, with the chosen step marked, and bars of moved weights.

const CHART = { height: 118, left: 34, right: 10, top: 8, bottom: 20 };

function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The last value of a line at or before a step; null before its first. */
function valueAt(line, step) {
  const before = line.steps.filter((at) => at <= step).length;
  return before ? line.values[before - 1] : null;
}

function numeral(value, decimals = 2) {
  return value === null ? "–" : value.toFixed(decimals);
}

/** Two decimals; more where two would call a small number nothing. */
function short(value) {
  return numeral(value, value !== null && value > 0 && value < 0.01 ? 4 : 2);
}

/** One chart: its title, its lines by name with the value at the chosen step, and the curves. */
function chartOf(chart, { width, step, lastStep, palette, choose }) {
  const { height, left, right, top, bottom } = CHART;
  const x = (at) => left + (at / Math.max(lastStep, 1)) * (width - left - right);
  const y = (value) => top + (1 - value / chart.high) * (height - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const value of [0, chart.high / 2, chart.high]) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  }
  for (const at of [0, lastStep / 2, lastStep]) {
    const anchor = at === 0 ? "start" : at === lastStep ? "end" : "middle";
    picture.append(svg("text", { x: x(at), y: height - 5, "text-anchor": anchor }, `${at === 0 ? "step " : ""}${at}`));
  }
  picture.append(svg("line", { class: "now", x1: x(step), x2: x(step), y1: top, y2: height - bottom }));
  for (const line of chart.lines) {
    const points = line.steps.map((at, n) => `${x(at)},${y(line.values[n])}`).join(" ");
    const look = { fill: "none", stroke: colour(line, palette), "stroke-width": 2 };
    picture.append(svg("polyline", { points, "stroke-dasharray": line.dash, ...look }));
    const value = valueAt(line, step);
    if (value !== null) {
      picture.append(svg("circle", { cx: x(step), cy: y(value), r: 3.5, fill: colour(line, palette) }));
    }
  }
  const stepUnder = (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    return ((at - left) / (width - left - right)) * lastStep;
  };
  picture.onpointerdown = (event) => choose(stepUnder(event));
  picture.onpointermove = (event) => event.buttons && choose(stepUnder(event));
  const names = chart.lines.map((line) =>
    html("li", {}, swatch(line, palette), `${line.name} `, html("span", { class: "value" }, short(valueAt(line, step)))),
  );
  return html("div", { class: "chart" }, html("h3", {}, chart.title), html("ul", { class: "names" }, ...names), picture);
}

function swatch(line, palette) {
  const stroke = { stroke: colour(line, palette), "stroke-width": 3, "stroke-dasharray": line.dash };
  const picture = svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" });
  picture.append(svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, ...stroke }));
  return picture;
}

function colour(line, palette) {
  return line.colour[palette.dark ? 1 : 0];
}

/** Bars: how far each part has moved since the start, and since the checkpoint before. */
function movementOf({ parts, sinceStart, sinceLast, colour: [light, dark] }, at, palette) {
  const most = Math.max(...sinceStart.flat(), 1e-9);
  const hue = palette.dark ? dark : light;
  const grid = html("div", { class: "moved" });
  for (const name of ["part", "", "since the start", "since the last"]) {
    grid.append(html("span", { class: "head" }, name));
  }
  parts.forEach((part, n) => {
    const [far, near] = [sinceStart[at][n], sinceLast[at][n]];
    const track = html("span", { class: "track", "aria-hidden": "true" });
    for (const [share, opacity] of [[far, 0.4], [near, 1]]) {
      const bar = html("span", {});
      Object.assign(bar.style, { width: `${(100 * share) / most}%`, background: hue, opacity });
      track.append(bar);
    }
    const value = (share) => html("span", { class: "value" }, `${Math.round(100 * share)} %`);
    grid.append(html("span", {}, part), track, value(far), value(near));
  });
  const title = html("h3", {}, "How far the weights have moved, in per cent of their length at step 0");
  return [title, grid];
}
