// The panel beside the picture: the chosen cell's arithmetic, term by term, and the query's top keys.

import { exponentialsOf, spread, topPositions } from "./derive.js";
import { element } from "./elements.js";
import { drawEquation, filledTemplate } from "./equations.js";
import { precise } from "./numbers.js";
import { bar, inked, paragraph, productDetails, rowOf, softmaxDetails, terms } from "./terms.js";

const TOP = 5;

export class Panel {
  constructor({ general, numeric, effect, details, top }) {
    Object.assign(this, { general, numeric, effect, details, top });
  }

  /** `scene.katex` is undefined while it is on its way, null where it cannot be had; `scene.words` say what
   *  the chosen cell is. */
  draw(scene) {
    this.drawFormula(scene);
    drawEffect(this.effect, scene);
    drawDetails(this.details, scene);
    drawTopKeys(this.top, scene);
  }

  drawFormula({ stage, layer, derived, cell, order, formula, katex, palette, words }) {
    if (katex === undefined) {
      this.general.textContent = formula.plain;
      return;
    }
    const general = filledTemplate(formula.general, {}, palette.ink);
    if (general !== this.drawn) drawEquation(this.general, katex, general, formula.plain);
    this.drawn = general;
    const { name, values } = cellNumbers(stage.name, layer, derived, cell, order);
    const numeric = filledTemplate(formula.numeric[name], values, palette.ink);
    drawEquation(this.numeric, katex, numeric, words);
  }
}

/** What the numeric template of a stage needs, and which of its cases holds. */
function cellNumbers(stage, layer, derived, cell, order) {
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
  if (stage === "scaled") return { name: "cell", values };
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

const scrolled = new WeakMap(); // of a holder: how far its list of terms is. To ask it lays the page out.

/** Fills the details of the stage: lists of terms, verdicts, sentences. */
function drawDetails(holder, scene) {
  holder.replaceChildren(...DETAILS[scene.stage.name](scene));
  const list = holder.querySelector(".terms");
  if (!list) return;
  if (scrolled.get(holder)) list.scrollTop = scrolled.get(holder);
  list.onscroll = () => scrolled.set(holder, list.scrollTop);
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
      "x is the token's vector as this layer reads it. The bias, and the turn of rotary positions, count",
      " where the model has them: this is the vector as it was used.",
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

/** The keys the chosen query looks at most. Clicking one chooses it. */
function drawTopKeys(holder, scene) {
  const { layer, derived, cell, palette } = scene;
  const weights = rowOf(derived.weights, cell.query, layer.keys);
  const items = topPositions(weights, TOP)
    .filter((j) => weights[j] > 0)
    .map((j, rank) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            "data-testid": `top-key-${rank}`,
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
    element("h3", {}, `Top keys of ${name}`),
    items.length
      ? element("ol", {}, ...items)
      : paragraph("This query may look at no key: its weights are all 0."),
  );
}

/** Baseline beside changed, in numbers: this cell, this row, and all rows. */
function drawEffect(holder, scene) {
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
    element("h3", {}, `What the change does to ${tokenName(scene, "query", cell.query)}`),
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
