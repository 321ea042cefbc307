// Mounts the explorer in a page of Streamlit's.

import { Explorer } from "./explorer.js";
import { unpacked } from "./message.js";

const explorers = new WeakMap();

export default function mountInApp({ data, parentElement, setStateValue, setTriggerValue }) {
  let explorer = explorers.get(parentElement);
  if (explorer?.root !== parentElement.querySelector(".explorer")) {
    explorer = new Explorer(parentElement);
    explorers.set(parentElement, explorer);
  }
  explorer.python.connect({
    tell: (selection) => setStateValue("selection", selection),
    open: (layer) => setTriggerValue("layer", layer),
    detail: (detail) => setTriggerValue("detail", detail),
    check: (run) => setTriggerValue("check", run),
    ahead: (run) => setTriggerValue("ahead", run),
  });
  const mounted = (explorer.mounted = {});
  explorer.receive(unpacked(data, explorer.received));
  // Where data follow each other quickly, Streamlit ends the earlier mount after the later one.
  return () => {
    if (explorer.mounted !== mounted) return;
    explorer.close();
    explorers.delete(parentElement);
  };
}
