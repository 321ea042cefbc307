// Layers that came from Python, the last few of this visit: Python sends none of the last four again with its
// arrays. They outlive the explorer, which Streamlit may mount anew, with this script run anew.

import { decodeLayer } from "./derive.js";

const MOST = 6;
const held = (globalThis[Symbol.for("attention-explorer-layers")] ??= new Map()); // by digest

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
  held.delete(sent.digest);
  held.set(sent.digest, layer);
  if (held.size > MOST) held.delete(held.keys().next().value);
  return layer;
}
