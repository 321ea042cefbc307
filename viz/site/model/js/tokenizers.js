// From a text to ids, as model/run/tokenizers.py does it: some of GPT-2's tokens and all bytes, or a closed list of
// words. What a text says is never read as a special token.

const PIECES = [
  String.raw`'(?:[sdmt]|ll|ve|re)`,
  String.raw` ?\p{L}+`,
  String.raw` ?\p{N}+`,
  String.raw` ?[^\p{White_Space}\p{L}\p{N}]+`,
  String.raw`\p{White_Space}+(?!\P{White_Space})`,
  String.raw`\p{White_Space}+`,
];
const SPLIT = new RegExp(PIECES.join("|"), "gu"); // what JavaScript calls \s is not quite what others do
const WORD = /[\p{L}\p{N}_]+'|[\p{L}\p{N}_]+|<[\p{L}\p{N}_]+>|[^\p{L}\p{N}_\p{White_Space}\x1c-\x1f]/gu;
const BYTES = 256;

/** A sentence for the reader, why a text is not run. */
export class Refusal extends Error {}

/** The rank of each of GPT-2's tokens, which are listed in this order. A token is a string with a letter for each byte. */
export function ranksOf(tokens) {
  return new Map(tokens.map((token, rank) => [token, rank]));
}

/** What gives the ids of a text: `encode`, which raises a Refusal, and `longest`, the bytes that one id stands for at
 *  most; of a translator also `ends`, the ids between which a translation stands. description: of the tokenizer.json of a shipped model. ranks: GPT-2's, where it needs them. */
export function tokenizerOf(description, ranks) {
  return description.kind === "words" ? wordTokenizer(description) : subset(description, ranks);
}

function subset({ kept }, ranks) {
  const letter = (byte) => String.fromCharCode(byte);
  const every = Array.from({ length: BYTES }, (_, byte) => ranks.get(letter(byte)));
  const all = [...new Set([...kept, ...every])].sort((a, b) => a - b);
  const compact = new Map(all.map((rank, id) => [rank, id]));
  let longest = 0;
  for (const [token, rank] of ranks) if (compact.has(rank)) longest = Math.max(longest, token.length);
  const spelled = (token) => {
    const id = compact.get(ranks.get(token));
    return id === undefined ? Array.from(token, (byte) => compact.get(ranks.get(byte))) : [id];
  };
  const encode = (text) => {
    const pieces = text.toWellFormed().match(SPLIT) ?? [];
    return pieces.flatMap((piece) => merged(bytesOf(piece), ranks).flatMap(spelled));
  };
  return { encode, longest };
}

/** A letter for each byte of a text's UTF-8. */
function bytesOf(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

/** The tokens of a piece: the neighbours whose token has the lowest rank become one, again and again, the first of
 *  equal ones first (Sennrich et al. 2016). */
function merged(piece, ranks) {
  if (ranks.has(piece)) return [piece];
  const parts = Array.from(piece);
  const rank = (at) => ranks.get(parts[at] + parts[at + 1]) ?? Infinity;
  const pairs = parts.slice(1).map((_, at) => rank(at));
  for (;;) {
    let best = 0;
    for (let at = 1; at < pairs.length; at++) if (pairs[at] < pairs[best]) best = at;
    if (!(pairs[best] < Infinity)) return parts;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
    pairs.splice(best, 1);
    if (best > 0) pairs[best - 1] = rank(best - 1);
    if (best < pairs.length) pairs[best] = rank(best);
  }
}

function wordTokenizer({ words, start, end }) {
  const ids = new Map(words.map((word, id) => [word, id]));
  const encode = (text) => {
    const split = text.toWellFormed().toLowerCase().replaceAll("’", "'").match(WORD) ?? [];
    const unknown = [...new Set(split.filter((word) => !ids.has(word)))];
    if (unknown.length) throw new Refusal(`This model does not know ${unknown.map((word) => `“${word}”`).join(", ")}.`);
    return split.map((word) => ids.get(word));
  };
  const ends = { start: ids.get(start), end: ids.get(end) };
  return { encode, ends, longest: Infinity }; // a word may stand among any number of spaces
}
