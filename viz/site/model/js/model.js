// A shipped model in the reader's own browser, from any sentence to the message that the explorer draws.
//
// There is no library behind it: a pass is a handful of products, for which onnxruntime-web 1.30 would bring 14.2 MB of
// WebAssembly. With those of kernel.js, 0.7 kB, a pass over 36 tokens of House GPT takes 40 ms in Chromium and its
// message 15 ms; a sentence can be typed 1.2 s after the page is opened from the disk. With the products in plain loops
// a pass took 250 ms (two cores of a Xeon, shared with other work).

import { logProbabilities } from "./arithmetic.js";
import { checkOf, messageOf } from "./message.js";
import { checkChanges, checkConfig, pass, UNCHANGED } from "./pass.js";
import { ranksOf, Refusal, tokenizerOf } from "./tokenizers.js";
import { bytesOf, weightsOf } from "./weights.js";

export { Refusal };

const KEPT = 6; // runs
const NOTHING = /^[\p{White_Space}\x1c-\x1f]*$/u;
let models = 0;

/**
 * A model, ready to read sentences.
 *
 * parts: what `parts` of viz/site/model/parts.py makes. vocabulary: GPT-2's tokens as `vocabulary_script` there has
 * them, for a model with GPT-2's tokens. Raises an Error for a model that this code does not compute.
 */
export function openModel(parts, vocabulary = null) {
  checkConfig(parts.config);
  const ranks = vocabulary === null ? null : ranksOf(vocabulary);
  const { config, words, labels } = parts;
  const longest = 4 * Math.ceil(config.n_ctx / 4) * Math.max(config.d_model, config.d_mlp, config.d_vocab);
  const model = {
    ...{ config, words, labels },
    ...weightsOf(bytesOf(parts.weights), longest),
    tokenizer: tokenizerOf(parts.tokenizer, ranks),
  };
  const runs = new Map();
  const name = `browser ${(models += 1)}`;

  /** The ids of a text. Raises a Refusal, a sentence for the reader, for a text that the model does not read. */
  function idsOf(text) {
    if (NOTHING.test(text)) throw new Refusal("There is no text yet. Type a sentence.");
    const most = config.n_ctx;
    if (new TextEncoder().encode(text).length > most * model.tokenizer.longest) throw tooLong(`more than ${most}`);
    const ids = model.tokenizer.encode(text);
    if (ids.length > most) throw tooLong(ids.length.toLocaleString("en"));
    return ids;
  }

  function tooLong(count) {
    return new Refusal(`The text is ${count} tokens long; ${parts.name} reads at most ${config.n_ctx}. Shorten it.`);
  }

  /** The pass over a text, from the last few that are kept. */
  function runOf(text, changes) {
    const key = JSON.stringify([text, changes]);
    const run = runs.get(key) ?? { ...pass(model, idsOf(text), changes), name: `${name} ${(models += 1)}` };
    runs.delete(key);
    runs.set(key, run);
    if (runs.size > KEPT) runs.delete(runs.keys().next().value);
    return run;
  }

  function withOwn(changes) {
    checkChanges({ ...UNCHANGED, ...changes });
    return { ...UNCHANGED, ...changes };
  }
  const isChanged = (changes) => JSON.stringify(withOwn(changes)) !== JSON.stringify(UNCHANGED);

  return {
    /** The layers to choose from: name, label, title. */
    layers: words.base.layers,
    idsOf,
    /** Everything that a pass leaves behind (js/pass.js). */
    run: (text, changes = {}) => runOf(text, withOwn(changes)),
    /** What the explorer draws one layer from, beside the unchanged run where something is changed. layer: its
     *  number. changes: as `UNCHANGED` of js/pass.js has them. Raises a Refusal. */
    messageOf(text, changes = {}, layer = 0) {
      const baseline = isChanged(changes) ? runOf(text, UNCHANGED) : null;
      return messageOf(model, runOf(text, withOwn(changes)), baseline, layer);
    },
    /** What comes of a run: how probable each token was (null for the first), their mean −ln p in nats (null for one
     *  token), and the most probable next tokens, as { id, text, probability }. */
    outcomeOf(text, changes = {}, count = 5) {
      return outcome(model, runOf(text, withOwn(changes)), count);
    },
    check: (text, changes = {}) => checkOf(model, runOf(text, withOwn(changes))),
    /** How far the logits of the probe's last token are from PyTorch's, at most. */
    gapToPyTorch() {
      const { text, logits } = parts.probe;
      const expected = new Float32Array(bytesOf(logits).buffer);
      const last = runOf(text, UNCHANGED).logits.slice(-expected.length);
      return Math.max(...last.map((logit, n) => Math.abs(logit - expected[n])));
    },
  };
}

function outcome({ config, labels }, { ids, logits }, count) {
  const rows = ids.map((_, n) => logProbabilities(logits.subarray(n * config.d_vocab, (n + 1) * config.d_vocab)));
  const logs = ids.slice(1).map((id, n) => rows[n][id]);
  const last = rows.at(-1);
  const likely = Array.from(last.keys()).sort((a, b) => last[b] - last[a] || a - b).slice(0, count);
  return {
    sure: [null, ...logs.map(Math.exp)],
    loss: logs.length ? -logs.reduce((sum, log) => sum + log, 0) / logs.length : null,
    next: likely.map((id) => ({ id, text: labels.text[id], probability: Math.exp(last[id]) })),
  };
}
