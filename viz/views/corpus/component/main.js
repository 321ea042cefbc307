// The examples of a head over a corpus.

import { paletteOf } from "../../../explorer/js/colours.js";
import { unpacked } from "../../../explorer/js/message.js";
import { ExampleList } from "./examples.js";

const parts = new WeakMap();

export default function mount({ data, parentElement }) {
  const root = parentElement.querySelector(".corpus");
  let part = parts.get(parentElement);
  if (part?.root !== root) {
    part = new ExampleList(root);
    parts.set(parentElement, part);
  }
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
