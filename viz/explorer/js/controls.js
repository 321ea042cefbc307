// The bars of layers and heads and the strip of stages: radio buttons, most with small pictures.

import { hasHead } from "./derive.js";
import { check, element, radioKeys } from "./elements.js";
import { context2d, paintThumbnail } from "./paint.js";
import { panelOf, rangesOf } from "./view.js";

const MAPPED_TOKENS = 128; // up to this many, every head's button shows its weights
const MAP = 22; // pixels of that picture
const THUMBNAIL = 56; // and of a stage's

export class Controls {
  /** `choose` takes { head } or { stage }, `open` the name of another layer. */
  constructor({ layers, heads, strip }, choose, open) {
    Object.assign(this, { layers, heads, strip, choose, open });
  }

  /** Builds the buttons anew where layers, heads or stages are others than before. */
  build({ layer, layers, stages, state }) {
    const { heads, ablated, label } = layer;
    const layerSignature = layers.map(({ name }) => name).join();
    if (layerSignature !== this.builtLayers) this.buildLayers(layers);
    this.builtLayers = layerSignature;
    this.markLayer(layers, layer.name);
    const headSignature = `${label} ${heads} ${ablated}`;
    if (headSignature !== this.builtHeads) this.buildHeads(layer, state);
    this.builtHeads = headSignature;
    const stageSignature = stages.map(({ name, step }) => name + step).join();
    if (stageSignature !== this.builtStages) this.buildStages(stages, state);
    this.builtStages = stageSignature;
  }

  buildLayers(layers) {
    const radios = layers.map(({ name, label, title }, n) =>
      element(
        "button",
        {
          type: "button",
          role: "radio",
          "aria-label": title,
          title,
          "data-testid": `layer-${n}`,
          onclick: () => this.open(name),
        },
        label,
      ),
    );
    this.layers.replaceChildren(...radios);
    this.layers.hidden = !layers.length;
    radioKeys(this.layers, layers.length, () => this.layerAt, (n) => this.open(layers[n].name));
  }

  markLayer(layers, chosen) {
    this.layerAt = layers.findIndex(({ name }) => name === chosen);
    check([...this.layers.children], this.layerAt);
  }

  buildHeads({ heads, ablated, label }, state) {
    this.mapped = null;
    const radios = Array.from({ length: heads }, (_, head) => {
      const zeroed = ablated.includes(head);
      return element(
        "button",
        {
          type: "button",
          role: "radio",
          class: zeroed ? "zeroed" : "",
          "aria-label": `Head ${head}${zeroed ? ", its output is set to zero" : ""}`,
          title: zeroed ? "This head's output is set to zero after it is computed" : null,
          "data-testid": `head-${head}`,
          onclick: () => this.choose({ head }),
        },
        element("canvas", { "aria-hidden": "true", hidden: true }),
        head === 0 ? `${label}H0` : `H${head}`,
      );
    });
    this.heads.replaceChildren(...radios);
    radioKeys(this.heads, heads, () => state.head, (head) => this.choose({ head }));
  }

  buildStages(stages, state) {
    const parts = stages.flatMap(({ name, label, step }) => [
      step ? element("span", { class: "step", "aria-hidden": "true" }, step) : null,
      element(
        "button",
        {
          type: "button",
          role: "radio",
          class: "thumbnail",
          "data-testid": `stage-${name}`,
          "aria-label": step ? `${label} (${step})` : label,
          onclick: () => this.choose({ stage: name }),
        },
        element("canvas", { "aria-hidden": "true" }),
        element("span", {}, label),
      ),
    ]);
    this.strip.replaceChildren(...parts.filter(Boolean));
    const names = stages.map(({ name }) => name);
    const chosen = () => names.indexOf(state.stage);
    radioKeys(this.strip, names.length, chosen, (n) => this.choose({ stage: names[n] }));
  }

  /** Marks what is chosen. */
  mark({ stages, state, palette }) {
    check([...this.heads.children], state.head);
    const radios = [...this.strip.querySelectorAll("[role=radio]")];
    check(radios, stages.findIndex(({ name }) => name === state.stage));
    if (this.hues === palette && this.huedStages === stages) return;
    [this.hues, this.huedStages] = [palette, stages];
    radios.forEach((radio, n) => {
      radio.style.setProperty("--hue", palette.ink[stages[n].quantity]);
    });
  }

  /** The stages of one head, small. */
  drawStages({ layer, baseline, stages, palette, state: { span } }, derived, before) {
    const drawn = [derived, before, palette, span];
    if (this.drawn && drawn.every((part, n) => part === this.drawn[n])) return;
    this.drawn = drawn;
    const ranges = rangesOf({ layer, baseline, derived, before, span });
    this.strip.querySelectorAll("canvas").forEach((canvas, n) => {
      const panel = panelOf(stages[n], layer, derived, ranges);
      if (panel.values) paintThumbnail(canvas, panel, palette, THUMBNAIL, THUMBNAIL);
      else context2d(canvas, THUMBNAIL, THUMBNAIL); // empty until its values are here
    });
  }

  /** Every head's weights in its button, one head at a time, so that no click has to wait. */
  drawHeadMaps({ layer, stages, palette }, derivedOf) {
    if (this.mapped === layer && this.mappedPalette === palette) return;
    [this.mapped, this.mappedPalette] = [layer, palette];
    if (Math.max(layer.queries, layer.keys) > MAPPED_TOKENS) return;
    const weights = stages.find(({ name }) => name === "weights");
    const canvases = [...this.heads.querySelectorAll("canvas")];
    const draw = (head) => {
      if (this.mapped !== layer || this.mappedPalette !== palette || head >= layer.heads) return;
      if (hasHead(layer, head)) {
        const panel = panelOf(weights, layer, derivedOf(layer, head), layer.range);
        canvases[head].hidden = false;
        paintThumbnail(canvases[head], panel, palette, MAP, MAP);
      }
      setTimeout(() => draw(head + 1));
    };
    setTimeout(() => draw(0));
  }
}
