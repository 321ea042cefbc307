// What the numbers of the chosen head say, in a sentence above the map. Tokens stand in it as chips: a bare full stop
// would be read as the sentence's own.

import { topPositions } from "./derive.js";
import { element, span } from "./elements.js";
import { simple } from "./numbers.js";
import { rowOf } from "./steps.js";
import { alsoGained, hasMoved } from "./subject.js";
import { isOneText } from "./view.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("headline");

const MOSTLY = 0.5; // a weight from which on a token attends mostly to one key

/** Writes the title. `scene`: of the shown run. */
export function drawHeadline(holder, scene) {
  writeParts(holder, scene.before ? changeInWords(scene) : [scene.isUnchanged ? "Before: " : "", ...rowInWords(scene)]);
}

/** Writes what else a change did; nothing where there is no change. */
export function drawAlso(holder, scene) {
  writeParts(holder, scene.before ? alsoInWords(scene) : []);
}

/** Writes parts: texts, tokens as chips, numbers. */
export function writeParts(holder, parts) {
  holder.hidden = !parts.length;
  if (holder.textContent === inPlain(parts)) return;
  holder.replaceChildren(...parts.map((part) => (part.axis ? chipOf(part) : part.number ? element("b", {}, part.number) : part)));
}

/** A token on a plate, in the tint of its axis. */
export function chipOf({ axis, token }) {
  return span(`chipped ${axis}`, token);
}

/** The parts as one text. */
export function inPlain(parts) {
  return parts.map((part) => part.token ?? part.number ?? part).join("");
}

export function chip(axis, labels, position) {
  return { axis, token: labels.short[position] };
}

/** What a row of weights says: “·Tom looks back at ·Hill: 0.89 of its attention.” */
export function rowInWords({ layer, derived, cell, queries, keys }) {
  const row = rowOf(derived.weights, cell.query, layer.keys);
  const [most] = topPositions(row, 1);
  const [query, key] = [chip("query", queries, cell.query), chip("key", keys, most)];
  const weight = { number: simple(row[most]) };
  if (!row[most]) return [query, say("may_look_nothing")];
  const isOne = isOneText(layer);
  if (isOne && most === cell.query) return [query, " looks at itself: ", weight, " of its attention."];
  const looks = !isOne ? "looks at" : most < cell.query ? "looks back at" : "looks ahead at";
  if (row[most] >= MOSTLY) return [query, ` ${looks} `, key, ": ", weight, " of its attention."];
  return [query, say("spreads_attention_largest"), weight, ", goes to ", key, "."];
}

/** What a change does to the chosen cell; plainly, where it moves no weight of the head. */
export function changeInWords(scene) {
  const { layer, derived, before, cell, queries, keys, hero } = scene;
  const name = `${hero.change || "Changed"}: `;
  if (!hasMoved(scene)) return [say("weight_head_changes", { name })];
  const at = cell.query * layer.keys + cell.key;
  const [was, now] = [before, derived].map(({ weights }) => simple(weights[at]));
  const gives = [name, chip("query", queries, cell.query), " gives ", { number: now }, say("attention"), chip("key", keys, cell.key)];
  if (isFreed(scene)) return [...gives, "."];
  if (derived.hidden?.[at] && !before.hidden?.[at]) return [...gives, say("now_hidden", { was })];
  return [...gives, was === now ? ", as before." : `, not ${was}.`];
}

/** Whether a change took the chosen cell out of the mask. */
function isFreed({ layer, derived, before, cell }) {
  const at = cell.query * layer.keys + cell.key;
  return Boolean(before.hidden?.[at] && !derived.hidden?.[at]);
}

/** What was before, who else looks at the same key now, and what becomes of the loss. */
function alsoInWords(scene) {
  const { layer, derived, cell, queries, keys, hero } = scene;
  const others = alsoGained(scene, cell).flatMap((query, n) => {
    const weight = simple(derived.weights[query * layer.keys + cell.key]);
    return [n ? " and " : " also gets ", { number: weight }, " from ", chip("query", queries, query)];
  });
  const [query, key] = [chip("query", queries, cell.query), chip("key", keys, cell.key)];
  const hid = isFreed(scene) ? [say("before_mask_hid"), key, " from ", query, ". "] : [];
  const also = [...hid, ...(others.length ? [key, ...others, ". "] : [])];
  if (!hero.loss?.before || !hero.loss.after) return also;
  const { before: first, after: then } = hero.loss;
  if (first === then) return [...also, say("loss_stays", { first })];
  const [old, late] = [first, then].map((loss) => (loss.startsWith("<") ? 0 : Number(loss)));
  return [...also, say("loss", { old: late > old ? "rises" : "falls", first }), { number: then }, "."];
}
