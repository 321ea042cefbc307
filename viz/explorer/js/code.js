// The code of the chosen stage, which the reader may choose in place of its formula: its lines, the chosen cell's
// number beside them, and a script that computes it alone.

import { button, choiceOf, Drawn, element, keepingFocus, span } from "./elements.js";
import { precise } from "./numbers.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("code");

const CHOICE = "attention-code"; // in the browser's storage
const FILES = /load\("([^"]+)"/g;
const TRACE = "trace.safetensors";
const TOLD = 1500; // milliseconds for which the button says that the script was copied

/** What the reader chose last: formula or code, and the style of the code. */
let choice = { view: "formula", style: "plain", ...stored() };

function stored() {
  try {
    return JSON.parse(localStorage.getItem(CHOICE));
  } catch {
    return null; // no storage, or not ours
  }
}

function choose(change) {
  choice = { ...choice, ...change };
  try {
    localStorage.setItem(CHOICE, JSON.stringify(choice));
  } catch {
    // It is then remembered until the page is left.
  }
}

/** Code with the numbers of the chosen cell in its slots. */
function filled(code, cell) {
  return code.replace(/@(\w+)@/g, (_, name) => cell[name]);
}

/** The whole script of a stage: what viz/explorer/code.py describes, put together as Python does it. */
function scriptOf({ loader, reads, stages }, stage, style, cell) {
  const snippet = stages[stage][style];
  const before = snippet.after.map((name) => stages[name][style === "loops" ? "plain" : style]);
  const steps = [...before, snippet].flatMap(({ lines }) => lines.map(([line]) => line));
  const lines = [...loader, ...reads[stage], ...steps, `print(float(${snippet.result}))`];
  return lines.map((line) => filled(line, cell) + "\n").join("");
}

export class Code {
  drawn = new Drawn();

  /** `reading` holds the choice between formula and code, `holder` the code, in `panel`. */
  constructor({ panel, reading, code }) {
    Object.assign(this, { panel, reading, holder: code });
  }

  draw(scene) {
    this.scene = scene;
    const { view } = choice;
    if (this.drawn.differs("view", view)) this.drawChoice(view);
    if (view !== "code") return;
    const { code, stage, cell, cellValues } = scene;
    const style = this.style();
    const snippet = code.stages[stage.name]?.[style];
    const value = cellValues.at(-1);
    const { head, query, key, dimension } = cell;
    if (!this.drawn.differs("code", code, stage, style, head, query, key, dimension, value)) return;
    const parts = snippet ? this.parts(snippet, value) : [element("p", {}, refusalOf(code))];
    this.holder.replaceChildren(...parts);
  }

  /** The style that the reader chose last, or where a stage is not written in it, tensors. */
  style() {
    const { code, stage } = this.scene;
    return choice.style in (code.stages[stage.name] ?? {}) ? choice.style : "plain";
  }

  /** Formula | Code */
  drawChoice(view) {
    this.panel.classList.toggle("coding", view === "code");
    this.holder.hidden = view !== "code";
    const options = { formula: "Formula", code: "Code" };
    const change = (chosen) => this.change({ view: chosen });
    const radios = choiceOf("Formula or code", { options, chosen: view, choose: change, name: "reading" });
    this.reading.replaceChildren(radios);
  }

  /** Chooses "formula" or "code". */
  choose(view) {
    choose({ view });
  }

  change(chosen) {
    choose(chosen);
    keepingFocus(this.panel, () => this.draw(this.scene));
  }

  /** The code of one stage in one style. */
  parts({ lines, given, result, remark }, value) {
    const { code, stage, cell } = this.scene;
    const styles = choiceOf(say("style_code"), {
      options: Object.fromEntries(Object.keys(code.stages[stage.name]).map((style) => [style, code.styles[style]])),
      chosen: this.style(),
      choose: (style) => this.change({ style }),
      name: "style",
    });
    const line = ([text, beside]) =>
      element("li", {}, element("code", {}, filled(text, cell)), beside && span("beside", `# ${beside}`));
    const found = element("output", { "data-testid": "code-value" }, precise(value));
    const last = element("li", { class: "result" }, element("code", {}, filled(result, cell)), found);
    const listed = element("ol", { class: "lines", "aria-label": say("code_stage") }, ...lines.map(line), last);
    const files = [...code.reads[stage.name].join("\n").matchAll(FILES)].map(([, file]) => file);
    return [
      styles,
      element("p", { class: "given" }, `Given: ${given.join(", ")}`),
      listed,
      remark && element("p", { class: "remark" }, remark),
      this.copying([...new Set(files)]),
      (this.script = element("pre", { class: "script", "data-testid": "script", hidden: true })),
    ].filter(Boolean);
  }

  /** The button that copies the script, and the files that it reads. */
  copying(files) {
    this.button = button("copy-script", () => this.copy(), {}, "Copy as a script");
    const from = (file) => (file === TRACE ? say("save_whole_trace", { file }) : say("page_code_weights", { file }));
    const needs = say("needs_pytorch", { map: files.map(from).join(" and ") });
    return element("p", { class: "copying" }, this.button, " ", span("", needs));
  }

  async copy() {
    const { code, stage, cell } = this.scene;
    const script = scriptOf(code, stage.name, this.style(), cell);
    const { button: pressed } = this;
    try {
      await navigator.clipboard.writeText(script);
      pressed.textContent = "Copied";
    } catch {
      this.script.textContent = script; // where no clipboard is allowed, it can be copied by hand
      this.script.hidden = false;
      getSelection().selectAllChildren(this.script);
      pressed.textContent = "Selected";
    }
    setTimeout(() => (pressed.textContent = "Copy as a script"), TOLD);
  }
}

function refusalOf({ refusal }) {
  return refusal || say("code_stage_2");
}
