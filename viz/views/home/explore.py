"""The screen of the main job: a head on the visitor's sentence, what three switches change, and the way to a
real language model."""

from collections.abc import Callable

import streamlit as st

from model.download.entries import Entry, is_on_disk
from model.loading.registry import models
from viz.elements.error_boundary import error_boundary
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.controls import choose_parts, turns, undo_button
from viz.shell.downloads import entry_to_fetch, fetch_behind, fetching
from viz.shell.frame import frame
from viz.shell.head_picker import docked_heads
from viz.shell.model_picker import open_entry
from viz.shell.request import still_shown
from viz.state.link import Detail
from viz.state.locality import visitor_is_local
from viz.state.look import Look
from viz.state.navigation import HOME, html_link
from viz.state.session import current, opens_with
from viz.views.attention.edges import ScoreCell, cell_of
from viz.views.home.drawer import CHANGED, MORE, OF_A_CELL, drawer
from viz.views.home.outcome import hero_of, outcome

say = sentences_of("home.explore")


@st.fragment
@error_boundary()
def explore(look: Look) -> None:
    """The map of the chosen head with its tokens and arcs; beside it the loss, what the model expects next,
    three switches, and all heads; over these the open drawer. A switch leaves the rest of the page alone."""
    opens_with("")
    left, right = st.columns([5, 2], gap="medium")
    with right:
        expected = st.container(gap="xxsmall", key="outcome")
        with st.container(gap="xxsmall"):
            with st.container(
                horizontal=True, vertical_alignment="center", gap="small", key="what-if"
            ):
                st.markdown("**What if …**", width="content")
                undo_button()
            with st.container(gap="xxsmall", key="hero-switches"):
                choose_parts(look)
            ways_on = st.container(key="hero-onward")
        heads = st.container(key="hero-heads")
        real_model()
    switched = page.switched(look)
    if switched is None:
        return
    frame().head = look.place, look.head
    hero = hero_of(switched)
    with expected:
        outcome(switched, hero)
    with ways_on:
        st.html(_onward(is_changed=switched.baseline is not None))
    cell = cell_of(switched) if current().show in OF_A_CELL else None
    with left:
        _picture(switched, current().detail, cell)
    with heads:
        docked_heads(switched.request)  # of a long text they take longer than the picture
    drawer(switched, hero)


@st.fragment
@error_boundary()
def _picture(look: Look, detail: Detail, cell: ScoreCell | None) -> None:
    """The map. A click in it leaves alone what stands beside it: the map of all heads follows in the browser.
    Only another detail, another head, and another cell where a drawer shows it, draw the page anew.

    cell: that of the drawer.
    """
    if not still_shown(look) or current().detail != detail:
        st.rerun()
    page.explored(look, hero_of, turns)
    frame().follow_head()
    if cell is not None and cell != cell_of(look):
        st.rerun()


def _onward(*, is_changed: bool) -> str:
    """The ways on from a change; those from a cell stand beside it, in the explorer."""
    drawers = ({"What changed": CHANGED} if is_changed else {}) | {"More changes": MORE}
    links = [html_link(HOME, words, {"show": show}) for words, show in drawers.items()]
    links.append(html_link("pages/stands_out.py", "What stands out"))
    return f'<p class="onward">{" ".join(links)}</p>'


SECONDS = 1.0  # between two looks at the download


def real_model() -> None:
    """One line of the open model; below it, where that is another one, the model that the server fetches."""
    opened, offered = models.found(current().model), entry_to_fetch()
    with st.container(key="good-for", gap="xsmall"):
        if opened is not None and opened.good_for:
            st.caption(plain(f"{opened.short_title} is good for {opened.good_for}"))
        if offered is None or offered == opened:
            return
        job = fetching().known(offered.name)
        if job is not None and not job.ended.is_set():
            _on_its_way(offered)
        elif is_on_disk(offered):
            here = say("real_language_model", short_title=offered.short_title)
            _line(here, f"Open {offered.short_title}", open_entry, offered)
        elif job is None or job.refusal is None or job.stopped.is_set():
            words = say("real_language_model_not", short_title=offered.short_title)
            if job is not None:
                words += say("download_stopped_part")
            _line(words, "Fetch it" if job is None else "Resume", fetch_behind, offered)
        else:
            _line(job.refusal, "Try again", fetch_behind, offered)


@st.fragment(run_every=SECONDS)
def _on_its_way(entry: Entry) -> None:
    """How far it is, with a way to stop. Meanwhile the rest of the page stays as it is."""
    job = fetching().known(entry.name)
    if job is None or job.ended.is_set():
        st.rerun()
    _line(f"{job.sentence}, in the background.", "Stop", _stop, entry)


def _line(sentence: str, label: str, act: Callable[[Entry], None], entry: Entry) -> None:
    """A sentence, and what can be done about it: by everybody who may open a model, but only at this
    computer where it concerns all visitors."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(sentence), width="content")
        if act is open_entry or visitor_is_local():
            st.button(label, key="real-model", on_click=act, args=(entry,))


def _stop(entry: Entry) -> None:
    fetching().stop(entry.name)
