// Sums, term by term: the products of a score or an output, the exponentials of a row of weights.

import { topPositions, weightsSetIn } from "./derive.js";
import { exponentialsOf, rowOf } from "./steps.js";
import { choiceOf, element } from "./elements.js";
import { precise } from "./numbers.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("terms");

const SET = say("weights_row_set");
const LISTED = 128; // terms in a list; the smaller rest is summed up in one line

/** The terms of a sum: q·k over the dimensions, or weight · v over the keys. */
export function terms(stage, layer, derived, { query, key, dimension }, order) {
  const { width, keys, valueWidth } = layer;
  const ofScore = (c) => [derived.query[query * width + c], derived.key[key * width + c]];
  const ofOutput = (j) => [derived.applied[query * keys + j], derived.value[j * valueWidth + dimension]];
  const [count, factors] = stage === "scores" ? [width, ofScore] : [keys, ofOutput];
  const list = Array.from({ length: count }, (_, position) => {
    const [a, b] = factors(position);
    return { position, a, b, product: a * b };
  });
  if (order === "largest") list.sort((s, t) => Math.abs(t.product) - Math.abs(s.product));
  return list;
}

/** q·k or weight · v, term by term. */
export function productDetails(scene) {
  const { stage, layer, derived, cell, order, palette } = scene;
  const all = terms(stage.name, layer, derived, cell, order);
  const scores = stage.name === "scores";
  const [first, second] = scores ? ["query", "key"] : ["weight", "value"];
  const products = all.map(({ product }) => product);
  const largest = Math.max(...products.map(Math.abs), 1e-30);
  const rows = all
    .slice(0, LISTED)
    .map(({ position, a, b, product }) =>
      termRow(scores ? `${position}` : scene.keys.short[position], [
        inked(a, palette.ink[first]),
        inked(b, palette.ink[second]),
        signedBar(product / largest, palette),
        inked(product),
      ]),
    );
  const details = termList({
    head: scores ? `${all.length} products` : `${all.length} weighted values`,
    names: scores ? ["dim.", "q", "k", "", "q·k"] : ["key", "weight", "v", "", "product"],
    rows,
    values: products,
    total: `sum of ${all.length}`,
    scene,
  });
  if (!layer.dropped || scores) return details;
  const dropout = say("dropout_weights_after");
  return [...details, paragraph(dropout)];
}

/** The exponentials of the chosen row, and their sum. */
export function softmaxDetails(scene) {
  const { layer, derived, cell, order, palette } = scene;
  const masked = derived.row("masked", cell.query);
  const weights = rowOf(derived.weights, cell.query, layer.keys);
  const { exponentials, sum, ofSink } = exponentialsOf(masked, derived.sink);
  if (sum === 0) {
    return [
      paragraph(say("every_key_row_masked")),
    ];
  }
  const positions =
    order === "largest" ? topPositions(weights, weights.length) : [...weights.keys()];
  const rows = positions.slice(0, LISTED).map((j) => {
    const share = [bar(weights[j], palette.hue.weight), inked(weights[j], palette.ink.weight)];
    const cells = [inked(masked[j]), inked(exponentials[j]), ...share];
    return termRow(scene.keys.short[j], cells, j === cell.key);
  });
  const given = weightsSetIn(layer, cell.head, cell.query);
  const list = termList({
    head: `exponentials of row ${cell.query}`,
    names: ["key", lastStep(layer, derived), "e^(…)", "", "weight"],
    rows,
    values: positions.map((j) => exponentials[j]),
    total: derived.sink === null ? say("sum_row") : say("sum_keys"),
    scene,
  });
  if (derived.sink !== null) {
    const said = say("sink_adds_e_largest", { sink: precise(derived.sink), of_sink: precise(ofSink), sum: precise(sum) });
    list.push(paragraph(said, `Its weight is ${precise(derived.sinkWeights[cell.query])}.`));
  }
  return given.size ? [...list, paragraph(SET)] : list;
}

/** The step whose numbers the softmax reads. */
function lastStep(layer, derived) {
  if (derived.hidden) return "masked";
  return layer.later.at(-1)?.name ?? "scaled";
}

/** The list with its heading, the sum of what is not listed, and the sum of all values. */
export function termList({ head, names, rows, values, total, scene }) {
  const order = choiceOf(say("order_terms"), {
    options: { largest: "largest first", index: "in order" },
    chosen: scene.order,
    choose: scene.setOrder,
    name: "order",
  });
  const columns = names.map((name) =>
    element("span", { role: name ? "columnheader" : "presentation" }, name),
  );
  const sum = (some) => some.reduce((whole, value) => whole + value, 0);
  const rest = values.slice(LISTED);
  return [
    element("div", { class: "listhead" }, element("span", {}, head), order),
    element(
      "div",
      { class: "terms", role: "table", tabindex: "0", "aria-label": "Terms" },
      element("div", { class: "term head", role: "row" }, ...columns),
      ...rows,
    ),
    ...(rest.length ? [paragraph(`and ${rest.length} more, together ${precise(sum(rest))}`)] : []),
    element("p", { class: "total" }, element("span", {}, total), inked(sum(values))),
  ];
}

export function termRow(label, cells, chosen = false) {
  const name = element("span", { class: "token", role: "cell", title: label }, label);
  for (const cell of cells) if (cell.matches(".number")) cell.role = "cell";
  return element("div", { class: chosen ? "term chosen" : "term", role: "row" }, name, ...cells);
}

/** A number with four decimals, in the ink of its quantity. */
export function inked(value, colour = null, written = precise) {
  return element("span", { class: "number", style: colour && `color:${colour}` }, written(value));
}

/** A bar from the left; `share` is its length, 0 to 1. */
export function bar(share, colour) {
  const filled = element("i", { style: `width:${share * 100}%;background:${colour}` });
  return element("span", { class: "bar", role: "presentation" }, share > 0 ? filled : null);
}

/** A bar from the middle: to the right when positive. */
export function signedBar(share, palette) {
  const colour = share >= 0 ? palette.hue.score : palette.dark ? "#E0924A" : "#B35806";
  const size = Math.abs(share) * 50;
  const style = `left:${share >= 0 ? 50 : 50 - size}%;width:${size}%;background:${colour}`;
  return element("span", { class: "bar signed", role: "presentation" }, element("i", { style }));
}

export function paragraph(...parts) {
  return element("p", {}, ...parts);
}
