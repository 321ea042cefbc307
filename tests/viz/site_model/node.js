// Does in Node what a job asks of a browser's model: node node.mjs JOB.json. Prints JSON; arrays go to a file, one
// after the other.

import { readFileSync, writeFileSync } from "node:fs";

import { openModel } from "../../../viz/site/model/js/model.js";
import { ranksOf, tokenizerOf } from "../../../viz/site/model/js/tokenizers.js";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const parts = JSON.parse(readFileSync(job.parts, "utf8"));
const vocabulary = readFileSync(job.vocabulary, "utf8");
const model = openModel(parts, vocabulary);
const tokenizer = tokenizerOf(parts.tokenizer, ranksOf(vocabulary));

/** What a call gives, or the sentence of its refusal. */
function told(call) {
  try {
    return call();
  } catch (error) {
    return { refusal: error.message };
  }
}

/** Every array in a value, by its path. */
function arrays(value, path = []) {
  if (value instanceof Float32Array) return [[path.join("/"), value]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, part]) => arrays(part, [...path, name]));
}

const written = [];
const runs = job.runs.map(({ text, changes }) => {
  const found = arrays(model.run(text, changes));
  for (const [, array] of found) written.push(Buffer.from(array.buffer, array.byteOffset, array.byteLength));
  return found.map(([name, array]) => [name, array.length]);
});
writeFileSync(job.arrays, Buffer.concat(written));

const plain = (_, value) => (ArrayBuffer.isView(value) ? { array: Array.from(value) } : value);
const answer = {
  ...{ runs, probe: model.gapToPyTorch() },
  encoded: job.encoded.map((text) => told(() => tokenizer.encode(text))),
  ids: job.ids.map((text) => told(() => model.idsOf(text))),
  messages: job.messages.map(({ text, changes, layer }) => model.messageOf(text, changes, layer)),
  outcomes: job.outcomes.map(({ text, changes }) => model.outcomeOf(text, changes)),
};
process.stdout.write(JSON.stringify(answer, plain));
