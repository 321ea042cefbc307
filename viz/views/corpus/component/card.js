// One head's card: its numbers, its weight by distance, its mean map, and from what to what kinds of tokens it looks;
// beside it the same of the other profile's head.

import { element, shape, span, table } from "../../../explorer/js/elements.js";
import { paintPixels } from "../../../explorer/js/paint.js";
import { numeral } from "./table.js";

const MAP = 16; // cells along a side
const NO_LABEL = 255;
const CURVE = { width: 320, height: 120, left: 40, right: 8, top: 8, bottom: 22 };
const TICKS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export class Card {
  constructor(holder) {
    this.holder = holder;
  }

  /** The heads on the card: the chosen one, and its partner. */
  draw({ message, palette, at, partner }) {
    const heads = [at, ...(partner ? [partner] : [])].map(({ profile, head }) => {
      const numbers = message.profiles[profile];
      const label = numbers.labels[head];
      const evidence = numbers.evidence[head];
      const note = numbers.notes[head] ? ` (${numbers.notes[head]})` : "";
      return { numbers, head, evidence, note, name: numbers.names[head], label: label === NO_LABEL ? null : message.labels[label] };
    });
    this.holder.classList.toggle("double", heads.length > 1);
    this.words = `${heads[0].name}${heads[0].label ? `, ${heads[0].label.name}` : ""}`;
    this.holder.replaceChildren(
      titleOf(heads),
      factsOf(message.columns, heads),
      element("div", { class: "pictures" }, curveOf(heads, palette), mapsOf(heads, palette)),
      classesOf(message.classes, heads[0], this.holder.querySelector("details")?.open),
    );
  }
}

function titleOf([chosen, partner]) {
  const said = ({ name, label, note, numbers }, titled) =>
    `${name}${label ? ` · ${label.name}${note}` : " · no label"}${titled ? ` (${numbers.title})` : ""}`;
  const small = (words) => element("p", { class: "beside" }, words);
  return element(
    "div",
    {},
    element("h3", { "data-testid": "card-title" }, said(chosen, Boolean(partner))),
    chosen.evidence ? small(chosen.evidence) : null,
    partner ? small(`beside ${said(partner, true)}`) : null,
  );
}

function factsOf(columns, heads) {
  const facts = columns.map(({ name, title, meaning, decimals }) => {
    const values = heads.map(({ numbers, head }) => numeral(numbers.columns[name][head], decimals));
    const value = element("dd", { "data-testid": `fact-${name}` }, values.join(" | "));
    return element("div", { title: meaning }, element("dt", {}, title), value);
  });
  return element("dl", { class: "facts" }, ...facts);
}

/** The mean weight of a row by distance: near distances one by one, far ones in groups. */
function curveOf(heads, palette) {
  const { width, height, left, right, top, bottom } = CURVE;
  const lines = heads.map(({ numbers, head }) => {
    const count = numbers.bins.length;
    return { bins: numbers.bins, values: numbers.curves.subarray(head * count, (head + 1) * count) };
  });
  const numbers = lines.flatMap(({ values }) => [...values]).filter((value) => !Number.isNaN(value));
  const caption = element("figcaption", {}, "Mean weight by distance, in tokens back from the query");
  if (numbers.length === 0) {
    return element("figure", {}, caption, element("p", { class: "none" }, "No distance: it looks at another text."));
  }
  const most = Math.max(...numbers, 1e-6);
  const far = Math.max(...lines.flatMap(({ bins }) => bins.flat().map(Math.abs)), 1);
  const ahead = lines.some(({ bins }) => bins[0][0] < 0);
  const bend = (distance) => Math.sign(distance) * Math.log2(1 + Math.abs(distance));
  const [from, to] = [ahead ? -bend(far) : 0, bend(far)];
  const x = (distance) => left + ((bend(distance) - from) / (to - from || 1)) * (width - left - right);
  const y = (value) => top + (1 - value / most) * (height - top - bottom);
  const text = (at, down, anchor, words) => shape("text", { x: at, y: down, "text-anchor": anchor }, words);
  const ticks = TICKS.filter((tick) => tick <= far && (!ahead || [0, 4, 32, 256].includes(tick)));
  const both = ticks.flatMap((tick) => (ahead && tick > 0 ? [-tick, tick] : [tick]));
  const curves = lines.map(({ bins, values }, n) => {
    const points = bins
      .map(([first, last], at) => [x((first + last) / 2), values[at]])
      .filter(([, value]) => !Number.isNaN(value))
      .map(([across, value]) => `${across.toFixed(1)},${y(value).toFixed(1)}`);
    const stroke = { stroke: palette.ink.weight, "stroke-width": 2, "stroke-dasharray": n ? "5 3" : "" };
    return shape("polyline", { points: points.join(" "), fill: "none", ...stroke });
  });
  const picture = shape(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Largest mean weight ${numeral(most, 3)}` },
    ...[0, most].flatMap((value) => [
      shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      text(left - 5, y(value) + 4, "end", numeral(value, value ? 3 : 0)),
    ]),
    ...both.map((tick) => text(x(tick), height - 6, "middle", String(tick).replace("-", "\u2212"))),
    ...curves,
  );
  const legend = heads.length > 1 ? element("p", { class: "lines" }, "solid: the chosen head; dashed: the one beside it") : null;
  return element("figure", { class: "curve" }, caption, picture, ...(legend ? [legend] : []));
}

/** The mean maps side by side, each with its head, or where they are the same head's with its profile. */
function mapsOf(heads, palette) {
  const [one, other] = heads;
  const said = heads.map(({ name, numbers }) => (name === other?.name && name === one.name ? `${name}, ${numbers.title}` : name));
  return element("div", { class: "meanmaps" }, ...heads.map((each, at) => mapOf(each, palette, other ? ` of ${said[at]}` : "")));
}

/** The mean map: rows are parts of the queries, columns parts of the keys. */
function mapOf({ numbers, head, name }, palette, of) {
  const most = numbers.most[head];
  const caption = element("figcaption", {}, `Mean map${of}: queries down, keys across`);
  if (!(most > 0)) return element("figure", {}, caption, element("p", { class: "none" }, "No window is long enough."));
  const size = MAP * MAP;
  const values = Float32Array.from(numbers.maps.subarray(head * size, (head + 1) * size));
  const canvas = element("canvas", { class: "mean", role: "img", "aria-label": `Mean map${of || ` of ${name}`}` });
  paintPixels(canvas, { values, rows: MAP, columns: MAP }, palette.scale.weight, { low: 0, high: 255 });
  const ramp = span("ramp");
  ramp.style.background = palette.scale.weight.gradient;
  const ends = element("p", { class: "scale" }, "0", ramp, numeral(most, 3));
  return element("figure", { class: "meanmap" }, caption, canvas, ends);
}

/** From kinds of tokens to kinds of tokens, as a table that is closed at first. */
function classesOf(classes, { numbers, head, name }, open) {
  const count = classes.length;
  const shares = numbers.classes.subarray(head * count * count, (head + 1) * count * count);
  const rows = classes.map((query, row) => [
    query,
    ...classes.map((_, key) => numeral(shares[row * count + key])),
  ]);
  const holder = element("div", { class: "scroll", role: "region", "aria-label": "Mean weight by kind of token", tabindex: 0 });
  holder.append(table(["from \\ to", ...classes], rows, `${name}: mean weight of a row, from kinds of queries to kinds of keys`));
  const details = element("details", { class: "classes" }, element("summary", {}, "Kinds of tokens"), holder);
  details.open = Boolean(open);
  return details;
}
