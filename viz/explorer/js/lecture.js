// The lecture view, which the page opens: the explorer shows the picture, its number and the strip, and takes the
// steps of the page's keys.

import { within } from "./geometry.js";

/** Follows the lecture view until `signal` says that the explorer has gone. */
export function followLecture(explorer, signal) {
  const show = () => explorer.root.classList.toggle("projected", "lecture" in document.documentElement.dataset);
  const take = (event) => {
    if (!explorer.received) return;
    event.preventDefault(); // says that there is an explorer
    step(explorer, event.detail);
  };
  document.addEventListener("explorer-lecture", show, { signal });
  document.addEventListener("explorer-step", take, { signal });
  show();
}

/** One step: how far stage, head, layer, row or column move. */
function step(explorer, { stage = 0, head = 0, layer = 0, row = 0, column = 0 }) {
  const { state, offered: stages, layers, stage: shown } = explorer;
  const next = (list, chosen, by) => list[within(list.findIndex(({ name }) => name === chosen) + by, list.length)];
  if (layer && layers.length) explorer.open(next(layers, explorer.layer.name, layer).name);
  if (stage) explorer.choose({ stage: next(stages, state.stage, stage).name });
  if (head) explorer.choose({ head: state.head + head });
  if (row) explorer.choose({ [shown.rows]: state[shown.rows] + row });
  if (column) explorer.choose({ [shown.columns]: state[shown.columns] + column });
}
