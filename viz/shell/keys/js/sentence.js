// The boxes of a sentence: Enter sends what is written. Streamlit's box of several lines sends it at Ctrl + Enter.

const BOX = ".st-key-choose-text textarea";
const SENDING = `${BOX}, [class*="st-key-laboratory-patch-text"] textarea`;

export function focusSentence() {
  document.querySelector(BOX)?.focus();
}

/** Whether this key sends the sentence; then it does. With Shift it begins a line, as in any box. */
export function sendsSentence({ key, target, shiftKey, ctrlKey, metaKey }) {
  if (key !== "Enter" || shiftKey || ctrlKey || metaKey || !target.matches?.(SENDING)) return false;
  target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
  return true;
}

/** Keeps what is written when the connection is lost. The box is locked then, and so left, and what is left
 * Streamlit sends: it would be lost, and count as sent. Streamlit may also forget it before it is connected again. */
export class Draft {
  constructor(signal) {
    this.app = document.querySelector("[data-testid=stApp]");
    [this.text, this.ran] = [null, false];
    document.addEventListener("focusout", (event) => this.keep(event), { capture: true, signal });
    const observer = new MutationObserver(() => this.restore());
    const attributeFilter = ["data-test-connection-state", "data-test-script-state"];
    observer.observe(this.app, { attributes: true, attributeFilter });
    signal.addEventListener("abort", () => observer.disconnect());
  }

  get isConnected() {
    return this.app.dataset.testConnectionState === "CONNECTED";
  }

  keep(event) {
    if (this.isConnected || !event.target.matches?.(BOX)) return;
    event.stopPropagation();
    this.text = event.target.value;
  }

  /** Writes it again, as a hand would, after the run with which the page begins anew. */
  restore() {
    const box = document.querySelector(BOX);
    if (this.text === null || !this.isConnected) return;
    const isRunning = this.app.dataset.testScriptState !== "notRunning";
    this.ran ||= isRunning;
    if (!this.ran || isRunning || !box || box.disabled) return;
    const text = this.text;
    [this.text, this.ran] = [null, false];
    if (document.activeElement === document.body) box.focus();
    for (const written of [`${text} `, text]) write(box, written);
  }
}

/** React hears of a text that it does not know yet. */
function write(box, text) {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
}
