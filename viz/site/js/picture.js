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
    Object.assign(this, { el, bar, told, first: "simple" });
  }

  /** Shows a run. `choice`: what is chosen in it, and whether it `opens` on the largest weight of the last token;
   *  null: what was chosen before. `jobs`: what is known of each head, by layer. */
  show(run, choice, { about = "", jobs = {} }) {
    const isHero = this.bar !== null;
    const { opens = false, ...chosen } = choice ?? {};
    Object.assign(this, { run, opens, jobs });
    const state = {
      ...chosen,
      _about: about,
      _run: isHero ? run.run : `${run.run} step by step`,
      _layer: NONE,
      _heads: { ...run.heads, docked: isHero },
    };
    if (this.model) {
      this.set(state);
      this.refresh();
      return;
    }
    this.model = new Model({ ...state, _layers: this.layersAt(chosen.head) });
    for (const name of ["detail", "head"]) this.model.on(`change:${name}`, () => this.refresh());
    this.model.addEventListener("change", () => this.tell());
    mount({ model: this.model, el: this.el, bar: this.bar, parts: partsOf(isHero), ...(isHero ? { tallest: null } : {}) });
  }

  /** Shows the run as it is now: in another detail, or with what has arrived since. */
  refresh() {
    this.set({ _layers: this.layersAt(this.model.get("head")) });
  }

  /** The run's messages, as large on the screen of the main job as the detail says. */
  layersAt(head) {
    const heroOf = ({ heroes, layer }) => {
      if (!this.bar) return undefined;
      return { ...heroes[this.detail], opens: this.opens, job: this.jobs[layer.name]?.[head] ?? "" };
    };
    return { layers: this.run.layers.map((message) => ({ ...message, hero: heroOf(message) })) };
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
