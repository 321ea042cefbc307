// The panel beside the picture: the chosen cell's arithmetic, term by term, and the query's top keys.

import { aroundNumbers } from "./around.js";
import { AROUND_DETAILS } from "./around_details.js";
import { spread, weightsSetIn } from "./derive.js";
import { exponentialsOf, rowOf } from "./steps.js";
import { Drawn, element, sentenceCase, table } from "./elements.js";
import { drawEquation, filledTemplate } from "./equations.js";
import { given, precise } from "./numbers.js";
import { SCORE_STAGES } from "./score_stages.js";
import { paragraph, productDetails, softmaxDetails, terms } from "./terms.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("panel");

export class Panel {
  drawn = new Drawn();

  constructor({ general, numeric, effect, details }) {
    Object.assign(this, { general, numeric, effect, details });
  }

  /** `scene.katex` is undefined while it loads, null if it cannot be loaded; `scene.words` describe the chosen
   *  cell. */
  draw(scene) {
    this.drawFormula(scene);
    drawEffect(this.effect, scene);
    drawDetails(this.details, scene);
  }

  drawFormula({ stage, layer, derived, cell, order, formula, katex, palette, words }) {
    if (katex === undefined) {
      this.general.textContent = formula.plain;
      return;
    }
    const general = filledTemplate(formula.general, {}, palette.ink);
    if (this.drawn.differs("general", general)) drawEquation(this.general, katex, general, formula.plain);
    const { name = "cell", ...values } = cellNumbers(stage, layer, derived, cell, order);
    const numeric = filledTemplate(formula.numeric[name], values, palette.ink);
    drawEquation(this.numeric, katex, numeric, words);
  }
}

/** The numbers for a stage's numeric template, and in `name` its case, if not "cell". */
function cellNumbers(stage, layer, derived, cell, order) {
  const { name } = stage;
  const { query, key, dimension } = cell;
  const at = query * layer.keys + key;
  const step = (name) => derived.row(name, query)[key];
  const values = {
    query_position: query,
    key_position: key,
    row: stage.rows === "key" ? key : query,
    column: dimension,
    scale: layer.scale,
    scores: step("scores"),
    scaled: step("scaled"),
    masked: step("masked"),
    weights: derived.weights[at],
  };
  for (const { name, slots } of SCORE_STAGES) Object.assign(values, { [name]: step(name) }, slots(layer, cell));
  if (stage.group) return { ...values, ...aroundNumbers(stage, layer, derived, cell, order) };
  switch (stage.name) {
    case "query":
    case "key":
    case "value":
      return { ...values, ...vectorNumbers(name, layer, derived, values) };
    case "masked":
      return { ...values, name: derived.hidden?.[at] ? "forbidden" : "allowed" };
    case "weights":
      return { ...values, ...softmaxNumbers(layer, derived, values, cell) };
    case "output":
      values.value = derived.output[query * layer.valueWidth + dimension];
  }
  if (name === "scaled" || name in SCORE_DETAILS) return values;
  const [first, second] = name === "output" ? ["w", "v"] : ["q", "k"];
  const products = terms(name, layer, derived, cell, order).slice(0, 2);
  products.forEach(({ a, b, product }, n) => {
    Object.assign(values, { [first + n]: a, [second + n]: b, [`product${n}`]: product });
  });
  return values;
}

function vectorNumbers(stage, layer, derived, { row, column }) {
  const width = stage === "value" ? layer.valueWidth : layer.width;
  const vector = rowOf(derived[stage], row, width);
  return { value: vector[column], length: Math.hypot(...vector) };
}

function softmaxNumbers(layer, derived, { masked }, { head, query, key }) {
  const given = weightsSetIn(layer, head, query);
  if (given.size) return { name: given.has(key) ? "set" : "shared" };
  const { exponentials, sum, largest } = exponentialsOf(derived.row("masked", query), derived.sink);
  if (sum === 0) return { name: "empty" };
  const name = masked === -Infinity ? "forbidden" : "cell";
  const ofSink = { sink: derived.sink, sink_weight: derived.sinkWeights[query] };
  return { name, sum, largest, exponential: exponentials[key], ...ofSink };
}

const scrolled = new WeakMap(); // how far a holder's list of terms is scrolled: to read that lays the page out

/** Fills the details of the stage: lists of terms, verdicts, sentences. */
function drawDetails(holder, scene) {
  holder.replaceChildren(...DETAILS[scene.stage.name](scene));
  const list = holder.querySelector(".terms");
  if (!list) return;
  if (scrolled.get(holder)) list.scrollTop = scrolled.get(holder);
  list.onscroll = () => scrolled.set(holder, list.scrollTop);
}

const SCORE_DETAILS = Object.fromEntries(SCORE_STAGES.map((stage) => [stage.name, (scene) => scoreDetails(stage, scene)]));
const DETAILS = {
  ...SCORE_DETAILS,
  ...AROUND_DETAILS,
  query: (scene) => vectorDetails(scene, "query", say("q_compared_every")),
  key: (scene) => vectorDetails(scene, "key", say("k_compared_every")),
  value: (scene) => vectorDetails(scene, "key", say("v_token_passes_tokens")),
  scores: productDetails,
  scaled: scaledDetails,
  masked: verdictDetails,
  weights: softmaxDetails,
  output: productDetails,
};

function tokenName(scene, axis) {
  const labels = axis === "query" ? scene.queries : scene.keys;
  const position = scene.cell[axis];
  return `${axis} ${position} “${labels.short[position]}”`;
}

function vectorDetails(scene, axis, use) {
  const position = scene.cell[axis];
  const token = (axis === "query" ? scene.queries : scene.keys).short[position];
  return [
    paragraph(`Row ${position}, “${token}”: the vector ${use}`),
    paragraph(
      say("x_token_vector_layer"),
      say("model_vector_used"),
    ),
  ];
}

function scaledDetails({ layer, derived, cell }) {
  const step = (name) => derived.row(name, cell.query)[cell.key];
  const isDivided = layer.scale > 0 && layer.scale !== 1;
  return [
    paragraph(
      `The factor is ${precise(layer.scale)}`,
      isDivided ? `, a division by ${precise(1 / layer.scale)}. ` : ". ",
      `It takes ${precise(step("scores"))} to ${precise(step("scaled"))}.`,
    ),
    paragraph(
      say("sum_k_products_grows"),
      " does not saturate.",
    ),
  ];
}

function scoreDetails({ name, field, absent, details }, scene) {
  const { layer, derived, cell } = scene;
  if (layer[field] === null) return [paragraph(absent)];
  const before = layer.later[layer.later.findIndex((stage) => stage.name === name) - 1]?.name ?? "scaled";
  const [read, made] = [before, name].map((step) => derived.row(step, cell.query)[cell.key]);
  return details({ layer, cell, tokenName: (axis) => tokenName(scene, axis) }, read, made).map((words) => paragraph(words));
}

function verdictDetails(scene) {
  const { layer, derived, cell } = scene;
  const at = cell.query * layer.keys + cell.key;
  const [query, key] = [tokenName(scene, "query"), tokenName(scene, "key")];
  if (!derived.hidden?.[at]) {
    const stays = say("may_attend_score", { query: sentenceCase(query), key });
    return [verdict("not masked", "allowed"), paragraph(stays)];
  }
  const isLater = layer.kind === "causal" && cell.key > cell.query;
  const isFar = layer.window !== null && cell.query - cell.key >= layer.window;
  const from = isLater ? "comes later than" : isFar ? say("lies_outside_window", { window: layer.window }) : "is hidden from";
  const becomes = given(layer.mask_value);
  return [
    verdict("masked", "forbidden"),
    paragraph(
      `${sentenceCase(key)} ${from} ${query}. `,
      `The score ${precise(derived.row("biased", cell.query)[cell.key])} becomes ${becomes}.`,
    ),
  ];
}

function verdict(text, kind) {
  return element("p", { class: `verdict ${kind}` }, text);
}

const MEASURES = {
  entropy: say("entropy_row_nats"),
  largest: say("largest_weight_row"),
  meanEntropy: say("mean_entropy_rows"),
  meanLargest: "mean largest weight",
};

/** Baseline and changed run in numbers: this cell, this row, all rows. */
function drawEffect(holder, scene) {
  holder.hidden = !scene.before;
  if (!scene.before) return;
  const { layer, baseline, derived, before, cell } = scene;
  const measured = (run, one) => spread(one.weights, run.queries, run.keys, cell.query);
  const [unchanged, changed] = [measured(baseline, before), measured(layer, derived)];
  const lines = Object.entries(MEASURES).map(([name, words]) => [words, unchanged[name], changed[name]]);
  const rows = [["this cell", ...scene.cellValues], ...lines].map(([name, a, b]) => {
    return [name, ...[a, b, b - a].map(precise)];
  });
  holder.replaceChildren(
    element("h3", {}, say("change", { scene: tokenName(scene, "query") })),
    table(["", "baseline", "changed", "difference"], rows),
  );
}
