// The stages between the scaled scores and the mask that only some models have, in their order (model/nn/stages.py). Of
// a layer, `later` has the words of those that it has. A stage: its name, the field of a layer that it needs, `change`,
// a function of a score, its query and its key, `slots`, numbers for its formula, and `details`, what the panel says.

import { precise } from "./numbers.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("score_stages");

export const SCORE_STAGES = [
  {
    name: "capped",
    field: "cap",
    absent: say("run_not_cap_scores"),
    change: ({ cap }) => (score) => cap * Math.tanh(score / cap),
    slots: () => ({}),
    details: ({ layer }, before, after) => [
      say("cap_takes", { cap: layer.cap, before: precise(before), after: precise(after) }) +
        `${precise(Math.abs(before - after))} closer to 0.`,
      say("tanh_almost_straight"),
    ],
  },
  {
    name: "biased",
    field: "bias",
    absent: say("run_adds_bias"),
    change: (layer, head) => {
      const bias = biasOf(layer, head);
      return (score, query, key) => score + bias(query, key);
    },
    slots: (layer, { head, query, key }) => ({ bias: biasOf(layer, head)(query, key) }),
    details: ({ layer, cell, tokenName }) => {
      const away = cell.query - cell.key;
      const tokens = Math.abs(away) === 1 ? "1 token" : `${Math.abs(away)} tokens`;
      const where = away === 0 ? say("query_own_place") : `${tokens} ${away > 0 ? "before" : "after"} the query`;
      const added = precise(biasOf(layer, cell.head)(cell.query, cell.key));
      return [
        say("key_stands_head", { where, token_name: tokenName("query"), token_name_2: tokenName("key"), added }),
        ...(layer.biasBy === "distance" ? [say("depends_distance_only")] : []),
      ];
    },
  },
];

/** What is added to the score of a query and a key of a head. viz/explorer/layer.py says how it is sent. */
function biasOf({ bias, biasBy, biasSizes, first, queries, keys }, head) {
  if (bias === null) return () => 0;
  const [heads, rows] = biasSizes;
  const start = (heads > 1 ? head - first : 0) * (biasBy === "distance" ? queries + keys - 1 : rows * keys);
  if (biasBy === "distance") return (query, key) => bias[start + key - query + queries - 1];
  return (query, key) => bias[start + (rows > 1 ? query * keys : 0) + key];
}

/** Scores after a stage, which are those before it where a layer does not have it. They begin with a query's from the
 *  key `first` on, and go on for `count` keys of each query. */
export function changedBy(stage, scores, layer, head, query = 0, first = 0, count = layer.keys) {
  if (layer[stage.field] === null) return scores;
  const change = stage.change(layer, head);
  return scores.map((score, cell) => change(score, query + Math.floor(cell / count), first + (cell % count)));
}
