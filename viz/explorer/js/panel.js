// The panel beside the picture: the chosen cell's arithmetic, term by term, and the query's top keys.

import { exponentialsOf, spread, topPositions } from "./derive.js";
import { check, element, radioKeys } from "./elements.js";
import { precise } from "./numbers.js";

const LISTED = 128; // terms in a list; the smaller rest is summed up in one line
const TOP = 5;

/** The row of one query in a (query, key) matrix. */
export function rowOf(matrix, query, keys) {
  return matrix.subarray(query * keys, (query + 1) * keys);
}

/** What the numeric template of a stage needs, and which of its cases holds. */
export function cellNumbers(stage, layer, derived, cell, order) {
  const { query, key, dimension } = cell;
  const at = query * layer.keys + key;
  const values = {
    query_position: query,
    key_position: key,
    row: stage === "key" || stage === "value" ? key : query,
    column: dimension,
    scale: layer.scale,
    scores: derived.scores[at],
    scaled: derived.scaled[at],
    masked: derived.masked[at],
    weights: derived.weights[at],
  };
  if (stage === "query" || stage === "key" || stage === "value") {
    return { name: "cell", values: { ...values, ...vectorNumbers(stage, layer, derived, values) } };
  }
  const allowed = derived.mask === null || derived.mask[at] === 1;
  if (stage === "masked") return { name: allowed ? "allowed" : "forbidden", values };
  if (stage === "weights") return softmaxNumbers(layer, derived, values, query, key);
  const products = terms(stage, layer, derived, cell, order).slice(0, 2);
  products.forEach(({ a, b, product }, n) => {
    const [first, second] = stage === "output" ? ["w", "v"] : ["q", "k"];
    values[first + n] = a;
    values[second + n] = b;
    values[`product${n}`] = product;
  });
  if (stage === "output") values.value = derived.output[query * layer.valueWidth + dimension];
  return { name: "cell", values };
}

function vectorNumbers(stage, layer, derived, { row, column }) {
  const width = stage === "value" ? layer.valueWidth : layer.width;
  const vector = derived[stage].subarray(row * width, (row + 1) * width);
  return { value: vector[column], length: Math.hypot(...vector) };
}

function softmaxNumbers(layer, derived, values, query, key) {
  const { exponentials, sum, largest } = exponentialsOf(rowOf(derived.masked, query, layer.keys));
  if (sum === 0) return { name: "empty", values };
  const name = values.masked === -Infinity ? "forbidden" : "cell";
  return { name, values: { ...values, sum, largest, exponential: exponentials[key] } };
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

/** Fills the details of the stage: lists of terms, verdicts, sentences. */
export function drawDetails(holder, scene) {
  const content = DETAILS[scene.stage.name](scene);
  const list = holder.querySelector(".terms");
  const scrolled = list ? list.scrollTop : 0;
  holder.replaceChildren(...content);
  const next = holder.querySelector(".terms");
  if (next) next.scrollTop = scrolled;
}

const DETAILS = {
  query: (scene) => vectorDetails(scene, "query", "is compared with every key: the scores."),
  key: (scene) => vectorDetails(scene, "key", "is what every query is compared with: the scores."),
  value: (scene) => vectorDetails(scene, "key", "is what this token gives to those that look at it."),
  scores: productDetails,
  scaled: scaledDetails,
  masked: verdictDetails,
  weights: softmaxDetails,
  output: productDetails,
};

function paragraph(...parts) {
  return element("p", {}, ...parts);
}

function tokenName(scene, axis, position) {
  const labels = axis === "query" ? scene.queries : scene.keys;
  return `${axis} ${position} “${labels.short[position]}”`;
}

function vectorDetails(scene, axis, use) {
  const position = axis === "query" ? scene.cell.query : scene.cell.key;
  const letter = { query: "q", key: "k", value: "v" }[scene.stage.name];
  const token = (axis === "query" ? scene.queries : scene.keys).short[position];
  return [
    paragraph(`Row ${position}, “${token}”: the vector ${letter}, which ${use}`),
    paragraph(
      "x is the token's place in the residual stream, normalized. The bias, and the turn of rotary",
      " positions, count where the model has them: this is the vector as it was used.",
    ),
  ];
}

function scaledDetails({ layer, derived, cell }) {
  const root = 1 / layer.scale;
  const at = cell.query * layer.keys + cell.key;
  return [
    paragraph(
      `The factor is ${precise(layer.scale)}`,
      layer.scale > 0 && layer.scale !== 1 ? `, a division by ${precise(root)}. ` : ". ",
      `It takes ${precise(derived.scores[at])} to ${precise(derived.scaled[at])}.`,
    ),
    paragraph(
      "A sum of d_k products grows with d_k. Dividing by √d_k keeps it of one size, so that the softmax",
      " stays soft.",
    ),
  ];
}

function verdictDetails(scene) {
  const { layer, derived, cell } = scene;
  const at = cell.query * layer.keys + cell.key;
  const allowed = derived.mask === null || derived.mask[at] === 1;
  const names = [tokenName(scene, "query", cell.query), tokenName(scene, "key", cell.key)];
  if (allowed) {
    return [
      verdict("may look", true),
      paragraph(`${sentenceCase(names[0])} may look at ${names[1]}. The score stays as it is.`),
    ];
  }
  const later = layer.kind === "causal" && cell.key > cell.query;
  const becomes = layer.fill === -Infinity ? "−∞" : String(layer.fill);
  return [
    verdict("not allowed", false),
    paragraph(
      later
        ? `${sentenceCase(names[1])} comes later than ${names[0]}. `
        : `${sentenceCase(names[1])} is hidden from ${names[0]}. `,
      `The score ${precise(derived.scaled[at])} becomes ${becomes}.`,
    ),
  ];
}

function sentenceCase(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function verdict(text, allowed) {
  return element("p", { class: `verdict ${allowed ? "allowed" : "forbidden"}` }, text);
}

function productDetails(scene) {
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

function softmaxDetails(scene) {
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
  const orders = ["largest", "order"];
  const radios = orders.map((order, n) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        "data-testid": `order-${order}`,
        onclick: () => scene.setOrder(order),
      },
      n === 0 ? "largest first" : "in order",
    ),
  );
  const chosen = orders.indexOf(scene.order);
  check(radios, chosen);
  const group = element(
    "span",
    { class: "switch", role: "radiogroup", "aria-label": "Order of the terms" },
    ...radios,
  );
  radioKeys(group, 2, () => chosen, (next) => scene.setOrder(orders[next]));
  return element("div", { class: "listhead" }, element("span", {}, text), group);
}

function termList(names, rows) {
  const head = names.map((name) => element("span", { role: "columnheader" }, name));
  return element(
    "div",
    { class: "terms", role: "table", tabindex: "0", "aria-label": "Terms" },
    element("div", { class: "term head", role: "row" }, ...head),
    ...rows,
  );
}

function termRow(label, cells, chosen = false) {
  const name = element("span", { class: "token", role: "cell", title: label }, label);
  return element("div", { class: chosen ? "term chosen" : "term", role: "row" }, name, ...cells);
}

function number(text) {
  return element("span", { class: "number", role: "cell" }, text);
}

function inked(text, colour) {
  return element("span", { class: "number", role: "cell", style: `color:${colour}` }, text);
}

/** A bar from the left, `share` of its place long. */
function bar(share, colour) {
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

/** The keys the chosen query looks at most. Clicking one chooses it. */
export function drawTopKeys(holder, scene) {
  const { layer, derived, cell, palette } = scene;
  const weights = rowOf(derived.weights, cell.query, layer.keys);
  const items = topPositions(weights, TOP)
    .filter((j) => weights[j] > 0)
    .map((j) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            class: j === cell.key ? "chosen" : "",
            "aria-label": `Key ${j} ${scene.keys.full[j]}, weight ${precise(weights[j])}`,
            onclick: () => scene.choose({ key: j }),
          },
          element("span", { class: "token" }, scene.keys.short[j]),
          element("span", { class: "position" }, String(j)),
          bar(weights[j], palette.hue.weight),
          inked(precise(weights[j]), palette.ink.weight),
        ),
      ),
    );
  const name = tokenName(scene, "query", cell.query);
  holder.replaceChildren(
    element("h4", {}, `Top keys of ${name}`),
    items.length
      ? element("ol", {}, ...items)
      : paragraph("This query may look at no key: its weights are all 0."),
  );
}

/** Baseline beside changed, in numbers: this cell, this row, and all rows. */
export function drawEffect(holder, scene) {
  holder.hidden = !scene.before;
  if (!scene.before) return;
  const { layer, baseline, derived, before, cell } = scene;
  const measures = [
    [baseline, before],
    [layer, derived],
  ].map(([run, one]) => spread(one.weights, run.queries, run.keys, cell.query));
  const lines = [
    ["entropy of the row (nats)", "entropy"],
    ["largest weight of the row", "largest"],
    ["mean entropy, all rows", "meanEntropy"],
    ["mean largest weight", "meanLargest"],
  ].map(([name, measure]) => [name, measures[0][measure], measures[1][measure]]);
  const cells = (values) => values.map((value) => element("td", {}, precise(value)));
  const header = ["", "baseline", "changed", "difference"];
  holder.replaceChildren(
    element("h4", {}, `What the change does to ${tokenName(scene, "query", cell.query)}`),
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...header.map((name) => element("th", {}, name)))),
      element(
        "tbody",
        {},
        ...[["this cell", ...scene.cellValues], ...lines].map(([name, a, b]) =>
          element("tr", {}, element("th", { scope: "row" }, name), ...cells([a, b, b - a])),
        ),
      ),
    ),
  );
}
