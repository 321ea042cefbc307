// Layers that came from Python, the last few of this visit. Python sends none of the last four again with its
// arrays, and the reader comes back to one at once. They outlive the explorer, which Streamlit may mount anew,
// with this script run anew.

import { decodeLayer } from "./derive.js";

const MOST = 6;
const held = (globalThis[Symbol.for("attention-explorer-layers")] ??= new Map()); // by digest
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
  keep(held, sent.digest, layer);
  return layer;
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
  const bare = ([name, fact]) => [name, ArrayBuffer.isView(fact) ? null : fact];
  return Object.fromEntries(Object.entries(facts).map(bare));
}

function keep(store, name, value) {
  store.delete(name);
  store.set(name, value);
  if (store.size > MOST) store.delete(store.keys().next().value);
}
