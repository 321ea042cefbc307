// The keys that work on every page. The component is mounted once and listens to the whole document.

import { Finder } from "./finder.js";
import { Lecture } from "./lecture.js";
import { Links } from "./links.js";
import { Draft, focusSentence, sendsSentence } from "./sentence.js";

const SINGLE = "single-keys"; // in the browser's storage: "off" where keys without Ctrl do nothing
const keyboards = new WeakMap();

export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".keys");
  let keyboard = keyboards.get(parentElement);
  if (keyboard?.root !== root) {
    keyboard?.close();
    keyboards.set(parentElement, (keyboard = new Keyboard(root)));
  }
  if (data.chosen) keepModel(data.chosen);
  if ("led" in data) keepClass(data.led);
  keyboard.links.take(data.view);
  keyboard.finder.take(data, {
    open: (address) => keyboard.links.go(address),
    jump: (goal) => setTriggerValue("jump", goal),
    look: () => setTriggerValue("look", Date.now()),
  });
  root.dataset.ready = "true";
  const mounted = (keyboard.mounted = {});
  // Where data follow each other quickly, Streamlit ends the earlier mount after the later one.
  return () => {
    if (keyboard.mounted !== mounted) return;
    keyboard.close();
    keyboards.delete(parentElement);
  };
}

class Keyboard {
  constructor(root) {
    const part = (name) => root.querySelector(`.${name}`);
    this.root = root;
    this.finder = new Finder(part("finder"));
    this.lecture = new Lecture(part("project"), part("leave"));
    this.list = part("list");
    this.single = part("single");
    this.single.checked = kept(SINGLE) !== "off";
    this.single.onchange = () => keep(SINGLE, this.single.checked ? "on" : "off");
    part("goto").onclick = () => this.finder.open();
    part("help").onclick = () => this.list.showModal();
    this.list.onclick = ({ target }) => target === this.list && this.list.close();
    this.listening = new AbortController();
    const { signal } = this.listening;
    document.addEventListener("keydown", (event) => this.hear(event), { capture: true, signal });
    document.addEventListener("click", ({ target }) => target.closest?.("[data-search]") && this.finder.open(), { signal });
    document.addEventListener("keyup", ({ key }) => key.toLowerCase() === "b" && holdBefore(false), { signal });
    addEventListener("blur", () => holdBefore(false), { signal });
    this.links = new Links(signal);
    this.draft = new Draft(signal);
  }

  close() {
    this.listening.abort();
    this.lecture.sizes.disconnect();
  }

  /** Does what a key means. What it did nothing with goes on to the element that has the keyboard. */
  hear(event) {
    if (event.isComposing || this.isOpen) return;
    const done = sendsSentence(event) || this.isFinder(event) || this.isSingle(event) || this.lecture.hear(event);
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Whether a dialog is open: its keys are its own. */
  get isOpen() {
    return this.list.open || this.finder.dialog.open;
  }

  isFinder({ key, ctrlKey, metaKey, altKey, shiftKey }) {
    if (key.toLowerCase() !== "k" || ctrlKey === metaKey || altKey || shiftKey) return false;
    this.finder.open();
    return true;
  }

  /** A key without Ctrl means something wherever nobody types. */
  isSingle(event) {
    if (!this.single.checked || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return false;
    const meanings = {
      "?": () => this.list.showModal(),
      "/": focusSentence,
      p: () => this.lecture.toggle(),
      b: () => holdBefore(true),
    };
    const meaning = meanings[event.key.toLowerCase()];
    meaning?.();
    return Boolean(meaning);
  }
}

/** Tells the explorer of the main job whether it is to show the unchanged run (viz/explorer/js/runs.js). */
function holdBefore(detail) {
  document.dispatchEvent(new CustomEvent("explorer-before", { detail }));
}

/** What this browser keeps by a name. In a frame of another page it may keep nothing. */
function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // as above: it holds for this page only
  }
}

/** Keeps the name of a model in this browser, where the server reads it when the next visit begins. */
function keepModel(name) {
  document.cookie = `attention-model=${encodeURIComponent(name)}; max-age=31536000; samesite=strict`;
}

/** Keeps the class that this visitor leads until the browser is closed, so that a reload does not end it. */
function keepClass(led) {
  document.cookie = `attention-class=${encodeURIComponent(led)}; samesite=strict${led ? "" : "; max-age=0"}`;
}

/** Whether the key goes into a box. */
function isTyping(event) {
  const [target] = event.composedPath();
  return target.isContentEditable || Boolean(target.matches?.("textarea, select, input:not([type=checkbox], [type=radio])"));
}
