// What the numbers of the chosen head say, in a sentence above the map.

import { topPositions } from "./derive.js";
import { write } from "./elements.js";
import { isOneText } from "./groups.js";
import { simple } from "./numbers.js";
import { rowOf } from "./steps.js";

const MOSTLY = 0.5; // a weight from which on a token attends mostly to one key

/** Writes it. `scene`: of the shown run. */
export function drawHeadline(holder, scene) {
  holder.hidden = false;
  write(holder, scene.before ? changeInWords(scene) : `${scene.isUnchanged ? "Before: " : ""}${rowInWords(scene)}`);
}

/** What a row of weights says: “·Tom looks back at ·Hill: 0.89 of its attention.” */
export function rowInWords({ layer, derived, cell, queries, keys }) {
  const row = rowOf(derived.weights, cell.query, layer.keys);
  const [most] = topPositions(row, 1);
  const [query, key] = [queries.short[cell.query], keys.short[most]];
  const weight = simple(row[most]);
  if (!row[most]) return `${query} may look at nothing.`;
  const isOne = isOneText(layer);
  if (isOne && most === cell.query) return `${query} looks at itself: ${weight} of its attention.`;
  const looks = !isOne ? "looks at" : most < cell.query ? "looks back at" : "looks ahead at";
  if (row[most] >= MOSTLY) return `${query} ${looks} ${key}: ${weight} of its attention.`;
  return `${query} spreads its attention; the largest part, ${weight}, goes to ${key}.`;
}

/** What a change does to the chosen cell, and to the loss of the sentence. */
export function changeInWords({ layer, derived, before, cell, queries, keys, hero }) {
  const at = cell.query * layer.keys + cell.key;
  const [was, now] = [before, derived].map(({ weights }) => simple(weights[at]));
  const gives = `${queries.short[cell.query]} gives ${keys.short[cell.key]} ${now} of its attention`;
  const words = `${hero.change}: ${gives}${was === now ? ", as before" : `, not ${was}`}`;
  if (!hero.loss) return `${words}.`;
  const { before: first, after: then } = hero.loss;
  if (first === then) return `${words}; the loss stays at ${first}.`;
  const [old, late] = [first, then].map((loss) => (loss.startsWith("<") ? 0 : Number(loss)));
  return `${words}; the loss ${late > old ? "rises" : "falls"} from ${first} to ${then}.`;
}
