// Does in Node what a job asks of a browser's model: node node.js JOB.json. Prints JSON; arrays go to a file.

import { readFileSync, writeFileSync } from "node:fs";

import { unpacked } from "../../../viz/explorer/js/message.js";
import { openModel } from "../../../viz/site/model/js/model.js";
import { ranksOf, tokenizerOf } from "../../../viz/site/model/js/tokenizers.js";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const [parts, vocabulary] = [job.parts, job.vocabulary].map((file) => unpacked(new Uint8Array(readFileSync(file))));
const model = openModel(parts, vocabulary);
const tokenizer = tokenizerOf(parts.tokenizer, ranksOf(vocabulary.tokens));

/** What a call gives, or the sentence of its refusal. */
function told(call) {
  try {
    return call();
  } catch (error) {
    return { refusal: error.message };
  }
}

const written = []; // all arrays, one after the other
const places = new Map(); // of each array: its first byte, how many numbers, and of which type
let end = 0;

function placeOf(array) {
  if (!places.has(array)) {
    written.push(Buffer.from(array.buffer, array.byteOffset, array.byteLength));
    places.set(array, { array: [end, array.length, array instanceof Float32Array ? "<f4" : "u1"] });
    end += array.byteLength;
  }
  return places.get(array);
}

/** Every array in a value, by its path. */
function arrays(value, path = []) {
  if (ArrayBuffer.isView(value)) return [[path.join("/"), value]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, part]) => arrays(part, [...path, name]));
}

const answer = {
  runs: job.runs.map(({ text, changes }) => Object.fromEntries(arrays(model.run(text, changes)))),
  probe: model.gapToPyTorch(),
  encoded: job.encoded.map((text) => told(() => tokenizer.encode(text))),
  ids: job.ids.map((text) => told(() => model.idsOf(text))),
  recordings: job.recordings.map(({ text, changes }) => model.recordingOf(text, changes)),
};
const said = JSON.stringify(answer, (_, value) => (ArrayBuffer.isView(value) ? placeOf(value) : value));
writeFileSync(job.arrays, Buffer.concat(written));
process.stdout.write(said);
