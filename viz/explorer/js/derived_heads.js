// The derived matrices of heads. They are kept when another layer or run is shown, and derived ahead in idle time.

import { deriveHead, hasHead } from "./derive.js";

const KEPT_CELLS = 2 ** 24; // cells of derived matrices kept; beyond, older heads are dropped
const FORESEEN_CELLS = 2 ** 18; // up to this size, all heads of a layer are derived ahead

const whenIdle = globalThis.requestIdleCallback ?? ((task) => setTimeout(task, 50));

export class DerivedHeads {
  heads = new Map();

  of(layer, head) {
    const key = `${layer.part} ${head}`;
    const derived = this.heads.get(key) ?? deriveHead(layer, head);
    const most = Math.max(2, Math.floor(KEPT_CELLS / (4 * layer.queries * layer.keys)));
    this.heads.delete(key);
    while (this.heads.size >= most) this.heads.delete(this.heads.keys().next().value);
    this.heads.set(key, derived);
    return derived;
  }

  /** Derives all heads of the shown layer in idle time, so that a switch only has to draw. */
  foresee(layer) {
    if (this.foreseen === layer) return;
    this.foreseen = layer;
    if (layer.queries * layer.keys > FORESEEN_CELLS) return;
    const derive = (head) => {
      if (this.foreseen !== layer || !hasHead(layer, head)) return;
      this.of(layer, head).weights;
      whenIdle(() => derive(head + 1));
    };
    whenIdle(() => derive(layer.first));
  }
}
