// Tokens that count as one: each by itself, or those of a word together. A word attends to another with the mean
// over its own tokens of what they give to the other's tokens together.

/** The groups of a line of tokens, each a list of positions. `word`: the number of each token's word. */
export function groupsOf(word, unit) {
  const groups = [];
  word.forEach((number, position) => {
    if (unit === "word" && position > 0 && number === word[position - 1]) groups.at(-1).push(position);
    else groups.push([position]);
  });
  return groups;
}

/** The number of the group that a position is in. */
export function groupAt(groups, position) {
  return groups.findIndex((group) => group.includes(position));
}

/** What some queries give to some keys together: their mean. */
export function meanWeight(weights, keyCount, queries, keys) {
  let sum = 0;
  for (const query of queries) for (const key of keys) sum += weights[query * keyCount + key];
  return sum / queries.length;
}

/** Whether one line of tokens is queries and keys. */
export function isOneText({ kind, queries, keys }) {
  return kind !== "cross" && queries === keys;
}
