// What a change is about: the one cell of which title, arcs, row and readout speak. As in
// model/analysis/run_comparison.py, whose `most_gained` chooses the same one.

const WORD = /[\p{L}\p{N}]/u;
const CLEAR = 0.05; // a gain from which on a cell of words comes before a larger one of signs
const SEEN = 0.005; // a smaller gain shows in no number

/** The cell whose weight a change raised most, { query, key }: among those that it freed, where it lifted a mask, and
 *  among words, where they gained enough to be seen. Null where none gained. `row`: the only query, or null. */
export function subjectOf({ layer, derived, before, queries, keys }, row = null) {
  const isWord = (labels) => labels.full.map((label) => WORD.test(label));
  const words = { query: isWord(queries), key: isWord(keys) };
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

/** The token whose probability a change moved most, { position, before, after }; null where none is known or moved. */
export function mostMoved(sure) {
  if (!sure?.before || !sure.after) return null;
  const gap = (position) => Math.abs((sure.after[position] ?? 0) - (sure.before[position] ?? 0));
  const position = sure.after.reduce((most, _, one) => (gap(one) > gap(most) ? one : most), 0);
  return gap(position) >= SEEN ? { position, before: sure.before[position], after: sure.after[position] } : null;
}
