// The words of a message, which Python has written for each case (viz/site/model/words.py).

import { sentenceCase } from "../../../explorer/js/elements.js";
import { UNCHANGED } from "./pass.js";

const LISTED = 4; // heads of a layer that are named one by one

/** The words about one layer of a run: a message without its numbers. */
export function wordsOf({ base, changes }, run, layer) {
  const { queries, keys, ablated } = run.layers[layer];
  const words = JSON.stringify(changed(base, partsOf({ changes }, run, layer)));
  const slots = { queries, keys, heads: `[${ablated.join(", ")}]` };
  return JSON.parse(words.replace(/@(queries|keys|heads)@/g, (_, name) => slots[name]));
}

/** What the words say of the layer itself, where no number of tokens stands. */
export function factsOf(words, run, layer) {
  const ofLayer = partsOf(words, run, layer).filter(([[part]]) => part === "layer");
  return changed({ layer: words.base.layer }, ofLayer).layer;
}

/** What differs from the base in a case, and in one of a text so short. */
function partsOf({ changes: cases }, { changes, layers }, layer) {
  const { place, keys, ablated } = layers[layer];
  const ways = { open: changes.mask === "none", unscaled: changes.scale === 1, ablated: ablated.length > 0 };
  const name = [place, ...Object.keys(ways).filter((way) => ways[way])].join(" ");
  const named = [name, `${name} ${keys}`, ...(changes.positions ? [] : [`${place} unplaced`])];
  return named.flatMap((one) => cases[one] ?? []);
}

/** Words with other ones at some paths. Only what is on a path is copied: all words of a message would take longer than
 *  its numbers. */
function changed(words, parts) {
  return parts.reduce((copy, [path, value]) => changedAt(copy, path, value), words);
}

function changedAt(words, [name, ...path], value) {
  const copy = Array.isArray(words) ? [...words] : { ...words };
  copy[name] = path.length ? changedAt(words[name], path, value) : value;
  return copy;
}

/** The tokens of a text as they are written beside a picture, and the number of each token's word
 *  (viz/notation/labels.py). */
export function labelsOf({ text, full, short, plotly }, ids) {
  const whole = (id) => full[id] ?? text[id];
  return {
    full: ids.map(whole),
    short: ids.map((id) => short[id] ?? whole(id)),
    plotly: ids.map((id) => plotly[id] ?? whole(id)),
    word: wordNumbers(ids.map((id) => text[id])),
  };
}

function wordNumbers(tokens) {
  const spaced = tokens.some((token) => /^[\p{White_Space}\x1c-\x1f]/u.test(token));
  const isLetter = /^[\p{L}\p{N}]/u;
  let number = 0;
  return tokens.map((token, at) => {
    const before = at ? tokens[at - 1] : "";
    const goesOn = spaced && (/[\p{L}\p{N}]$/u.test(before) || before === " ") && isLetter.test(token);
    if (at && !goesOn) number += 1;
    return number;
  });
}

/** What is changed, in words (viz/state/intervention_words.py). */
export function changeInWords({ said, heads }, { ablated, ...changes }) {
  const named = Object.keys(said).filter((name) => changes[name] !== UNCHANGED[name]).map((name) => said[name]);
  const layers = heads.families.flatMap((family) => family.layers).sort((a, b) => (a.name < b.name ? -1 : 1));
  const words = [...named, ...layers.flatMap((layer) => headsInWords(layer, ablated))].join(", ");
  return words && sentenceCase(words);
}

function headsInWords({ name, full }, ablated) {
  const heads = ablated.filter(([place]) => place === name).map(([, head]) => head);
  if (heads.length > LISTED) return [`${heads.length} heads of ${full} off`];
  return heads.sort((a, b) => a - b).map((head) => `${full}H${head} off`);
}
