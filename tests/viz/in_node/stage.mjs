// The explorer mounted without a browser, with the message that Python sends: what it writes and tells can be read
// here. What a browser alone knows, the layout, the focus, pixels and Plotly's drawing, cannot.

import assert from "node:assert/strict";
import { afterEach } from "node:test";
import { setTimeout as after } from "node:timers/promises";

import { CHOOSE, SHOWN } from "../../../viz/explorer/js/head_events.js";
import { REPORT_DELAY } from "../../../viz/explorer/js/python.js";
import { libraries, read } from "./page.mjs";

const STILL = 4; // moments in which nothing is drawn anew
const PATIENCE = 5000; // moments until something is drawn

/** Stands for Plotly: keeps what it is told to draw. */
const Plotly = { react: async (plot, data, layout) => Object.assign(plot, { data, layout }), purge() {} };
export function loadLibraries() {
  libraries.set("plotly", Promise.resolve(Plotly)).set("katex", Promise.resolve({ katex: globalThis.katex, sheet: {} }));
}

loadLibraries();
const { default: mount } = await import("../../../viz/explorer/js/main.js");
const stages = [];
let mounts = 0;

afterEach(() => {
  for (const stage of stages.splice(0)) {
    assert.ok(!stage.root.textContent.includes("NaN"));
    stage.leave();
  }
});

/** The mounted explorer: what a law sends it and sees of it. */
export class Stage {
  reports = []; // the choices that Python heard of
  asked = []; // the layers, and how much is to be shown
  checks = []; // the runs whose check Python is to make
  shown = null; // the place and the head that the work bar was told of

  /** A place that has no layers yet, unless it is `again` the page of another stage. */
  constructor({ again = false } = {}) {
    if (!again) for (const kept of ["layers", "groups", "messages", "ahead"]) globalThis[Symbol.for(`attention-explorer-${kept}`)]?.clear();
    this.name = `mount ${mounts++}`;
    this.place = document.body.appendChild(document.createElement("div"));
    this.shadow = Object.assign(this.place.attachShadow({ mode: "open" }), { adoptedStyleSheets: [] });
    this.shadow.innerHTML = `<div>${read("viz/explorer/explorer.html")}</div>`;
    addEventListener(SHOWN, this.hear);
    stages.push(this);
  }

  /** Posts what Python sends, and waits until it is drawn. `more`: what the message says otherwise. */
  async send(block, more) {
    this.post(block, more);
    return this.ready();
  }

  /** `selection`: what differs from the cell (3, 1) of the weights of head 0. */
  post(block, { selection, ...more } = {}) {
    const chosen = { head: 0, stage: "weights", query: 3, key: 1, ...selection };
    const said = { mount: this.name, run: this.name, revision: 0, ...more, selection: chosen };
    this.unmount = mount({
      data: saying(block, said),
      parentElement: this.shadow,
      setStateValue: (_, value) => this.reports.push(value),
      setTriggerValue: (name, value) => (name === "check" ? this.checks : this.asked).push(value),
    });
  }

  hear = ({ detail }) => (this.shown = detail);

  leave() {
    this.unmount?.();
    removeEventListener(SHOWN, this.hear);
    this.place.remove();
  }

  /** Once everything is drawn, and nothing is drawn anew. */
  async ready() {
    let still = 0;
    for (let moment = 0; still < STILL; moment++) {
      assert.ok(moment < PATIENCE, "the explorer is never ready");
      await after(0);
      still = this.root.dataset.ready === "true" ? still + 1 : 0;
    }
    return this;
  }

  get root() {
    return this.shadow.querySelector(".explorer");
  }

  part(name) {
    return this.shadow.querySelector(`[data-testid="${name}"]`);
  }

  /** What is written in a part, spaces taken together. */
  text(name) {
    return this.part(name).textContent.replace(/\s+/g, " ").trim();
  }

  all(selector) {
    return [...this.shadow.querySelectorAll(selector)];
  }

  texts(selector) {
    return this.all(selector).map((one) => one.textContent);
  }

  /** Clicks one part after the other, and waits until each is drawn. */
  async click(...names) {
    for (const name of names) {
      this.part(name).click();
      await this.ready();
    }
  }

  /** What the work bar asks for: another head, or another layer of the run. */
  choose(change) {
    const { place, head } = this.shown;
    const detail = { head: change.head ?? head, place: "layer" in change ? place.replace(/\d+/, change.layer) : place };
    dispatchEvent(new CustomEvent(CHOOSE, { detail, cancelable: true }));
  }

  async chooseHead(head) {
    this.choose({ head });
    return this.ready();
  }

  /** Presses keys in a part. */
  async press(name, ...keys) {
    for (const key of keys) {
      this.part(name).dispatchEvent(Object.assign(new document.defaultView.Event("keydown", { bubbles: true }), { key }));
      await this.ready();
    }
  }

  /** The pointer at the middle of a cell of the picture: the frame of its box says where cells lie. */
  async point(type, row, column, rows, columns) {
    const [left, top, width, height] = ["x", "y", "width", "height"].map((side) => Number(this.all(".marks rect")[0].getAttribute(side)));
    const clientX = left + ((column + 0.5) / columns) * width;
    await this.pointer(this.part("figure"), type, { clientX, clientY: top + ((row + 0.5) / rows) * height });
    return this.ready();
  }

  /** What a pointer does on an element. */
  async pointer(target, type, more = {}) {
    target[`on${type}`]({ target, pointerType: "mouse", buttons: 0, ...more });
    return this.ready();
  }

  /** What is chosen is this. */
  holdsCell(names) {
    for (const [name, value] of Object.entries(names)) assert.equal(this.root.dataset[name], String(value), name);
  }

  get plot() {
    return this.all(".figure > .plotly")[0];
  }

  /** The numbers that Plotly was told to draw, row after row; NaN where there is a gap. */
  drawn(panel = 0) {
    return this.plot.data[panel].z.flatMap((row) => [...row]);
  }

  /** The LaTeX of a formula. */
  latex(name = "numbers-formula") {
    return this.part(name).querySelector("annotation").textContent;
  }

  /** Once the delay has passed after which Python is told. */
  async told() {
    await after(REPORT_DELAY + 50);
    return this;
  }

  /** Python is told without that delay. */
  async toldAtOnce() {
    await after(50);
    assert.equal(this.reports.length, 1);
  }

  /** The text of a file that is saved. */
  async file(format) {
    const made = new Promise((tell) => (URL.createObjectURL = (blob) => (tell(blob.arrayBuffer().then((bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))), "blob:made")));
    this.part(`save-${format}`).click();
    return made;
  }

  /** Opens the table, which is made then. */
  openTable() {
    this.part("open-table").click();
  }
}

/** A block that says something else beside its arrays. */
function saying(block, change) {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const said = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length)));
  const words = JSON.stringify({ ...said, ...change });
  const bytes = new TextEncoder().encode(words + " ".repeat(3)); // cut to a multiple of four, as arrays need it
  const whole = bytes.subarray(0, bytes.length - (bytes.length % 4));
  const made = new Uint8Array(4 + whole.length + block.length - 4 - length);
  new DataView(made.buffer).setUint32(0, whole.length, true);
  made.set(whole, 4);
  made.set(block.subarray(4 + length), 4 + whole.length);
  return made;
}
