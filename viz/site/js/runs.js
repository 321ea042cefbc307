// Runs: what a picture and all beside it are drawn from.
//
// A page asks for one by `messageOf(text, intervention, model)`. It was recorded (viz/site/recording.py), or a model on
// the site computes it here; that model is read when it is first needed.

import { element } from "../../explorer/js/elements.js";
import { unpacked } from "../../explorer/js/message.js";
import { openModel } from "../model/js/model.js";

const KEPT = 8; // blocks of data: runs of sentences, and weights of models
const FLOAT = 4; // bytes
const AHEAD = 250; // milliseconds that the last run may have taken where one is made that nobody asked for yet
const AT_ONCE = 3; // pieces of a block that are on their way: the line is never idle, and the first comes soon
const [BITS, BYTE, FIRST_LETTER] = [15, 8, 0x3000]; // of a wide text (viz/site/build.py)
const taken = new Map(); // by name: what takes the bytes that a script brings, and how many such scripts there are

globalThis.attentionSite.take = (name, text, count, pieces) => taken.get(name)?.({ bytes: unwidened(text, count), pieces });

/** The bytes of a block of data, in pieces. A page that lies on a disk may fetch nothing: they stand in the page, in
 *  base64, or in classic scripts, of which the next ones are on their way while one is read. */
async function* bytesOf(name) {
  const here = document.getElementById(`data-${name}`);
  if (here) {
    yield unlettered(here.textContent);
    return;
  }
  const first = await pieceOf(name);
  const others = Array.from({ length: first.pieces - 1 }, (_, n) => `${name}.${n + 1}`);
  const coming = others.splice(0, AT_ONCE).map(pieceOf);
  yield first.bytes;
  while (coming.length) {
    const { bytes } = await coming.shift();
    coming.push(...others.splice(0, 1).map(pieceOf));
    yield bytes;
  }
}

function pieceOf(name) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: `data/${name}.js` });
    const end = (settle) => (said) => {
      taken.delete(name);
      script.remove();
      settle(said);
    };
    taken.set(name, end(resolve));
    script.onerror = () => end(reject)(new Error(`The file data/${name}.js is not beside this page.`));
    document.head.append(script);
  });
}

/** The bytes of a text in base64. A loop: a call for each letter takes twenty times as long. */
function unlettered(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = letters.charCodeAt(n);
  return bytes;
}

/** The bytes of a text whose letters have 15 bits each. */
function unwidened(text, count) {
  const bytes = new Uint8Array(count);
  let [at, held, width] = [0, 0, 0]; // bits that are left of the letters so far, and their number
  for (let n = 0; n < text.length; n++) {
    held = (held << BITS) | (text.charCodeAt(n) - FIRST_LETTER);
    for (width += BITS; width >= BYTE; at++) {
      width -= BYTE;
      bytes[at] = held >> width; // the rest of the last letter falls behind the end
      held &= (1 << width) - 1;
    }
  }
  return bytes;
}

/** A block of data. `before`: the block that it comes after, where it has arrays of that one. */
async function blockOf(name, before) {
  const { readable, writable } = new DecompressionStream("gzip");
  const write = async () => {
    const writer = writable.getWriter();
    for await (const piece of bytesOf(name)) await writer.write(piece);
    await writer.close();
  };
  const [whole] = await Promise.all([new Response(readable).arrayBuffer(), write()]);
  return unpacked(inOrder(new Uint8Array(whole)), null, await before);
}

/** A block whose arrays were sent by the place of their bytes in a number (viz/site/build.py). */
function inOrder(sent) {
  const start = 4 + new DataView(sent.buffer).getUint32(0, true);
  const block = sent.slice();
  const count = (block.length - start) / FLOAT;
  for (let place = 0; place < FLOAT; place++) {
    const from = start + place * count;
    for (let n = 0; n < count; n++) block[start + FLOAT * n + place] = sent[from + n];
  }
  return block;
}

export class Runs {
  blocks = new Map();
  opened = new Map(); // models, by name, from when they are asked for
  read = new Set(); // names of those that are here

  /** `sentences`: as the page names them, each with its switches. `models`: those that run here, by name. */
  constructor({ sentences, models }) {
    Object.assign(this, { sentences, models });
  }

  /** The run of a text: { run, layers, heads, tokens, targets, outcome }. `layers` are messages as
   *  viz/explorer/message.py makes them, with `claims` and a hero for each detail (`heroes`); `heads` is what the picker
   *  of heads takes. One that was computed here says `where`.
   *  `intervention`: {} or what is changed, as viz/site/pages.py writes it. Rejects, with a sentence for the reader,
   *  where the text cannot be read, and where neither was it recorded nor does its model run here. */
  async messageOf(text, intervention, model) {
    const asked = JSON.stringify(intervention);
    for (const sentence of this.sentences.filter((one) => one.text === text && one.model === model)) {
      const turned = sentence.switches.find((one) => JSON.stringify(one.intervention) === asked);
      if (!turned && asked !== "{}") continue;
      const unchanged = this.block(sentence.data);
      return turned ? this.block(turned.data, unchanged) : unchanged;
    }
    if (!this.runsHere(model)) throw new Error("This run was not recorded, and its model is not on this site.");
    const opened = await this.modelOf(model);
    const start = performance.now();
    const recording = opened.recordingOf(text, intervention);
    this.took = performance.now() - start;
    return recording;
  }

  /** Makes a run that may be asked for next, where its model is here and it does not hold up the page. */
  expect(text, intervention, model) {
    if (this.isToCome(model) || this.took > AHEAD) return;
    this.messageOf(text, intervention, model).catch(() => {}); // whoever asks for it is told why
  }

  /** Gives a run the weights that all runs of its model share: the numbers of the last stages are complete then. */
  async complete({ layers }, shared) {
    const { weights } = await this.block(shared);
    for (const { name, around } of layers.map(({ layer }) => layer)) {
      const { merged } = around;
      if (merged && !merged.numbers) merged.numbers = { ...merged.own, weight: weights[name] };
    }
  }

  runsHere(model) {
    return model in this.models;
  }

  /** Whether a model runs here and has not come yet. */
  isToCome(model) {
    return this.runsHere(model) && !this.read.has(model);
  }

  /** A model that runs here. It stays when it has been read. */
  modelOf(name) {
    const { data, vocabulary } = this.models[name];
    const read = () => Promise.all([data, ...vocabulary].map((block) => blockOf(block))).then(([parts, ranks]) => openModel(parts, ranks));
    const model = this.opened.get(name) ?? read();
    this.opened.set(name, model);
    model.then(() => this.read.add(name), () => this.opened.delete(name));
    return model;
  }

  /** A block of data, of which the last few are kept. */
  block(name, before = null) {
    const known = this.blocks.get(name) ?? blockOf(name, before);
    this.blocks.delete(name);
    this.blocks.set(name, known);
    known.catch(() => this.blocks.delete(name));
    if (this.blocks.size > KEPT) this.blocks.delete(this.blocks.keys().next().value);
    return known;
  }
}
