// Heads over a corpus: the map of all heads, their table and one head's card; and, in a place of its own, that head's
// examples. Python sends all numbers at once, so a click is answered here; Python is told of it afterwards.

import { paletteOf } from "../../../explorer/js/colours.js";
import { afterFrame, element } from "../../../explorer/js/elements.js";
import { unpacked } from "../../../explorer/js/message.js";
import { Card } from "./card.js";
import { ExampleList } from "./examples.js";
import { HeadMap } from "./map.js";
import { HeadTable } from "./table.js";

const parts = new WeakMap();
// What the reader chose last, by message: Streamlit may mount a place anew.
const kept = (globalThis[Symbol.for("corpus-choices")] ??= new Map());

export default function mount({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".corpus");
  let part = parts.get(parentElement);
  if (part?.root !== root) {
    const Kind = root.dataset.part === "map" ? Heads : ExampleList;
    part = new Kind(root);
    parts.set(parentElement, part);
  }
  part.tell = (choice) => setStateValue("chosen", choice);
  part.message = unpacked(data, part.message);
  part.palette = paletteOf(parentElement.host ?? parentElement, part.message.theme, part.palette);
  for (const name of ["query", "key"]) root.style.setProperty(`--ring-${name}`, part.palette.hue[name]);
  part.receive();
  root.dataset.ready = "true";
  return () => {
    part.close();
    parts.delete(parentElement);
  };
}

class Heads {
  constructor(root) {
    this.root = root;
    const choose = (head) => this.choose(head);
    this.maps = element("div", { class: "maps" });
    this.axes = element("p", { class: "axes" });
    this.legend = element("p", { class: "legend", role: "group", "aria-label": "Labels: show one alone" });
    this.card = new Card(element("section", { class: "card", "aria-label": "The chosen head", "data-testid": "card" }));
    this.table = new HeadTable(element("section", { class: "heads", "aria-label": "All heads" }), {
      choose,
      filter: () => this.drawMaps(),
    });
    this.unseen = element("p", { class: "unseen", "aria-live": "polite", "data-testid": "corpus-news" });
    const left = element("div", { class: "left" }, this.maps, this.legend, this.axes);
    const top = element("div", { class: "halves" }, left, this.card.holder);
    root.replaceChildren(top, this.table.holder, this.unseen);
    this.resize = new ResizeObserver(() => this.schedule());
    this.resize.observe(this.maps);
  }

  /** New data or a new theme. */
  receive() {
    const { message } = this;
    if (this.drawn !== message) {
      this.drawn = message;
      this.only = null;
      this.heads = message.profiles.flatMap((profile, number) =>
        profile.names.map((name, head) => ({ profile: number, head, name })),
      );
      this.at = kept.get(message.key) ?? { profile: 0, head: message.start };
      const choose = (head) => this.choose(head);
      this.pictures = message.profiles.map((profile, number) => new HeadMap(number, choose));
      this.maps.replaceChildren(...this.pictures.map(({ holder }) => holder));
      this.maps.dataset.count = this.pictures.length;
      this.axes.textContent = axesInWords(message.axes);
      this.table.receive(message, this.heads);
    }
    this.drawLegend();
    this.draw();
  }

  /** The head that is shown beside the chosen one: of the other profile. */
  get partner() {
    const partners = this.message.partners[this.at.profile];
    return partners ? { profile: 1 - this.at.profile, head: partners[this.at.head] } : null;
  }

  choose({ profile, head }) {
    this.at = { profile, head };
    kept.set(this.message.key, this.at);
    if (kept.size > 8) kept.delete(kept.keys().next().value);
    this.draw();
    this.unseen.textContent = this.card.words;
    this.untold?.();
    this.untold = afterFrame(() => this.tell(this.at));
  }

  draw() {
    this.drawMaps();
    this.card.draw(this);
    this.table.draw(this.at);
    Object.assign(this.root.dataset, this.at, { name: this.message.profiles[this.at.profile].names[this.at.head] });
  }

  drawMaps() {
    if (this.maps.clientWidth < 60) return; // in a tab that is not open
    this.pictures.forEach((picture) => picture.draw({ ...this, partner: this.partner, shown: this.table.shown }));
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.drawn && this.draw());
  }

  /** A button a label: shows the heads of that label alone, or all again. */
  drawLegend() {
    const { labels } = this.message;
    this.legend.hidden = labels.length === 0;
    const buttons = labels.map(({ name, colour }, number) => {
      const dot = element("i", { style: `background: ${colour}`, "aria-hidden": "true" });
      const pick = () => {
        this.only = this.only === number ? null : number;
        this.table.showLabel(this.only);
        this.drawLegend();
      };
      const pressed = String(this.only === number);
      return element("button", { type: "button", "aria-pressed": pressed, onclick: pick }, dot, name);
    });
    const none = element("span", {}, element("i", { class: "none", "aria-hidden": "true" }), "no label");
    this.legend.replaceChildren(...buttons, none);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.untold?.();
    this.resize.disconnect();
  }
}

function axesInWords(axes) {
  const [across, up] = axes.map(({ share, words }) => `${words} (${Math.round(100 * share)} % of the variance)`);
  return `To the right: ${across}. Upwards: ${up}.`;
}
