// The explorer on a page of the site: the one of the app and of notebooks, on a run of `Runs`.

import { mount } from "../../notebook/js/main.js";
import { Model } from "../../notebook/js/model.js";
import { katex } from "./formulas.js";

const NONE = { layers: [] };
export const CHOICE = ["place", "head", "stage", "query", "key"];

export class RunPicture {
  /** `el`: where it stands. `bar`: where all heads stand; null: behind a button above the picture. `told` hears of
   *  what the reader chooses. */
  constructor({ el, bar = null }, told) {
    Object.assign(this, { el, bar, told, first: bar ? "simple" : "full" });
  }

  /** Shows a run. `choice`: what is chosen in it, and whether it `opens` on the largest weight of the last token;
   *  null: what was chosen before. `jobs`: what is known of each head, by layer. */
  show(run, choice, { about = "", jobs = {} }) {
    const isDocked = this.bar !== null;
    const { opens = false, ...chosen } = choice ?? {};
    Object.assign(this, { run, opens, jobs });
    const state = {
      ...chosen,
      _about: about,
      _run: isDocked ? run.run : `${run.run} step by step`,
      _layer: NONE,
      _heads: { ...run.heads, docked: isDocked },
      _layers: { layers: run.layers },
    };
    if (this.model) {
      this.set(state);
      return;
    }
    this.model = new Model({ ...state, detail: this.first });
    this.model.addEventListener("change", () => this.tell());
    const beside = (place, head) => ({ opens: this.opens, job: this.jobs[place]?.[head] ?? "" });
    const place = { el: this.el, bar: this.bar, parts: partsOf(isDocked), beside };
    mount({ model: this.model, ...place, ...(isDocked ? { tallest: null } : { isExplained: true }) });
  }

  /** Shows the run with what has arrived since. */
  refresh() {
    this.set({ _layers: { layers: this.run.layers } });
  }

  /** "simple" or "full". */
  get detail() {
    return this.model?.get("detail") ?? this.first;
  }

  /** Takes a detail that a link names. */
  choose(detail) {
    if (detail !== "full" && detail !== "simple") return;
    this.first = detail;
    this.model?.set("detail", detail);
  }

  set(state) {
    for (const [name, value] of Object.entries(state)) this.model.set(name, value);
  }

  /** Tells of the choice once, though several parts of it change. */
  tell() {
    this.telling ??= Promise.resolve().then(() => {
      this.telling = null;
      this.told(this.choice);
    });
  }

  get choice() {
    return Object.fromEntries(CHOICE.map((name) => [name, this.model?.get(name)]));
  }
}

/** The skeletons and style sheets. Docked, the heads stand alone. */
function partsOf(isDocked) {
  const { parts } = globalThis.attentionSite;
  return { ...parts, ...(isDocked ? { bar: parts.docked } : {}), loadKatex: katex };
}
