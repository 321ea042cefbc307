// The bars of layers and heads and the strip of stages: radio buttons, most with small pictures.

import { hasHead } from "./derive.js";
import { check, Drawn, element, radio, span } from "./elements.js";
import { context2d, paintThumbnail } from "./paint.js";
import { headName, panelOf, rangesOf } from "./view.js";

const MAPPED_TOKENS = 128; // up to this many, every head's button shows its weights
const MAP = 22; // size of that picture in pixels
const THUMBNAIL = 56; // size of a stage's picture in pixels

export class Controls {
  drawn = new Drawn();

  /** `choose` takes { head } or { stage }, `open` the name of another layer. */
  constructor({ layers, heads, strip }, choose, open) {
    Object.assign(this, { layers, heads, strip, choose, open });
  }

  /** Rebuilds the buttons whose layers, heads or stages have changed. */
  build({ layer, layers, stages }) {
    const { heads, ablated, label } = layer;
    if (this.drawn.differs("layers", layers.map(({ name }) => name).join())) this.buildLayers(layers);
    this.markLayer(layers, layer.name);
    if (this.drawn.differs("heads", `${label} ${heads} ${ablated}`)) this.buildHeads(layer);
    const steps = stages.map(({ name, step }) => name + step).join();
    if (this.drawn.differs("stages", steps)) this.buildStages(stages);
  }

  buildLayers(layers) {
    const radios = layers.map(({ name, label, title }, n) =>
      radio(`layer-${n}`, () => this.open(name), { "aria-label": title, title }, label),
    );
    this.layers.replaceChildren(...radios);
    this.layers.hidden = !layers.length;
  }

  markLayer(layers, chosen) {
    check([...this.layers.children], layers.findIndex(({ name }) => name === chosen));
  }

  buildHeads({ heads, ablated, label }) {
    this.mapped = null;
    const radios = Array.from({ length: heads }, (_, head) => {
      const zeroed = ablated.includes(head);
      const attributes = {
        class: zeroed && "zeroed",
        "aria-label": `Head ${head}${zeroed ? ", its output is set to zero" : ""}`,
        title: zeroed && "This head's output is set to zero after it is computed",
      };
      const map = element("canvas", { "aria-hidden": "true", hidden: true });
      const name = headName(head, head === 0 ? label : "");
      return radio(`head-${head}`, () => this.choose({ head }), attributes, map, name);
    });
    this.heads.replaceChildren(...radios);
  }

  buildStages(stages) {
    const parts = stages.flatMap(({ name, label, step }) => {
      const attributes = { class: "thumbnail", "aria-label": step ? `${label} (${step})` : label };
      const picture = element("canvas", { "aria-hidden": "true" });
      const choose = () => this.choose({ stage: name });
      return [
        step && element("span", { class: "step", "aria-hidden": "true" }, step),
        radio(`stage-${name}`, choose, attributes, picture, span("", label)),
      ];
    });
    this.strip.replaceChildren(...parts.filter(Boolean));
  }

  /** Marks what is chosen. */
  mark({ stages, state, palette }) {
    check([...this.heads.children], state.head);
    const radios = [...this.strip.querySelectorAll("[role=radio]")];
    check(radios, stages.findIndex(({ name }) => name === state.stage));
    if (!this.drawn.differs("hues", palette, stages)) return;
    radios.forEach((radio, n) => radio.style.setProperty("--hue", palette.ink[stages[n].quantity]));
  }

  /** Draws the small pictures of a head's stages. */
  drawStages({ layer, baseline, stages, palette, state: { span } }, derived, before) {
    if (!this.drawn.differs("thumbnails", derived, before, palette, span)) return;
    const ranges = rangesOf({ layer, baseline, derived, before, span });
    this.strip.querySelectorAll("canvas").forEach((canvas, n) => {
      const panel = panelOf(stages[n], layer, derived, ranges);
      if (panel.values) paintThumbnail(canvas, panel, palette, THUMBNAIL);
      else context2d(canvas, THUMBNAIL, THUMBNAIL); // empty until the values have arrived
    });
  }

  /** Draws every head's weights in its button, one head at a time, so that no click has to wait. */
  drawHeadMaps({ layer, stages, palette }, derivedOf) {
    const mapped = `${layer.digest} ${palette.signature}`;
    if (this.mapped === mapped) return;
    this.mapped = mapped;
    if (Math.max(layer.queries, layer.keys) > MAPPED_TOKENS) return;
    const weights = stages.find(({ name }) => name === "weights");
    const canvases = [...this.heads.querySelectorAll("canvas")];
    const draw = (head) => {
      if (this.mapped !== mapped || head >= layer.heads) return;
      if (hasHead(layer, head)) {
        const panel = panelOf(weights, layer, derivedOf(layer, head), layer.range);
        canvases[head].hidden = false;
        paintThumbnail(canvases[head], panel, palette, MAP);
      }
      setTimeout(() => draw(head + 1));
    };
    setTimeout(() => draw(0));
  }
}
