// What comes of a run: the loss of the sentence, large, and the likeliest next tokens as bars, what a change moved most
// first (viz/views/home/outcome.py).

import { element, span } from "../../explorer/js/elements.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("outcome");

const LOSS = say("mean_ln_p_over_sentence");
const COSINE = say("mean_tokens_last");

/** `detail`: "simple" or "full". */
export function outcomeOf(run, detail) {
  const outcome = run.outcome[detail];
  if (!outcome.rows) return vectorOf(outcome);
  const { last, changed, loss } = outcome;
  const hasMoved = changed && outcome.rows.some(isMoved);
  const by = ({ before, after }) => Math.abs(after - before);
  const rows = hasMoved ? outcome.rows.toSorted((one, other) => by(other) - by(one)) : outcome.rows;
  const same = changed && !hasMoved ? ": as before" : "";
  const caption = element("caption", {}, "Next after ", element("code", {}, last), ", probability", same);
  const body = element("tbody", {}, ...rows.map((row) => rowOf(row, changed)));
  const table = element("table", { class: "outcome" }, caption, body);
  return loss ? [largeOf("Loss per token", loss.before, loss.after, LOSS), table] : [table];
}

/** The number that a change moves: what it was, then what it is, large. */
function largeOf(name, was, now, title) {
  const before = was === null ? [] : [span("was", `${was} → `)];
  const number = element("span", was === null ? {} : { "data-was": was }, now);
  const kind = `outcome large ${was === null ? "" : "moved"}`;
  return element("p", { class: kind, title }, element("small", {}, name), element("b", {}, ...before, number));
}

const isMoved = ({ was, now }) => was !== now;

function rowOf({ token, before, after, was, now }, changed) {
  const bar = (name, share) => element("i", { class: name, style: `--share:${share}` });
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, token),
    element("td", { class: "bar" }, changed ? bar("ghost", before) : null, bar("now", after)),
    element("td", {}, span("now", now), changed ? span("then", was) : null),
    element("td", {}, changed && isMoved({ was, now }) ? element("small", {}, `was ${was}`) : null),
  );
}

function vectorOf({ cosine }) {
  if (cosine) return [largeOf(say("vector_sentence_cosine"), "1", cosine, COSINE)];
  return [element("p", { class: "outcome" }, say("model_predicts_next"))];
}
