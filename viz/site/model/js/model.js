// A shipped model in the reader's own browser, from any sentence to the message that the explorer draws.
//
// There is no library behind it: a pass is a handful of products, for which onnxruntime-web 1.30 would bring 14.2 MB of
// WebAssembly. With those of kernel.js, 0.7 kB, a pass over 36 tokens of House GPT takes 40 ms in Chromium and its
// message 15 ms; a sentence can be typed 1.2 s after the page is opened from the disk. With the products in plain loops
// a pass took 250 ms (two cores of a Xeon, shared with other work).

import { magnitude } from "../../../explorer/js/numbers.js";
import { headsOf, messageOf } from "./message.js";
import { outcomesOf } from "./outcome.js";
import { checkChanges, checkConfig, pass, translated, UNCHANGED } from "./pass.js";
import { ranksOf, Refusal, tokenizerOf } from "./tokenizers.js";
import { weightsOf } from "./weights.js";
import { labelsOf } from "./words.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("model");

const KEPT = 6; // runs
const NOTHING = /^[\p{White_Space}\x1c-\x1f]*$/u;
let models = 0;

/**
 * A model, ready to read sentences.
 *
 * parts, vocabulary: what `parts` and `vocabulary` of viz/site/model/parts.py make; a model without GPT-2's tokens
 * needs no vocabulary. Raises an Error for a model that this code does not compute.
 */
export function openModel(parts, vocabulary = null) {
  checkConfig(parts.config);
  const ranks = vocabulary && ranksOf(vocabulary.tokens);
  const { config, words, labels, heads, said } = parts;
  const longest = 4 * Math.ceil(config.n_ctx / 4) * Math.max(config.d_model, config.d_mlp, config.d_vocab);
  const model = {
    ...{ config, words, labels, heads, said },
    ...weightsOf(parts.weights, longest),
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
    return new Refusal(say("text_tokens_long", { count, name: parts.name, ctx: config.n_ctx }));
  }

  /** What each stack reads. A changed run has the translation of the unchanged one, so that the two can be laid side by
   *  side. */
  function tokensOf(text, changes) {
    const ids = idsOf(text);
    if (config.shape === "decoder") return { decoder: ids };
    if (isChanged(changes)) return runOf(text, UNCHANGED).tokens;
    return { encoder: ids, decoder: translated(model, ids, model.tokenizer.ends) };
  }

  /** The pass over a text, from the last few that are kept. */
  function runOf(text, changes) {
    const key = JSON.stringify([text, changes]);
    const run = runs.get(key) ?? { ...pass(model, tokensOf(text, changes), changes), name: `${name} ${(models += 1)}` };
    runs.delete(key);
    runs.set(key, run);
    if (runs.size > KEPT) runs.delete(runs.keys().next().value);
    return run;
  }

  /** How far the logits of the probe's last token are from PyTorch's, at most. */
  function gapToPyTorch() {
    const { text, logits } = parts.probe;
    const last = runOf(text, UNCHANGED).logits.slice(-logits.length);
    return Math.max(...last.map((logit, n) => Math.abs(logit - logits[n])));
  }
  let where = null; // the pass ran, and how near to PyTorch

  function recordingOf(run, baseline) {
    const { heroesOf, outcome } = outcomesOf(model, run, baseline);
    where ??= say("device_browser_logits", { text: parts.probe.text, gap_to_py_torch: magnitude(gapToPyTorch()) });
    const layers = run.layers.map((layer, number) => {
      const message = messageOf(model, run, baseline, number);
      const [first, ...others] = message.stages;
      return { ...message, stages: [{ ...first, step: "" }, ...others], heroes: heroesOf(layer), claims: [], device: where };
    });
    const [tokens, targets = []] = Object.values(run.tokens).map((ids) => labelled(labels, ids));
    return { run: run.name, layers, heads: headsOf(model, run), tokens, targets, outcome, where };
  }

  return {
    idsOf,
    /** Everything that a pass leaves behind (js/pass.js). */
    run: (text, changes = {}) => runOf(text, withOwn(changes)),
    /** What a page draws from, as viz/site/recording.py records it. changes: as `UNCHANGED` of js/pass.js has them.
     *  Raises a Refusal. */
    recordingOf(text, changes = {}) {
      const run = runOf(text, withOwn(changes));
      return (run.recording ??= recordingOf(run, isChanged(changes) ? runOf(text, UNCHANGED) : null));
    },
    gapToPyTorch,
  };
}

function withOwn(changes) {
  checkChanges({ ...UNCHANGED, ...changes });
  return { ...UNCHANGED, ...changes };
}

function isChanged(changes) {
  return JSON.stringify(withOwn(changes)) !== JSON.stringify(UNCHANGED);
}

/** Tokens with their ids. */
function labelled(labels, ids) {
  const { full } = labelsOf(labels, ids);
  return ids.map((id, n) => [full[n], id]);
}
