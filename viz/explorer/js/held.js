// Layers that came from Python, the last few of this visit. Python sends none of the last four again with its
// arrays, and the reader comes back to one at once. They outlive the explorer, which Streamlit may mount anew,
// with this script run anew.

import { decodeLayer } from "./derive.js";

const MOST = 6;
const MOST_GROUPS = 10;
const held = (globalThis[Symbol.for("attention-explorer-layers")] ??= new Map()); // by digest
const groups = (globalThis[Symbol.for("attention-explorer-groups")] ??= new Map()); // around heads, by part
const messages = (globalThis[Symbol.for("attention-explorer-messages")] ??= new Map()); // by run and layer
const ahead = (globalThis[Symbol.for("attention-explorer-ahead")] ??= new Map()); // by run and layer
const MOST_AHEAD = 4; // the switches of mask and scaling, each both ways
const OF_LAYER = ["layer", "baseline", "queries", "keys", "stages", "formulas", "code"];
const OF_RUN = [...OF_LAYER, "run", "device", "claims", "certificate", "check", "checked", "turns"];
const OF_HERO = ["change", "sure", "loss", "decimals", "ways"]; // the rest is of the head and the detail, which move

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

/** Keeps messages of runs to which a switch of the page may lead. */
export function keepAhead(messages) {
  for (const other of messages) keep(ahead, `${other.run} ${other.layer.name}`, other, MOST_AHEAD);
}

/** The message of another run of the shown layer, beside a message that is shown; null where it is not here. */
export function foreseen(message, run) {
  const other = ahead.get(`${run} ${message.layer.name}`);
  const hero = other && { ...message.hero, ...those(OF_HERO, other.hero) };
  const found = other && { ...message, ...those(OF_RUN, other), hero, ahead: [] };
  return found && layersOf(found) ? found : null;
}

function those(names, facts) {
  return Object.fromEntries(names.map((name) => [name, facts[name]]));
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
