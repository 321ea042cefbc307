// Play: the map goes through its stages, from scores to output, while title, arcs and row stay in view.

import { inSteps, isStill } from "./motion.js";
import { write } from "./elements.js";

const SECONDS = 1.8; // of one stage
const FROM = "scores";

export class Play {
  stop = () => {};

  /** `explorer`: what is shown and chosen; `button` begins and stops it. */
  constructor(button, explorer) {
    Object.assign(this, { button, explorer, playing: false });
    button.onclick = () => (this.playing ? this.pause() : this.start());
  }

  draw() {
    write(this.button, this.playing ? "Pause" : isStill() ? "Next stage" : "Play");
    this.button.ariaPressed = String(this.playing);
  }

  /** Where nothing may move, one stage a click. */
  start() {
    if (isStill()) return this.step();
    this.begin();
    this.playing = true;
    this.draw();
    let passed = 0;
    this.stop = inSteps((step) => {
      passed += step / 1000;
      if (passed < SECONDS) return this.playing;
      passed = 0;
      this.step();
      if (this.isAtEnd) this.pause();
      return this.playing;
    });
  }

  /** At the scores, on a row that has masked keys where there is one: the mask is to be seen at work. */
  begin() {
    const { explorer } = this;
    explorer.choose({ stage: FROM, card: null, ...this.rowWithMask() }, { isOwn: false });
  }

  rowWithMask() {
    const { layer, state } = this.explorer;
    const [{ hidden, weights }] = this.explorer.drawing.runs();
    const isMasked = (query) => hidden?.subarray(query * layer.keys, (query + 1) * layer.keys).includes(1);
    if (!hidden || isMasked(state.query)) return {};
    let found = {};
    let largest = 0;
    for (let query = 1; query < layer.queries; query++) {
      if (!isMasked(query)) continue;
      for (let key = 1; key < layer.keys; key++) {
        const weight = weights[query * layer.keys + key];
        if (weight > largest) [found, largest] = [{ query, key }, weight];
      }
    }
    return found;
  }

  /** The next stage; after the last one the first again. */
  step() {
    const { explorer, stages } = this;
    const at = stages.findIndex(({ name }) => name === explorer.state.stage);
    if (at < 0 || at === stages.length - 1) return this.begin();
    explorer.choose({ stage: stages[at + 1].name });
  }

  pause() {
    this.playing = false;
    this.stop();
    this.draw();
  }

  get stages() {
    const all = this.explorer.stages.filter(({ group }) => !group);
    return all.slice(all.findIndex(({ name }) => name === FROM));
  }

  get isAtEnd() {
    return this.explorer.state.stage === this.stages.at(-1).name;
  }
}
