// What the numbers of the chosen head say, in a sentence above the map. Tokens stand in it as chips: a bare full stop
// would be read as the sentence's own.

import { topPositions } from "./derive.js";
import { element, span } from "./elements.js";
import { isOneText } from "./groups.js";
import { simple } from "./numbers.js";
import { rowOf } from "./steps.js";

const MOSTLY = 0.5; // a weight from which on a token attends mostly to one key

/** Writes it. `scene`: of the shown run. */
export function drawHeadline(holder, scene) {
  holder.hidden = false;
  const parts = scene.before ? changeInWords(scene) : [scene.isUnchanged ? "Before: " : "", ...rowInWords(scene)];
  const text = inPlain(parts);
  if (holder.textContent === text) return;
  holder.replaceChildren(...parts.map((part) => (part.axis ? span(`chipped ${part.axis}`, part.token) : chipless(part))));
}

function chipless(part) {
  return typeof part === "string" ? part : element("b", {}, part.number);
}

/** The parts as one text. */
export function inPlain(parts) {
  return parts.map((part) => part.token ?? part.number ?? part).join("");
}

/** What a row of weights says: “·Tom looks back at ·Hill: 0.89 of its attention.” */
export function rowInWords({ layer, derived, cell, queries, keys }) {
  const row = rowOf(derived.weights, cell.query, layer.keys);
  const [most] = topPositions(row, 1);
  const [query, key] = [chip("query", queries, cell.query), chip("key", keys, most)];
  const weight = { number: simple(row[most]) };
  if (!row[most]) return [query, " may look at nothing."];
  const isOne = isOneText(layer);
  if (isOne && most === cell.query) return [query, " looks at itself: ", weight, " of its attention."];
  const looks = !isOne ? "looks at" : most < cell.query ? "looks back at" : "looks ahead at";
  if (row[most] >= MOSTLY) return [query, ` ${looks} `, key, ": ", weight, " of its attention."];
  return [query, " spreads its attention; the largest part, ", weight, ", goes to ", key, "."];
}

/** What a change does to the chosen cell. Where it leaves the cell as it was, the loss of the sentence tells. */
export function changeInWords({ layer, derived, before, cell, queries, keys, hero }) {
  const at = cell.query * layer.keys + cell.key;
  const [was, now] = [before, derived].map(({ weights }) => simple(weights[at]));
  const [query, key] = [chip("query", queries, cell.query), chip("key", keys, cell.key)];
  const gives = [`${hero.change}: `, query, " gives ", { number: now }, " of its attention to ", key];
  if (before.hidden?.[at] && !derived.hidden?.[at]) return [...gives, ", which was hidden."];
  if (derived.hidden?.[at] && !before.hidden?.[at]) return [...gives, `, now hidden; it was ${was}.`];
  if (was !== now) return [...gives, `, not ${was}.`];
  if (!hero.loss || hero.loss.before === hero.loss.after) return [...gives, ", as before."];
  const { before: first, after: then } = hero.loss;
  const [old, late] = [first, then].map((loss) => (loss.startsWith("<") ? 0 : Number(loss)));
  return [...gives, `, as before; the loss ${late > old ? "rises" : "falls"} from ${first} to `, { number: then }, "."];
}

function chip(axis, labels, position) {
  return { axis, token: labels.short[position] };
}
