// What comes of a run: how sure the model was of each token, the loss of the text, and the next token, with those of
// the unchanged run (viz/views/home/outcome.py). Numbers are printed with the decimals that are certain.

import { logOfSum } from "./arithmetic.js";
import { changeInWords } from "./words.js";

const DECIMALS = { simple: 2, full: 3 }; // of a probability, by detail
const LISTED = 5; // next tokens
const MOST = 4; // decimals of a loss
const SINGLE = 2 ** -23; // by which a number of 32 bits is rounded at most
const READ = 64; // rows of logits whose largest number counts

/** For each detail the outcome, and `heroesOf`, which gives the heroes beside a layer. */
export function outcomesOf(model, run, baseline) {
  const change = changeInWords(model, run.changes);
  const [after, before] = [run, baseline].map((one) => one && factsOf(model, one));
  const error = Math.max(after.error, before?.error ?? 0);
  const ofDetail = (decimals) => {
    const certain = Math.max(error, 5 * 10 ** -(decimals + 1));
    const mean = (facts) => facts && facts.loss !== null ? fixed(Math.max(facts.loss, 0), settled(certain)) : null;
    const hasLoss = after.loss !== null;
    return {
      change,
      sure: hasLoss ? { before: before && before.sure, after: after.sure } : null,
      loss: hasLoss ? { before: mean(before), after: mean(after) } : null,
      decimals: Math.min(settled(error), decimals),
      ...{ opens: false, ways: {}, job: "" },
    };
  };
  const heroes = mapped(DECIMALS, (decimals, detail) => ({ ...ofDetail(decimals), detail }));
  const heroesOf = ({ kind }) => (kind === "causal" ? heroes : mapped(heroes, (hero) => ({ ...hero, sure: null })));
  return { heroesOf, outcome: mapped(heroes, (hero) => nextOf(model, run, before, after, hero)) };
}

/** How probable each token was (null for the first), the mean of their −ln p in nats (null of one token), the
 *  probabilities of the next token, and how far rounding may move the logarithm of one. Computed once. */
function factsOf({ config }, run) {
  return (run.facts ??= makeFacts(config, run));
}

function makeFacts({ d_vocab: size, d_model: width, heads }, run) {
  const { tokens: { decoder: ids }, logits } = run;
  const rowOf = (n) => logits.subarray(n * size, (n + 1) * size);
  const logs = ids.slice(1).map((id, n) => rowOf(n)[id] - logOfSum(rowOf(n)));
  const last = rowOf(ids.length - 1);
  const whole = logOfSum(last);
  return {
    sure: [null, ...logs.map(Math.exp)],
    loss: logs.length ? -logs.reduce((sum, log) => sum + log, 0) / logs.length : null,
    next: Float64Array.from(last).map((logit) => Math.exp(logit - whole)),
    error: roundingOf(run, width / heads, logits.subarray(-READ * size)),
  };
}

/** How far rounding may move a log probability of a run (`rounding` in model/analysis/run_comparison.py). */
function roundingOf({ layers, changes }, width, logits) {
  const scores = layers.map(({ query, key, heads }) => {
    const [queries, keys] = [query, key].map((array) => longestOf(array, heads, width));
    const scale = changes.scale ?? 1 / Math.sqrt(width);
    return Math.max(1, ...queries.map((length, head) => length * keys[head] * scale));
  });
  const largest = logits.reduce((most, logit) => Math.max(most, Math.abs(logit)), 0);
  return SINGLE * scores.reduce((sum, score) => sum + score, 0) * largest;
}

/** The length of each head's longest vector. */
function longestOf(array, heads, width) {
  const longest = Array(heads).fill(0);
  const each = array.length / heads;
  for (let start = 0; start < array.length; start += width) {
    let squares = 0;
    for (let at = start; at < start + width; at++) squares += array[at] ** 2;
    const head = Math.floor(start / each);
    longest[head] = Math.max(longest[head], Math.sqrt(squares));
  }
  return longest;
}

/** The likeliest next tokens of either run. */
function nextOf({ labels }, { tokens: { decoder: ids } }, before, after, { decimals, loss }) {
  const [old, now] = [(before ?? after).next, after.next];
  const whole = (id) => labels.full[id] ?? labels.text[id];
  const rows = likeliest(old, now).map((id) => ({
    token: (labels.short[id] ?? whole(id)).replace(/[\u2068\u2069]/g, ""), // alone in its cell, isolated anyway
    ...{ before: old[id], after: now[id] },
    ...{ was: fixed(old[id], decimals), now: fixed(now[id], decimals) },
  }));
  return { last: whole(ids.at(-1)), rows, changed: before !== null, loss };
}

/** The tokens with the largest probability in either run, the first of equal ones first. */
function likeliest(old, now) {
  const best = []; // ids, the likeliest first
  const share = (id) => Math.max(old[id], now[id]);
  for (let id = 0; id < now.length; id++) {
    if (best.length === LISTED && share(id) <= share(best.at(-1))) continue;
    const place = best.findIndex((other) => share(id) > share(other));
    best.splice(place < 0 ? best.length : place, 0, id);
    best.length = Math.min(best.length, LISTED);
  }
  return best;
}

/** How many decimals are certain, given an error (viz/notation/numbers.py). */
function settled(error) {
  return error <= 0 ? MOST : Math.min(Math.max(-Math.ceil(Math.log10(error)), 0), MOST);
}

/** A number with so many decimals; "<0.001" where they would show a 0 that it is not. */
function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  return value <= 0 || Number(text) ? text : `<${(10 ** -decimals).toFixed(decimals)}`;
}

function mapped(record, change) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
}
