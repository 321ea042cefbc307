// What a change is about: the one cell of which title, arcs, row and readout speak. `most_gained` of
// model/analysis/run_comparison.py chooses the same one.

const WORD = /[\p{L}\p{N}]/u;
const MARK = /^[\[<].*[\]>]$/;
const CLEAR = 0.05; // a gain from which on a cell of words comes before any cell of signs
export const SEEN = 0.005; // a smaller gain shows in no number with two decimals

/** For each token whether it is part of a text's words: a sign, such as a full stop, or a mark, such as [SEP], is no
 *  subject where a word can be it. */
export function areWords({ full }) {
  return full.map((label) => WORD.test(label) && !MARK.test(label));
}

/** The cell whose weight a change raised most, { query, key }: among those that it took out of the mask, where it took
 *  any, and among words, where one of these gained enough. Null where none gained. `row`: the only query, or null. */
export function subjectOf({ layer, derived, before, queries, keys }, row = null) {
  const words = { query: areWords(queries), key: areWords(keys) };
  const best = { freedWords: null, words: null, freed: null, all: null };
  const [first, last] = row === null ? [0, layer.queries] : [row, row + 1];
  for (let query = first; query < last; query++) {
    for (let key = 0; key < layer.keys; key++) {
      const at = query * layer.keys + key;
      const gain = derived.weights[at] - before.weights[at];
      const isFreed = Boolean(before.hidden?.[at] && !derived.hidden?.[at]);
      const take = (group) => gain > (best[group]?.gain ?? 0) && (best[group] = { query, key, gain });
      take("all");
      if (isFreed) take("freed");
      if (!words.query[query] || !words.key[key]) continue;
      take("words");
      if (isFreed) take("freedWords");
    }
  }
  const reaches = (least) => (found) => found !== null && found.gain >= least;
  const found = [best.freedWords, best.words].find(reaches(CLEAR)) ?? [best.freed, best.all].find(reaches(SEEN));
  return found ? { query: found.query, key: found.key } : null;
}

/** The other words that a change gave clearly more weight on the key of a cell, those with the largest gain first. */
export function alsoGained({ layer, derived, before, queries }, { query, key }, most = 2) {
  const gains = areWords(queries).map((isWord, other) => {
    const at = other * layer.keys + key;
    return { query: other, gain: isWord && other !== query ? derived.weights[at] - before.weights[at] : 0 };
  });
  return gains.filter(({ gain }) => gain >= CLEAR).sort((one, other) => other.gain - one.gain).slice(0, most).map((one) => one.query);
}

/** Whether a change moved any weight of the head so far that a number shows it. */
export function hasMoved({ derived, before }) {
  return derived.weights.some((weight, at) => Math.abs(weight - before.weights[at]) >= SEEN);
}

/** The token whose probability a change moved most, { position, before, after }; null where none is known or moved. */
export function mostMoved(sure) {
  if (!sure?.before || !sure.after) return null;
  const gap = (position) => Math.abs((sure.after[position] ?? 0) - (sure.before[position] ?? 0));
  const position = sure.after.reduce((most, _, one) => (gap(one) > gap(most) ? one : most), 0);
  return gap(position) >= SEEN ? { position, before: sure.before[position], after: sure.after[position] } : null;
}
