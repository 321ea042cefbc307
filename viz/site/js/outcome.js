// What comes of a run: the likeliest next tokens as bars, and the loss of the sentence (viz/views/home/outcome.py).

import { element, span } from "../../explorer/js/elements.js";

const LOSS = "The mean of −ln p over the sentence's own tokens, in nats: 0 where each is certain.";

/** `detail`: "simple" or "full". */
export function outcomeOf(run, detail) {
  const outcome = run.outcome[detail];
  if (!outcome.rows) return vectorOf(outcome);
  const { last, rows, changed, loss } = outcome;
  const caption = element("caption", {}, "Next after ", element("code", {}, last));
  const body = element("tbody", {}, ...rows.map((row) => rowOf(row, changed)));
  const parts = [element("table", { class: "outcome" }, caption, body)];
  if (loss) {
    const words = [loss.before, loss.after].filter((one) => one !== null).join(" → ");
    parts.push(
      element("p", { class: "outcome", title: LOSS }, "Loss", span("", " per token"), " ", element("b", {}, words), " nats"),
    );
  }
  return parts;
}

function rowOf({ token, before, after, was, now }, changed) {
  const bar = (name, share) => element("i", { class: name, style: `--share:${share}` });
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, token),
    element("td", { class: "bar" }, changed ? bar("ghost", before) : null, bar("now", after)),
    element("td", {}, span("now", now), changed ? span("then", was) : null),
    element("td", {}, changed ? element("small", {}, `was ${was}`) : null),
  );
}

function vectorOf({ cosine }) {
  const words = cosine
    ? `Vector of the sentence: cosine ${cosine} with the one before`
    : "This model predicts no next token. It makes one vector of the sentence.";
  return [element("p", { class: "outcome" }, words)];
}
