// The sentence box: Enter sends what is written. Streamlit's box of several lines sends it at Ctrl + Enter.

const BOX = ".st-key-choose-text textarea";

export function focusSentence() {
  document.querySelector(BOX)?.focus();
}

/** Whether this key sends the sentence; then it does. With Shift it begins a line, as in any box. */
export function sendsSentence({ key, target, shiftKey, ctrlKey, metaKey }) {
  if (key !== "Enter" || shiftKey || ctrlKey || metaKey || !target.matches?.(BOX)) return false;
  target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
  return true;
}

/** Keeps what is written when the connection is lost. The box is locked then, and so left, and when it is left
 * Streamlit sends its text: that would be lost, and the box would count as sent. */
export function keepDraft(event) {
  const { testConnectionState } = document.querySelector("[data-testid=stApp]").dataset;
  if (testConnectionState !== "CONNECTED" && event.target.matches?.(BOX)) event.stopPropagation();
}
