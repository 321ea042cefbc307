// The one choice of a head: a button that names it, and a panel with all heads, layers from top to bottom, each as
// a small map of its weights. The arrow keys move the choice.
//
// A picture in the browser that can show the head at once takes the choice; else Python hears of it. Such a
// picture tells what it shows.

import { paletteOf } from "../../explorer/js/colours.js";
import { afterFrame, check, choiceOf, Drawn, element, moveAmongRadios } from "../../explorer/js/elements.js";
import { isShownAtOnce, SHOWN } from "../../explorer/js/head_events.js";
import { unpacked } from "../../explorer/js/message.js";
import { paintPixels } from "../../explorer/js/paint.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("picker");

const HIDDEN = 255; // of the bytes of a map: no token of the block may be looked at
const ONE = 250; // of the bytes of a map: a weight of 1
const LONGEST = 14; // letters on the button, “encoder L11H11”; the name of somebody's module may have more
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const pickers = new WeakMap();

export default function mount({ data, parentElement, setTriggerValue }) {
  let picker = pickers.get(parentElement);
  if (picker?.root !== parentElement.querySelector(".picker")) {
    picker?.close();
    picker = new Picker(parentElement);
    pickers.set(parentElement, picker);
  }
  picker.trigger = setTriggerValue;
  const mounted = (picker.mounted = {});
  picker.receive(unpacked(data, picker.received));
  return () => picker.mounted === mounted && picker.close();
}

/** Lights the tick of a layer on the map of the model, as viz/shell/frame.py does. */
function lightLayer(place) {
  for (const drawn of document.querySelectorAll(".ticks[data-stack]")) {
    const ticks = [...drawn.querySelectorAll("i")];
    const layer = ticks.findIndex((_, n) => place.startsWith(`${drawn.dataset.stack}.${n}.`));
    ticks.forEach((tick, n) => (tick.className = n === layer ? "lit" : "tick"));
    const said = layer < 0 ? "" : `, layer ${layer} is chosen`;
    drawn.setAttribute("aria-label", `${ticks.length} layers${said}`);
  }
}

/** What the panel is built from: all but the maps, which come later. */
function headsOf({ families }) {
  return JSON.stringify(families.map(({ title, layers, heads, zeroed }) => [title, layers, heads, zeroed]));
}

export class Picker {
  drawn = new Drawn();

  /** `parent`: the element or shadow root that holds the skeleton. `channel`: through what it hears and tells of
   *  heads. */
  constructor(parent, channel = window) {
    Object.assign(this, { parent, channel });
    this.root = parent.querySelector(".picker");
    this.opener = this.root.querySelector(".opener");
    this.panel = this.root.querySelector(".panel");
    this.opener.onclick = () => this.panel.togglePopover();
    this.panel.ontoggle = ({ newState }) => this.toggled(newState === "open");
    this.panel.onkeydown = (event) => this.move(event);
    this.shown = ({ detail }) => this.choose(detail);
    channel.addEventListener(SHOWN, this.shown);
  }

  close() {
    this.dropPaint?.();
    this.channel.removeEventListener(SHOWN, this.shown);
    pickers.delete(this.parent);
  }

  /** New data or a new theme. */
  receive(data) {
    const palette = paletteOf(this.parent.host ?? this.parent, data.theme, this.palette);
    const isNew = data !== this.received;
    if (!isNew && palette === this.palette) return;
    const [heads, chosen] = [headsOf(data), JSON.stringify(data.chosen)];
    const isBuilt = this.heads === heads;
    if (data.docked) this.dock();
    if (!isBuilt) this.build(data.families);
    // Python may not know yet what was chosen here: only what it changes counts.
    if (!isBuilt || chosen !== this.told) this.choose(data.chosen);
    Object.assign(this, { received: data, palette, heads, told: chosen });
    const mapped = data.families.flatMap(({ maps }) => Object.keys(maps ?? {})).join();
    const hasOthers = this.drawn.differs("maps", data.run, palette, mapped);
    if (!hasOthers && isBuilt) return;
    this.dropPaint?.();
    this.dropPaint = afterFrame(() => this.paint()); // the picture comes first
  }

  /** All heads stand on the page, without a button that opens them. */
  dock() {
    this.panel.removeAttribute("popover");
    this.panel.setAttribute("role", "group");
    this.root.classList.add("docked");
  }

  build(families) {
    this.buttons = [];
    this.chosen = null;
    const rowOf = ({ name, label, full }, { heads, zeroed }) => {
      const isZeroed = (head) => zeroed.some(([place, other]) => place === name && other === head);
      const buttons = Array.from({ length: heads }, (_, head) =>
        this.buttonOf(name, full, head, isZeroed(head)),
      );
      this.buttons.push(buttons);
      const opensLayer = {
        class: "layer",
        role: "rowheader",
        "data-testid": `layer-${name}`,
        onclick: () => this.pick({ place: name, head: this.chosen?.head ?? 0 }),
      };
      const layer = element("span", opensLayer, label);
      const all = element("div", { class: "heads", role: "none" }, ...buttons);
      return element("div", { class: "row", role: "row", style: `--heads:${heads}` }, layer, all);
    };
    this.isDocked = this.root.classList.contains("docked");
    this.parts = families.map((family) => {
      const { title, layers, isLong } = family;
      const form = this.isDocked && isLong ? "long" : null;
      const rows = layers.map((layer) => rowOf(layer, family));
      const grid = element("div", { class: form, role: "grid", "aria-label": title, style: `--layers:${layers.length}` }, ...rows);
      return element("section", {}, families.length > 1 && !this.isDocked ? element("h3", {}, title) : null, grid);
    });
    this.stacks = families.length > 1 && this.isDocked ? this.stacksOf(families) : null;
    const hint = element("p", { class: "hint" }, say("rows_layers_arrow"));
    this.panel.replaceChildren(...[this.stacks, ...this.parts, hint].filter(Boolean));
  }

  /** The choice of a stack, which comes before that of its heads. */
  stacksOf(families) {
    const options = Object.fromEntries(families.map(({ title }, n) => [n, title.replace(" self-attention", "")]));
    const choose = (n) => this.pick({ place: families[n].layers[0].name, head: 0 });
    return choiceOf("Stack", { options, chosen: null, choose, name: "stack" });
  }

  buttonOf(place, full, head, isZeroed) {
    const words = isZeroed ? say("output_set_zero") : "";
    const made = element(
      "button",
      {
        type: "button",
        class: isZeroed ? "head zeroed" : "head",
        role: "gridcell",
        "aria-label": `${full}H${head}${words}`,
        "aria-selected": "false",
        tabindex: -1,
        "data-testid": `${place}-${head}`,
        onclick: () => this.pick({ place, head }),
      },
      element("canvas", { "aria-hidden": "true", width: 1, height: 1 }),
      `H${head}`,
    );
    return Object.assign(made, { place, head, full });
  }

  /** Draws each head's map, where Python has sent them. Maps of another run, or in other colours, go. */
  paint() {
    if (this.drawn.differs("run", this.received.run, this.palette)) {
      for (const { firstChild } of this.buttons.flat()) firstChild.width = firstChild.height = 1;
    }
    for (const { heads, maps, rows, columns } of this.received.families) {
      for (const [name, ofLayer] of Object.entries(maps ?? {})) {
        for (let head = 0; head < heads; head++) {
          const bytes = ofLayer.subarray(head * rows * columns, (head + 1) * rows * columns);
          const values = Float32Array.from(bytes, (byte) => (byte === HIDDEN ? NaN : byte / ONE));
          const canvas = this.found({ place: name, head }).firstChild;
          paintPixels(canvas, { values, rows, columns }, this.palette.scale.weight, { low: 0, high: 1 });
        }
      }
    }
  }

  found({ place, head }) {
    return this.buttons.flat().find((one) => one.place === place && one.head === head);
  }

  /** Marks a head. */
  choose({ place, head }) {
    const chosen = this.found({ place, head });
    if (!chosen || chosen === this.chosen) return;
    const mark = (button, is) => {
      button.setAttribute("aria-selected", String(is));
      button.tabIndex = is ? 0 : -1;
      for (const one of button.parentElement.querySelectorAll(".head")) {
        one.dataset.testid = is ? `head-${one.head}` : `${one.place}-${one.head}`;
      }
    };
    if (this.chosen) mark(this.chosen, false);
    mark(chosen, true);
    this.chosen = chosen;
    this.buttons.forEach((row) => row[0].closest(".row").classList.toggle("here", row.includes(chosen)));
    if (this.stacks) {
      for (const part of this.parts) part.hidden = !part.contains(chosen);
      check([...this.stacks.children], this.parts.findIndex((part) => !part.hidden));
    }
    const name = `${chosen.full}H${head}`;
    this.root.querySelector(".name").textContent = name.length > LONGEST ? `H${head}` : name;
    this.opener.setAttribute("aria-label", `Head ${chosen.full}H${head}. Choose another`);
    lightLayer(place);
  }

  /** What a click or a key chooses. */
  pick(detail) {
    this.choose(detail);
    if (!isShownAtOnce(detail, this.channel)) this.trigger("head", detail);
  }

  move(event) {
    if (event.target.closest("[role=radiogroup]")) return moveAmongRadios(event);
    if (event.key === "Escape") this.opener.focus(); // the browser closes the panel
    const [down, right] = STEPS[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const row = this.buttons.findIndex((buttons) => buttons.includes(this.chosen));
    const next = this.buttons[row + down];
    const at = Math.min(this.buttons[row].indexOf(this.chosen) + right, (next?.length ?? 0) - 1);
    if (!next?.[at]) return;
    this.pick({ place: next[at].place, head: next[at].head });
    next[at].focus(); // of a hidden layer it is shown now
  }

  toggled(open) {
    this.opener.setAttribute("aria-expanded", String(open));
    if (!open) return;
    this.trigger("opened", true);
    const { bottom, right } = this.opener.getBoundingClientRect();
    const left = Math.max(8, Math.min(right, innerWidth - 8) - this.panel.offsetWidth);
    Object.assign(this.panel.style, { top: `${bottom + 6}px`, left: `${left}px` });
    this.chosen?.focus();
  }
}
