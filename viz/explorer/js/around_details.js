// The details beside the stages around the heads: what a number of them is made of.

import { aroundNumbers, headTerms, isRecorded } from "./around.js";
import { rowOf } from "./steps.js";
import { precise } from "./numbers.js";
import { inked, paragraph, signedBar, termList, termRow } from "./terms.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("around_details");

export const AROUND_DETAILS = {
  positions: positionDetails,
  norm: normDetails,
  query_norm: headNormDetails,
  key_norm: headNormDetails,
  concatenated: joinedDetails,
  written: writtenDetails,
};

function tokenOf({ queries, keys, cell }, rows = "query") {
  return `token ${cell[rows]} “${(rows === "key" ? keys : queries).short[cell[rows]]}”`;
}

function lengthOf(matrix, { cell }, width, rows = "query") {
  return Math.hypot(...rowOf(matrix, cell[rows], width));
}

function positionDetails(scene) {
  const { derived, layer, stage } = scene;
  const width = stage.width || layer.width;
  const [before, after] = [derived.before_positions, derived.positions].map((one) =>
    precise(lengthOf(one, scene, width)),
  );
  if (stage.captions.length === 0) {
    return [paragraph(say("length_vector", { scene: tokenOf(scene), after }))]; // the stream as it enters
  }
  const turned = say("rotation_changes_direction");
  return [
    paragraph(say("length_vector_before", { scene: tokenOf(scene), before, after })),
    ...(stage.quantity === "query" ? [paragraph(say("differ_rounding_only", { turned }))] : []),
  ];
}

function normDetails(scene) {
  const { derived, stage, layer, cell, order } = scene;
  const { mean, variance } = aroundNumbers(stage, layer, derived, cell, order);
  const [before, after] = [derived.before_norm, derived.norm].map((one) =>
    precise(lengthOf(one, scene, stage.width)),
  );
  const numbers = { mean, spread: Math.sqrt(variance) };
  const size = layer.around.norm.facts.measured.map(([word, name]) => `${word} ${precise(numbers[name])}`).join(", ");
  return [
    paragraph(say("before_norm_over", { scene: tokenOf(scene), size, width: stage.width })),
    paragraph(say("length_vector_before_after", { before, after })),
  ];
}

function headNormDetails(scene) {
  const { derived, layer, stage } = scene;
  const { name, rows } = stage;
  const [before, after] = [derived[`before_${name}`], derived[name]].map((one) =>
    precise(lengthOf(one, scene, layer.width, rows)),
  );
  const token = tokenOf(scene, rows);
  return [paragraph(say("length_head_before", { rows, token, before, after }))];
}

function joinedDetails(scene) {
  const { stage, layer, cell } = scene;
  const head = Math.floor(cell.dimension / stage.block);
  const first = head * stage.block;
  const zero = layer.ablated.includes(head) ? say("head_switched_off") : "";
  return [
    paragraph(
      say("columns_numbers_head", { first, block: first + stage.block - 1, block_2: stage.block, head }),
      `${tokenOf(scene)}.${zero}`,
    ),
  ];
}

/** What each head adds to the chosen number. */
function writtenDetails(scene) {
  const { layer, derived, stage, cell, order, palette } = scene;
  const { list, bias } = headTerms(layer, cell, order);
  const products = list.map(({ product }) => product);
  const largest = Math.max(...products.map(Math.abs), 1e-30);
  const rows = list.map(({ head, output, map, product }) => {
    const factors = [inked(output, palette.ink.output), inked(map)];
    return termRow(`H${head}`, [...factors, signedBar(product / largest, palette), inked(product)], head === cell.head);
  });
  const made = derived.written[cell.query * stage.width + cell.dimension];
  const sum = products.reduce((total, product) => total + product, 0) + bias;
  const source = isRecorded(layer) ? "The stream received" : "Computed with W_O";
  return [
    ...termList({
      head: say("heads_write", { length: list.length }),
      names: ["head", "|o|", "|W_O|", "", "o·W_O"],
      rows,
      values: products,
      total: `sum of ${list.length}`,
      scene,
    }),
    ...(bias ? [paragraph(`With the bias ${precise(bias)}: ${precise(sum)}.`)] : []),
    paragraph(`${source} ${precise(made)}: difference ${precise(Math.abs(made - sum))}.`),
    ...(isRecorded(layer)
      ? []
      : [paragraph(say("stream_receives_another"))]),
  ];
}
