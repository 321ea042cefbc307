// The strip of stages: radio buttons with small pictures.

import { isMissing } from "./around.js";
import { isLarge } from "./steps.js";
import { check, Drawn, element, radio, span } from "./elements.js";
import { paintAwaited, paintThumbnail } from "./paint.js";
import { SCORE_STAGES } from "./score_stages.js";
import { panelOf, rangesOf } from "./view.js";

const STEPS = ["scores", "scaled", ...SCORE_STAGES.map(({ name }) => name), "masked"];

const THUMBNAIL = 24; // pixels

/** Whether a stage has a small picture: only those that are no map of tokens. */
function isPictured({ name, group }) {
  return Boolean(group) || ["query", "key", "value"].includes(name);
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
  build({ offered: stages }) {
    if (!this.drawn.differs("stages", stages.map(({ name, step }) => name + step).join())) return;
    const radios = stages.map((stage) => {
      const { name, label, step } = stage;
      const attributes = { class: "thumbnail", "aria-label": step ? `${label} (${step})` : label };
      const picture = isPictured(stage) ? element("canvas", { "aria-hidden": "true" }) : "";
      return radio(`stage-${name}`, () => this.choose({ stage: name }), attributes, picture, span("", label));
    });
    this.strip.replaceChildren(...radios);
  }

  /** Marks what is chosen. */
  mark({ offered: stages, state, palette }) {
    const radios = [...this.strip.querySelectorAll("[role=radio]")];
    check(radios, stages.findIndex(({ name }) => name === state.stage));
    if (!this.drawn.differs("hues", palette, stages)) return;
    radios.forEach((radio, n) => radio.style.setProperty("--hue", palette.ink[stages[n].quantity]));
  }

  /** Draws the small pictures of a head's stages. */
  drawStages({ layer, baseline, offered, palette, state: { span } }, derived, before) {
    const stages = offered.filter(isPictured);
    const waits = stages.map((stage) => isMissing(layer, stage) || isLeftOut(layer, stage, derived));
    if (!this.drawn.differs("thumbnails", derived, before, palette, span, waits.join())) return;
    const ranges = rangesOf({ layer, baseline, derived, before, span });
    this.strip.querySelectorAll("canvas").forEach((canvas, n) => {
      const panel = waits[n] ? null : panelOf(stages[n], layer, derived, ranges);
      if (panel?.values) paintThumbnail(canvas, panel, palette, THUMBNAIL);
      else paintAwaited(canvas, palette, THUMBNAIL);
      canvas.parentElement.title = panel?.values ? "" : "opens when chosen";
    });
  }
}
