// Runs: what a picture and all beside it are drawn from.
//
// A page asks for one by `messageOf(text, intervention, model)`. It was recorded (viz/site/recording.py), or a model on
// the site computes it here; that model is read when it is first needed.

import { element } from "../../explorer/js/elements.js";
import { unpacked } from "../../explorer/js/message.js";
import { openModel } from "../model/js/model.js";

const KEPT = 4; // blocks of data: sentences, and weights of models
const taken = new Map(); // by name: what takes a text that a script brings

globalThis.attentionSite.take = (name, text) => taken.get(name)?.(text);

/** Data as text. A page that lies on a disk may fetch nothing: they stand in the page, or in a classic script. */
function textOf(name) {
  const here = document.getElementById(`data-${name}`);
  if (here) return Promise.resolve(here.textContent);
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

async function blockOf(name) {
  const bytes = Uint8Array.from(atob(await textOf(name)), (letter) => letter.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpacked(new Uint8Array(await new Response(whole).arrayBuffer()));
}

export class Runs {
  blocks = new Map();
  opened = new Map(); // models, by name

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
      const [{ runs }, { weights }] = await Promise.all([this.block(sentence.data), this.block(sentence.weights)]);
      return withWeights(runs[turned?.name ?? ""], weights);
    }
    if (!this.runsHere(model)) throw new Error("This run was not recorded, and its model is not on this site.");
    return (await this.modelOf(model)).recordingOf(text, intervention);
  }

  runsHere(model) {
    return model in this.models;
  }

  isRead(model) {
    return this.opened.has(model);
  }

  /** A model that runs here. It stays when it has been read. */
  modelOf(name) {
    const { data, vocabulary } = this.models[name];
    const read = () => Promise.all([data, ...vocabulary].map(blockOf)).then(([parts, ranks]) => openModel(parts, ranks));
    const model = this.opened.get(name) ?? read();
    this.opened.set(name, model);
    model.catch(() => this.opened.delete(name));
    return model;
  }

  /** A block of data, of which the last few are kept. */
  block(name) {
    const known = this.blocks.get(name) ?? blockOf(name);
    this.blocks.delete(name);
    this.blocks.set(name, known);
    known.catch(() => this.blocks.delete(name));
    if (this.blocks.size > KEPT) this.blocks.delete(this.blocks.keys().next().value);
    return known;
  }
}

/** A run with the arrays that all runs of its model share. */
function withWeights(run, weights) {
  for (const { layer } of run.layers) {
    const numbers = layer.around.merged?.numbers;
    if (numbers?.weight.shared) numbers.weight = weights[numbers.weight.shared];
  }
  return run;
}
