// The chosen row beside the map, key by key: of a stage of scores its numbers, else the weights.

import { topPositions } from "./derive.js";
import { button, element, sentenceCase, span } from "./elements.js";
import { precise } from "./numbers.js";
import { rowOf } from "./steps.js";
import { bar, inked, paragraph, signedBar } from "./terms.js";
import { SINK } from "./view.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("row");

const [FEWEST, LISTED] = [5, 14]; // keys: where there is little room, and at most
const [KEY, OTHERS] = [24, 150]; // pixels of a key, and of what else stands beside a map
const SEEN = 0.005; // a smaller weight is counted, not listed

/** `scene`: of the shown run. `room`: pixels of the map that it stands beside, or infinite. Clicking a key chooses it. */
export function drawRow(holder, scene, room) {
  const most = Math.min(Math.max(Math.floor((room - OTHERS) / KEY), FEWEST), LISTED);
  const { stage, queries, cell } = scene;
  const isOfScores = stage.quantity === "score" && !stage.group;
  const { items, rest } = isOfScores ? scoresOf(scene, most) : weightsOf(scene, most);
  holder.replaceChildren(
    element("h3", {}, isOfScores ? `${sentenceCase(stage.cell)}s of ` : "Row of ", span("chipped query", queries.short[cell.query])),
    items.length ? element("ol", {}, ...items) : paragraph(say("every_key_query")),
    ...(rest ? [element("p", { class: "rest" }, rest)] : []),
  );
}

function weightsOf(scene, most) {
  const { layer, derived, cell, palette } = scene;
  const weights = rowOf(derived.weights, cell.query, layer.keys);
  const listed = topPositions(weights, most).filter((key) => weights[key] >= SEEN);
  const items = listed.map((key, rank) => line(scene, { key, rank, number: weights[key], drawn: bar(weights[key], palette.hue.weight), ink: palette.ink.weight }));
  if (derived.sink !== null) items.push(sinkLine(derived.sinkWeights[cell.query], scene));
  const others = Array.from(weights).filter((weight, key) => weight > 0 && !listed.includes(key));
  const largest = Math.max(...others);
  const small = largest < SEEN ? "below 0.01" : `of at most ${scene.written(largest)}`;
  return { items, rest: others.length ? `and ${others.length} more ${small}` : "" };
}

/** In the order of the text, so that a key stays where it is from stage to stage. A row has one length for its
 *  largest number, so that its bars keep theirs when all are divided. */
function scoresOf(scene, most) {
  const { stage, layer, derived, cell, palette } = scene;
  const numbers = derived.row(stage.name, cell.query);
  const sizes = Array.from(derived.row("scores", cell.query), Math.abs);
  const listed = topPositions(sizes, most).sort((one, other) => one - other);
  const isMasked = (key) => stage.name === "masked" && derived.hidden?.[cell.query * layer.keys + key];
  const largest = Math.max(...listed.filter((key) => !isMasked(key)).map((key) => Math.abs(numbers[key])), Number.MIN_VALUE);
  const items = listed.map((key, rank) => {
    const drawn = isMasked(key) ? span("bar masked") : signedBar(numbers[key] / largest, palette);
    return line(scene, { key, rank, number: numbers[key], drawn, ink: palette.ink.score });
  });
  const left = numbers.length - listed.length;
  return { items, rest: left ? `and ${left} more` : "" };
}

function line({ keys, cell, written, change }, { key, rank, number, drawn, ink }) {
  const label = `Key ${key} ${keys.full[key]}, ${precise(number)}`;
  const look = { class: key === cell.key && "chosen", "aria-label": label };
  const choose = () => change({ key });
  return element("li", {}, button(`top-key-${rank}`, choose, look, span("token", keys.short[key]), drawn, inked(number, ink, written)));
}

/** What the sink takes of the row. */
function sinkLine(weight, { palette, written }) {
  const share = [bar(weight, palette.hue.weight), inked(weight, palette.ink.weight, written)];
  return element("li", { class: "sink", "data-testid": "sink" }, span("token", SINK), ...share);
}
