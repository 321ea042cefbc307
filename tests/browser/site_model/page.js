// A page that runs a shipped model by itself: a sentence, three switches, a choice of the layer, the explorer. The
// scripts of the model call the two functions here.

import { Explorer } from "../../../viz/explorer/js/explorer.js";
import { openModel, Refusal } from "../../../viz/site/model/js/model.js";

const ASSETS = { plotly: null, katex: "", katexStyle: "" };
let vocabulary = null;
let parts = null;
globalThis.attentionVocabulary = (ranks) => (vocabulary = ranks);
globalThis.attentionModel = (_, made) => (parts = made);

globalThis.start = () => {
  const part = (name) => document.querySelector(`#${name}`);
  const started = performance.now();
  const model = openModel(parts, vocabulary);
  const opened = performance.now() - started;
  const root = part("picture").attachShadow({ mode: "open" });
  root.append(part("skeleton").content);
  const explorer = new Explorer(root);
  let revision = 0;
  const draw = () => {
    const changes = {
      mask: part("mask").checked ? "model" : "none",
      scale: part("scaling").checked ? null : 1,
      positions: part("positions").checked,
    };
    const layer = Number(part("layer").value);
    part("refusal").textContent = "";
    try {
      const message = model.messageOf(part("sentence").value, changes, layer);
      const selection = { head: 0, stage: "weights", query: message.layer.queries - 1, key: 0 };
      const place = { mount: "site", assets: ASSETS, selection, revision: (revision += 1) };
      explorer.receive({ ...message, ...place, run: "", device: "", claims: [], hero: null });
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      part("refusal").textContent = refusal.message;
    }
  };
  model.layers.forEach(({ label }, n) => part("layer").append(new Option(label, n)));
  for (const field of document.querySelectorAll("input, select")) field.oninput = draw;
  draw();
  Object.assign(globalThis, { model, opened });
};
