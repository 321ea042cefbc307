// KaTeX, which is read when the first formula is drawn; and formulas that stand in the page as LaTeX. Those in a part
// that is closed are drawn when it is opened.

import { loadKatex, loadScript, styled } from "../../explorer/js/libraries.js";

/** KaTeX, from the page itself or from the file beside it. */
export async function katex() {
  if (!globalThis.katex) await loadScript("katex.js");
  return styled(globalThis.katex, globalThis.katexStyle);
}

/** Draws those of a page. Without KaTeX they stay as they are written. */
export async function drawFormulas(page) {
  if (!page.querySelector(".latex")) return;
  const loaded = await loadKatex({ loadKatex: katex }, page);
  if (!loaded) return;
  for (const part of page.querySelectorAll("details")) {
    part.addEventListener("toggle", () => part.open && drawIn(part, loaded));
  }
  drawIn(page, loaded);
}

function drawIn(place, { render }) {
  for (const holder of place.querySelectorAll(".latex:not([data-drawn])")) {
    if (holder.closest("details:not([open])")) continue;
    holder.dataset.drawn = "";
    render(holder.textContent, holder, { displayMode: true, throwOnError: false });
  }
}
