// The strip of stages: radio buttons with small pictures.

import { isMissing } from "./around.js";
import { isLarge } from "./steps.js";
import { check, Drawn, element, radio, span } from "./elements.js";
import { paintAwaited, paintThumbnail } from "./paint.js";
import { SCORE_STAGES } from "./score_stages.js";
import { panelOf, rangesOf } from "./view.js";

const STEPS = ["scores", "scaled", ...SCORE_STAGES.map(({ name }) => name), "masked"];

/** The side of a stage's picture in pixels: smaller where there are many, and above the map of the main job. */
function thumbnailOf({ length: count }, isHero) {
  return isHero ? 24 : count <= 9 ? 56 : count <= 12 ? 44 : 38;
}

/** Whether a stage has a small picture: above the map of the main job only what comes before the scores. */
function isPictured({ name, group }, isHero) {
  return !isHero || Boolean(group) || ["query", "key", "value"].includes(name);
}

/** Whether the matrix of a stage has not been made: of a long text only the weights are, until another is opened. */
function isLeftOut(layer, { name }, derived) {
  return isLarge(layer) && STEPS.includes(name) && !derived.has(name);
}

export class Controls {
  drawn = new Drawn();

  /** `choose` takes { stage }. */
  constructor({ strip }, choose) {
    Object.assign(this, { strip, choose });
  }

  /** Rebuilds the buttons if the stages have changed. */
  build({ offered: stages, received }) {
    const steps = stages.map(({ name, step }) => name + step).join();
    const isHero = Boolean(received.hero);
    if (this.drawn.differs("stages", steps, isHero)) this.buildStages(stages, isHero);
  }

  buildStages(stages, isHero) {
    const parts = stages.flatMap((stage) => {
      const { name, label, step } = stage;
      const attributes = { class: "thumbnail", "aria-label": step ? `${label} (${step})` : label };
      const picture = isPictured(stage, isHero) ? element("canvas", { "aria-hidden": "true" }) : "";
      const choose = () => this.choose({ stage: name });
      return [
        step && element("span", { class: "step", "aria-hidden": "true" }, step),
        radio(`stage-${name}`, choose, attributes, picture, span("", label)),
      ];
    });
    const isLong = stages.length > 9;
    this.strip.classList.toggle("long", isLong);
    this.strip.style.setProperty("--thumbnail", `${thumbnailOf(stages, isHero)}px`);
    this.strip.style.setProperty("--half", Math.ceil(stages.length / 2)); // of two rows
    this.strip.replaceChildren(...parts.filter(Boolean));
  }

  /** Marks what is chosen. */
  mark({ offered: stages, state, palette }) {
    const radios = [...this.strip.querySelectorAll("[role=radio]")];
    check(radios, stages.findIndex(({ name }) => name === state.stage));
    if (!this.drawn.differs("hues", palette, stages)) return;
    radios.forEach((radio, n) => radio.style.setProperty("--hue", palette.ink[stages[n].quantity]));
  }

  /** Draws the small pictures of a head's stages. */
  drawStages({ layer, baseline, offered, received, palette, state: { span } }, derived, before) {
    const isHero = Boolean(received.hero);
    const stages = offered.filter((stage) => isPictured(stage, isHero));
    const waits = stages.map((stage) => isMissing(layer, stage) || isLeftOut(layer, stage, derived));
    if (!this.drawn.differs("thumbnails", derived, before, palette, span, waits.join())) return;
    const side = thumbnailOf(stages, isHero);
    const ranges = rangesOf({ layer, baseline, derived, before, span });
    this.strip.querySelectorAll("canvas").forEach((canvas, n) => {
      const panel = waits[n] ? null : panelOf(stages[n], layer, derived, ranges);
      if (panel?.values) paintThumbnail(canvas, panel, palette, side);
      else paintAwaited(canvas, palette, side);
      canvas.parentElement.title = panel?.values ? "" : "opens when chosen";
    });
  }
}
