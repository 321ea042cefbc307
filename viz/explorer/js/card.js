// The card beside a chosen cell: its three numbers, and the ways on from it.

import { button, drawnLarger, element, span } from "./elements.js";
import { cellBox, contains } from "./geometry.js";
import { copied, factorOf, readoutOf } from "./readout.js";

const [GAP, EDGE] = [10, 8]; // pixels from the cell, and from the edges of the window

/** What a place says of the cell that its card stands on; its card is open while that is the chosen cell. */
export function cellName({ query, key }) {
  return `${query} ${key}`;
}

/** The ways on from the chosen cell as links, which are kept while they are the same: one of them may have the
 *  keyboard. */
export function drawWays(holder, { hero, cell, layer }) {
  const names = Object.keys(hero.ways);
  const links = [...holder.querySelectorAll("a")];
  if (links.map((link) => link.textContent).join() !== names.join()) {
    links.splice(0).forEach((link) => link.remove());
    links.push(...names.map((name) => element("a", { "data-page": "" }, name)));
    holder.prepend(...links);
  }
  const at = { place: layer.name, head: cell.head, query: cell.query, key: cell.key };
  links.forEach((link, n) => {
    const address = new URL(hero.ways[names[n]], location.href);
    if (address.search) for (const [name, value] of Object.entries(at)) address.searchParams.set(name, value);
    link.href = address.pathname + address.search;
  });
}

export class Card {
  /** `leave`: closes it and leads back to the map. */
  constructor(holder, leave) {
    this.holder = holder;
    this.numbers = element("dl", {});
    this.ways = element("p", { class: "ways" });
    holder.replaceChildren(this.numbers, this.ways);
    holder.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      leave();
    };
  }

  /** `scene`: of the shown run. `figure`: the map; `place`: its element. */
  draw(scene, figure, place, headName) {
    const { cell } = scene;
    const { window, rowAxis, columnAxis, layout } = figure;
    const isShown = scene.card === cellName(cell) && rowAxis === "query" && columnAxis === "key";
    this.holder.hidden = !isShown || !contains(window, cell.query, cell.key);
    if (this.holder.hidden) return;
    this.scene = scene;
    this.line = readoutOf(scene, headName);
    const [query, key] = [scene.queries.short[cell.query], scene.keys.short[cell.key]];
    this.holder.setAttribute("aria-label", `${headName}: ${query} → ${key}`);
    this.numbers.replaceChildren(...numbersOf(scene).flatMap(row));
    this.drawWays();
    this.stand(cellBox(layout.boxes.at(layout.boxes.length === 3 ? 1 : 0), window, cell.query, cell.key), place);
  }

  drawWays() {
    drawWays(this.ways, this.scene);
    if (this.ways.querySelector("button")) return;
    const copy = button("copy-cell", () => copied(copy, this.line), {}, "copy");
    this.ways.append(copy);
  }

  /** Beside the cell: at its right or, where that leaves the window, at its left; below the map where neither has room. */
  stand(cell, place) {
    const { holder } = this;
    const larger = drawnLarger();
    const stage = holder.parentElement.getBoundingClientRect();
    const [start, top] = [stage.left / larger, stage.top / larger];
    const [wide, tall] = [innerWidth / larger, innerHeight / larger];
    holder.classList.remove("below");
    const { offsetWidth: width, offsetHeight: height } = holder;
    const right = place.offsetLeft + cell.left + cell.width + GAP;
    const left = place.offsetLeft + cell.left - GAP - width;
    const isAtRight = start + right + width + EDGE <= wide;
    holder.classList.toggle("below", wide <= NARROW || (!isAtRight && start + left < EDGE));
    const lowest = tall - top - height - EDGE;
    holder.style.left = `${isAtRight ? right : left}px`;
    holder.style.top = `${Math.max(Math.min(place.offsetTop + cell.top, lowest), EDGE - top)}px`;
  }
}

const NARROW = 640; // pixels of a window: a phone's

/** Score, scaled score and weight, each with its colour; of a masked cell the second says so. */
function numbersOf({ layer, derived, cell, palette, written }) {
  const number = (step) => written(derived.row(step, cell.query)[cell.key]);
  const isMasked = derived.hidden?.[cell.query * layer.keys + cell.key] === 1;
  return [
    ["score q·k", number("scores"), palette.ink.score],
    [`scaled, ${factorOf(layer)}`, number("scaled"), palette.ink.score],
    [isMasked ? "weight, masked" : "weight", number("weights"), palette.ink.weight],
  ];
}

function row([name, number, ink]) {
  return [element("dt", {}, name), element("dd", { style: `color:${ink}` }, span("number", number))];
}
