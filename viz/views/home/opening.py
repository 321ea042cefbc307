"""Explore before its model is there: the recorded run of the sentence that a visitor without a link sees.

The server answers seconds before PyTorch is read and the model loaded. Meanwhile the page shows what the same
model gave for the same sentence, and says so; then the live run takes its place. `python -m tools.opening`
records it, and a test holds it to the live run.
"""

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from viz.explorer.component import recorded_explorer
from viz.explorer.packing import numbers_start, words
from viz.notation.words import sentences_of
from viz.state.engine import still_wanted
from viz.state.link import View
from viz.state.look import is_loaded, loaded
from viz.state.navigation import has_others
from viz.state.quota import page_runs
from viz.state.session import change_view, choose_detail, current
from viz.tour.progress import progress
from viz.views.home.outcome import ways

say = sentences_of("home.opening")

RECORDED = Path(__file__).with_suffix(".block.zlib")
OUTCOME = "outcome"  # among the words of the block: what stands beside the map, each as HTML
_REFUSED = "first-model-refused"  # session state


def is_recorded() -> bool:
    """Whether the page shows the recorded run: the view is that of the opening, whatever its cell, and its
    model is still to be loaded."""
    first = View()
    return (
        current().at(first.selection) == first
        and not is_loaded(first.model)
        and not progress().under_way
        and _REFUSED not in st.session_state
    )


def opening() -> None:
    """The recorded map and what came of its run, each where the live one will be; then the live page, once
    the model is loaded."""
    said, numbers = recorded()
    left, right = st.columns([5, 2], gap="medium")
    with right:
        with st.container(gap="xxsmall", key="outcome"):
            for part in said.pop(OUTCOME):
                st.html(part)
        st.caption(say("recorded_until_loaded"))
    view = current()
    hero = said["hero"] | {"ways": ways(view) if has_others() else {}}
    if view.head != View().head:
        hero["job"] = ""  # recorded of one head only
    with left:
        chosen = recorded_explorer(
            said | {"hero": hero},
            numbers,
            view.selection,
            select=lambda selection: change_view(current().at(selection)),
            open_layer=lambda name: change_view(replace(current(), place=name)),
            set_detail=choose_detail,
        )
    change_view(view.at(chosen))
    page_runs.give_up()  # what follows may take seconds
    page_runs.let_draw(still_wanted)
    try:
        loaded(View().model, lambda sentence, share: still_wanted())
    except ValueError:  # the live page says why
        st.session_state[_REFUSED] = True
    st.rerun()


def recorded() -> tuple[dict[str, Any], bytes]:
    """What the block says, and its arrays."""
    block = zlib.decompress(RECORDED.read_bytes())
    return words(block), block[numbers_start(block) :]
