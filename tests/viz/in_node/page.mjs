// A page without a browser, for the scripts that write in one: linkedom's elements, and the least of what else they
// ask of a browser. Nothing is laid out, focused or painted here.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

import { parseHTML } from "linkedom";

const ROOT = new URL("../../../", import.meta.url);
export const read = (name) => readFileSync(new URL(name, ROOT), "utf8");

runInThisContext(read("static/katex/katex.min.js")); // before there is a document, which it would ask of
const { document } = parseHTML("<!doctype html><html><head></head><body></body></html>");
const { Element, HTMLElement, HTMLCanvasElement, HTMLInputElement } = document.defaultView;
const page = new EventTarget();
const { setTimeout: later } = globalThis;

export const clipboard = {}; // a browser without one has no `writeText`

Object.assign(globalThis, {
  ...{ document, window: globalThis, HTMLInputElement, innerWidth: 1040, innerHeight: 1000, scrollY: 0 },
  ...Object.fromEntries(["addEventListener", "removeEventListener", "dispatchEvent"].map((name) => [name, page[name].bind(page)])),
  requestAnimationFrame: (task) => setImmediate(() => task(performance.now())),
  cancelAnimationFrame: clearImmediate,
  setTimeout: (...task) => later(...task).unref(), // nobody waits for what a page does when it is left
  getComputedStyle: () => ({ getPropertyValue: () => "" }),
  getSelection: () => ({ selectAllChildren() {} }),
  matchMedia: () => ({ matches: true }), // motion is not liked
  location: new URL("http://explorer.test/"),
  localStorage: { getItem: () => null, setItem() {} },
  ResizeObserver: class { observe() {} disconnect() {} },
  DOMMatrix: class { scale() {} },
});
const navigator = { userAgent: "Node", get clipboard() { return clipboard.writeText && clipboard; } };
Object.defineProperty(globalThis, "navigator", { value: navigator });

for (const name of ["Checked", "Pressed", "Expanded", "Selected", "Label"]) reflect(`aria${name}`, `aria-${name.toLowerCase()}`);
reflect("role", "role");
const size = { clientWidth: 700, clientHeight: 700 };
for (const side of ["offsetLeft", "offsetTop", "offsetWidth", "offsetHeight", "scrollWidth", "scrollHeight"]) size[side] = 0;
for (const [name, value] of Object.entries(size)) Object.defineProperty(HTMLElement.prototype, name, { value });

/** A property that stands for an attribute. */
function reflect(name, attribute) {
  const get = function () { return this.getAttribute(attribute); };
  const set = function (value) { this.setAttribute(attribute, value); };
  Object.defineProperty(Element.prototype, name, { get, set });
}

/** A pen that draws nothing. */
const pen = new Proxy({}, { set: () => true, get: (_, name) => PEN[name] ?? (() => pen) });
const PEN = {
  createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
  getTransform: () => ({ a: 1 }),
  measureText: () => ({ width: 0 }),
};
HTMLCanvasElement.prototype.getContext = () => pen;

/** Libraries and files, as pages keep them by name; of what could not be loaded there is null. */
export const libraries = new Map();
globalThis[Symbol.for("attention-explorer.libraries")] = libraries;
