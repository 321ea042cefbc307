// Sums, term by term: the products of a score or an output, the exponentials of a row of weights.

import { exponentialsOf, topPositions } from "./derive.js";
import { element, twoWaySwitch } from "./elements.js";
import { precise } from "./numbers.js";

const LISTED = 128; // terms in a list; the smaller rest is summed up in one line

/** The row of one query in a (query, key) matrix. */
export function rowOf(matrix, query, keys) {
  return matrix.subarray(query * keys, (query + 1) * keys);
}

/** The terms of a sum: q·k over the dimensions, or weight · v over the keys. */
export function terms(stage, layer, derived, { query, key, dimension }, order) {
  const list =
    stage === "scores"
      ? Array.from({ length: layer.width }, (_, c) => ({
          position: c,
          a: derived.query[query * layer.width + c],
          b: derived.key[key * layer.width + c],
        }))
      : Array.from({ length: layer.keys }, (_, j) => ({
          position: j,
          a: derived.applied[query * layer.keys + j],
          b: derived.value[j * layer.valueWidth + dimension],
        }));
  for (const term of list) term.product = term.a * term.b;
  if (order === "largest") list.sort((s, t) => Math.abs(t.product) - Math.abs(s.product));
  return list;
}

/** q·k or weight · v, term by term. */
export function productDetails(scene) {
  const { stage, layer, derived, cell, order, palette } = scene;
  const all = terms(stage.name, layer, derived, cell, order);
  const scores = stage.name === "scores";
  const [first, second] = scores ? ["query", "key"] : ["weight", "value"];
  const largest = Math.max(...all.map(({ product }) => Math.abs(product)), 1e-30);
  const label = scores ? (c) => `${c}` : (j) => scene.keys.short[j];
  const rows = all
    .slice(0, LISTED)
    .map(({ position, a, b, product }) =>
      termRow(label(position), [
        inked(precise(a), palette.ink[first]),
        inked(precise(b), palette.ink[second]),
        signedBar(product / largest, palette),
        number(precise(product)),
      ]),
    );
  const total = all.reduce((sum, { product }) => sum + product, 0);
  const names = scores ? ["dim.", "q", "k", "", "q·k"] : ["key", "weight", "v", "", "product"];
  return [
    listHead(scores ? `${all.length} products` : `${all.length} weighted values`, scene),
    termList(names, rows),
    remainder(all.slice(LISTED).map(({ product }) => product)),
    totalLine(`sum of ${all.length}`, total),
    layer.dropped && !scores
      ? paragraph("Dropout is on: these are the weights after it, some zero, the others enlarged.")
      : null,
  ].filter(Boolean);
}

/** The exponentials of the chosen row and what they sum to. */
export function softmaxDetails(scene) {
  const { layer, derived, cell, order, palette } = scene;
  const masked = rowOf(derived.masked, cell.query, layer.keys);
  const weights = rowOf(derived.weights, cell.query, layer.keys);
  const { exponentials, sum } = exponentialsOf(masked);
  if (sum === 0) {
    return [
      paragraph("Every key of this row is masked. There is nothing to share out: all weights are 0."),
    ];
  }
  const positions =
    order === "largest" ? topPositions(weights, weights.length) : [...weights.keys()];
  const rows = positions.slice(0, LISTED).map((j) =>
    termRow(
      scene.keys.short[j],
      [
        number(precise(masked[j])),
        number(precise(exponentials[j])),
        bar(weights[j], palette.hue.weight),
        inked(precise(weights[j]), palette.ink.weight),
      ],
      j === cell.key,
    ),
  );
  return [
    listHead(`exponentials of row ${cell.query}`, scene),
    termList(["key", "masked", "e^(…)", "", "weight"], rows),
    remainder(positions.slice(LISTED).map((j) => exponentials[j])),
    totalLine("sum of the row", sum),
  ].filter(Boolean);
}

function remainder(rest) {
  if (!rest.length) return null;
  const sum = rest.reduce((total, value) => total + value, 0);
  return paragraph(`and ${rest.length} more, together ${precise(sum)}`);
}

function totalLine(name, value) {
  return element("p", { class: "total" }, element("span", {}, name), number(precise(value)));
}

function listHead(text, scene) {
  const group = twoWaySwitch("Order of the terms", {
    options: { largest: "largest first", index: "in order" },
    chosen: scene.order,
    choose: scene.setOrder,
    name: "order",
  });
  return element("div", { class: "listhead" }, element("span", {}, text), group);
}

function termList(names, rows) {
  const head = names.map((name) =>
    element("span", { role: name ? "columnheader" : "presentation" }, name),
  );
  return element(
    "div",
    { class: "terms", role: "table", tabindex: "0", "aria-label": "Terms" },
    element("div", { class: "term head", role: "row" }, ...head),
    ...rows,
  );
}

function termRow(label, cells, chosen = false) {
  const name = element("span", { class: "token", role: "cell", title: label }, label);
  for (const cell of cells) if (cell.matches(".number")) cell.setAttribute("role", "cell");
  return element("div", { class: chosen ? "term chosen" : "term", role: "row" }, name, ...cells);
}

function number(text) {
  return element("span", { class: "number" }, text);
}

export function inked(text, colour) {
  return element("span", { class: "number", style: `color:${colour}` }, text);
}

/** A bar from the left, `share` of its place long. */
export function bar(share, colour) {
  const filled = element("i", { style: `width:${share * 100}%;background:${colour}` });
  return element("span", { class: "bar", role: "presentation" }, share > 0 ? filled : null);
}

/** A bar from the middle: to the right when positive. */
function signedBar(share, palette) {
  const colour = share >= 0 ? palette.hue.score : palette.dark ? "#E0924A" : "#B35806";
  const size = Math.abs(share) * 50;
  const style = `left:${share >= 0 ? 50 : 50 - size}%;width:${size}%;background:${colour}`;
  return element("span", { class: "bar signed", role: "presentation" }, element("i", { style }));
}

export function paragraph(...parts) {
  return element("p", {}, ...parts);
}
