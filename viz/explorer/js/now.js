// The chosen cell's number, large, beside the map; and of the bars below the tokens the word that a change moved most.

import { element, span } from "./elements.js";
import { chip, chipOf, writeParts } from "./headline.js";
import { simple } from "./numbers.js";
import { mostMoved } from "./subject.js";

/** The number of a stage of tokens, else the weight; beside it, small, that of the unchanged run. `scene`: of the shown
 *  run. */
export function drawNow(holder, scene) {
  const { stage, derived, before, cell, palette, layer, written } = scene;
  const isOfCell = stage.rows === "query" && stage.columns === "key";
  const [name, step, quantity] = isOfCell ? [stage.cell, stage.name, stage.quantity] : ["weight", "weights", "weight"];
  const at = cell.query * layer.keys + cell.key;
  const numberOf = (one) => {
    const number = one.row(step, cell.query)[cell.key];
    const isMasked = one.hidden?.[at] && (step === "masked" || (step === "weights" && !number));
    return isMasked ? "masked" : written(number);
  };
  const [now, was] = [numberOf(derived), before && numberOf(before)];
  const large = element("b", { style: `color:${palette.ink[quantity]}`, "data-testid": "now-number" }, now);
  holder.hidden = false;
  holder.replaceChildren(
    element("p", {}, chipOf(chip("query", scene.queries, cell.query)), " → ", chipOf(chip("key", scene.keys, cell.key))),
    element("p", {}, large, span("", was === null || was === now ? name : `${name}, ${was === "masked" ? "hidden before" : `before ${was}`}`)),
  );
}

/** Nothing where no probability is known, and where none moved. */
export function drawSure(holder, { hero, keys }, isShown) {
  const { sure } = hero;
  const most = mostMoved(sure);
  const numbers = most && [most.before, most.after].map((share) => simple(share ?? 0)).join(" → ");
  const isOne = !most || keys.full.filter((label) => label === keys.full[most.position]).length === 1;
  const named = most && ["probability of ", chip("key", keys, most.position), isOne ? " " : ` (${most.position}) `, { number: numbers }];
  writeParts(holder, most && isShown ? named : []);
}
