// Layers that came from Python, the last few of this visit. Python sends none of the last four again with its
// arrays, and the reader comes back to one at once. They outlive the explorer, which Streamlit may mount anew,
// with this script run anew.

import { decodeLayer } from "./derive.js";

const MOST = 6;
const MOST_GROUPS = 10;
const held = (globalThis[Symbol.for("attention-explorer-layers")] ??= new Map()); // by digest
const groups = (globalThis[Symbol.for("attention-explorer-groups")] ??= new Map()); // around heads, by part
const messages = (globalThis[Symbol.for("attention-explorer-messages")] ??= new Map()); // by run and layer
const OF_LAYER = ["layer", "baseline", "queries", "keys", "stages", "formulas", "code"];

/** The layer of a message and its baseline, if it has one; null where one is said to be here and is not. */
export function layersOf(message) {
  const layer = layerOf(message.layer);
  const baseline = message.baseline && layerOf(message.baseline);
  return layer === null || (message.baseline && baseline === null) ? null : { layer, baseline };
}

function layerOf(sent) {
  const here = held.get(sent.digest);
  const enough = here && (here.value !== null || !sent.complete);
  if (!enough && sent.query === null) return null;
  const layer = enough ? here : decodeLayer(sent);
  layer.around = groupsOf(sent.around);
  if (layer.around === null) return null;
  keep(held, sent.digest, layer);
  return layer;
}

/** The groups of what stands around the heads, with their arrays where they have arrived; null where one is said to
 *  be here and is not. */
function groupsOf(sent) {
  const found = Object.entries(sent).map(([name, group]) => [name, groupOf(group)]);
  return found.some(([, group]) => group === null) ? null : Object.fromEntries(found);
}

function groupOf(sent) {
  const group = sent.numbers ? sent : (groups.get(sent.part) ?? (sent.held ? null : sent));
  if (group?.numbers) keep(groups, sent.part, group, MOST_GROUPS);
  return group;
}

/** Keeps what a message says of its layer. */
export function remember(message) {
  const said = OF_LAYER.map((name) => [name, withoutArrays(message[name])]);
  keep(messages, `${message.run} ${message.layer.name}`, Object.fromEntries(said));
}

/** The message of another layer of the same run that has been here; null where it is here no longer. */
export function remembered(message, name) {
  const said = messages.get(`${message.run} ${name}`);
  return said && layersOf(said) ? { ...message, ...said } : null;
}

function withoutArrays(facts) {
  if (facts === null || Array.isArray(facts)) return facts;
  const bare = ([name, fact]) => [name, ArrayBuffer.isView(fact) ? null : name === "around" ? later(fact) : fact];
  return Object.fromEntries(Object.entries(facts).map(bare));
}

/** The groups without their arrays. */
function later(around) {
  const bare = ([name, { part }]) => [name, { part, held: false, facts: null, numbers: null }];
  return Object.fromEntries(Object.entries(around).map(bare));
}

function keep(store, name, value, most = MOST) {
  store.delete(name);
  store.set(name, value);
  if (store.size > most) store.delete(store.keys().next().value);
}
