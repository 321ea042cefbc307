"""The drawers of Explore, beside the map: of the chosen cell, of what was changed, and of all that can be."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.nn.places import head_label
from viz.elements.one_of import one_of
from viz.explorer.message import Hero
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.shell.panel import Panel, draw_view
from viz.state.look import Look
from viz.state.session import change_view, current
from viz.views.all_heads.first_difference import difference_from_a_file, first_difference_of
from viz.views.attention.edges import cell_of, edges
from viz.views.attention.why import why_this_score
from viz.views.laboratory.editors import more_changes
from viz.views.laboratory.effects import rows_effect, stream_effect

WHY, CARRIES, CHANGED, MORE = "Why?", "Carries", "Changed", "More changes"  # as links say them
_STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"
_CHANGED: dict[str, Callable[[Look], Panel]] = {
    "Where they part": first_difference_of,
    "Rows of weights": rows_effect,
    "Stream": stream_effect,
}


def changed(look: Look) -> Panel:
    """The changed run beside the unchanged one; where nothing is changed, this run beside a file's."""
    if look.baseline is None:
        return difference_from_a_file(look)
    shown = one_of("Changed", list(_CHANGED), "changed-as", quiet=True)
    return _CHANGED[shown](look)


DRAWERS: dict[str, tuple[str, Callable[[Look], Panel]]] = {
    WHY: ("Why this score?", why_this_score),
    CARRIES: ("What it carries", edges),
    CHANGED: ("What changed", changed),
    MORE: ("More changes", more_changes),
}
OF_A_CELL = (WHY, CARRIES)


def drawer(look: Look, hero: Hero) -> None:
    """The one that the view names, if any. hero: of the same run."""
    if (show := current().show) not in DRAWERS:
        return
    title, view = DRAWERS[show]
    st.html(_STYLE)
    with st.container(key="drawer", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", key="drawer-title"):
            st.subheader(title, anchor=False, width="content")
            if show in OF_A_CELL:
                st.markdown(_cell(look), width="content")
            elif hero.loss is not None and look.baseline is not None:
                st.markdown(
                    f"Loss per token {hero.loss['before']} → **{hero.loss['after']}**",
                    width="content",
                )
            st.button("Close", key="drawer-close", type="tertiary", on_click=_close)
        draw_view(view, look)


def _cell(look: Look) -> str:
    """L1H7: ·Tom → ·Hill"""
    cell, (queries, keys) = cell_of(look), look.labels
    tokens = token_label(queries[cell.query]), token_label(keys[cell.key])
    return f"{head_label((cell.place, cell.head))}: **{plain(tokens[0])}** → **{plain(tokens[1])}**"


def _close() -> None:
    change_view(replace(current(), show=""))
