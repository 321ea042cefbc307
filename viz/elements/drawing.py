"""A sentence with arcs on a page: our own SVG, which Streamlit's element for HTML leaves out."""

from collections.abc import Mapping

import streamlit as st

_component = st.components.v2.component(
    "drawing",
    html="""<div class="drawing" data-testid="arc-line">
<div class="wide"></div><div class="narrow"></div></div>""",
    css="""
.drawing { container-type: inline-size; }
.drawing svg { display: block; width: 100%; color: var(--st-text-color); overflow: visible; }
.drawing .wide svg { max-width: 62rem; }
@container (width < 600px) { .drawing .wide { display: none; } }
@container (width >= 600px) { .drawing .narrow { display: none; } }
.drawing text { fill: currentColor; font-family: var(--st-code-font); font-size: 18px; text-anchor: middle; }
.drawing .said { fill: var(--st-primary-color); font-weight: 600; }
.drawing rect { fill: transparent; }
.drawing path { fill: none; stroke: var(--st-primary-color); stroke-linecap: round; pointer-events: none; }
.drawing .first { stroke: color-mix(in srgb, currentColor 45%, transparent); }
.drawing .token { cursor: pointer; outline: none; }
.drawing .token:focus-visible rect { stroke: currentColor; stroke-width: 2; }
.drawing .arcs:not(.shown) { display: none; }
.drawing .shown rect { fill: color-mix(in srgb, var(--st-primary-color) 18%, transparent); }
""",
    js="""
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const drawn = new WeakMap();

function listen(holder) {
  const [tokens, arcs] = [".token", ".arcs"].map((name) => [...holder.querySelectorAll(name)]);
  const numberOf = (event) => tokens.indexOf(event.target.closest(".token"));
  const show = (shown) => {
    for (const all of [tokens, arcs]) all.forEach((one, at) => one.classList.toggle("shown", at === shown));
  };
  const choose = (chosen) => {
    tokens.forEach((token, at) => {
      token.classList.toggle("chosen", at === chosen);
      token.setAttribute("tabindex", at === chosen ? "0" : "-1");
    });
    show(chosen);
  };
  const showChosen = () => show(tokens.findIndex((token) => token.classList.contains("chosen")));
  holder.onpointerover = (event) => (numberOf(event) >= 0 ? show(numberOf(event)) : showChosen());
  holder.onpointerleave = showChosen;
  holder.onclick = (event) => numberOf(event) >= 0 && choose(numberOf(event));
  holder.onkeydown = (event) => {
    const next = tokens[numberOf(event) + STEPS[event.key]];
    if (!next) return;
    event.preventDefault();
    choose(tokens.indexOf(next));
    next.focus();
  };
}

export default function ({ data, parentElement }) {
  for (const [name, svg] of Object.entries(data)) {
    const holder = parentElement.querySelector(`.${name}`);
    if (drawn.get(holder) === svg) continue;
    drawn.set(holder, svg);
    holder.innerHTML = svg;
    listen(holder);
  }
}
""",
)


def drawing(svg: Mapping[str, str], key: str) -> None:
    """Draws an SVG of `arc_line`, whose text is escaped: "wide" for a screen, "narrow" for a phone."""
    _component(key=key, data=dict(svg))
