// Formulas that stand in the page as LaTeX. Those in a part that is closed are drawn when it is opened.

/** Draws those of a page. Without KaTeX they stay as they are written. */
export function drawFormulas(page) {
  for (const part of page.querySelectorAll("details")) {
    part.addEventListener("toggle", () => part.open && drawIn(part));
  }
  drawIn(page);
}

function drawIn(place) {
  for (const holder of place.querySelectorAll(".latex:not([data-drawn])")) {
    if (holder.closest("details:not([open])") || !globalThis.katex) continue;
    holder.dataset.drawn = "";
    const latex = holder.textContent;
    globalThis.katex.render(latex, holder, { displayMode: true, throwOnError: false });
  }
}
