"""What the open model is good for, and the way to a real language model, which comes in the background."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from model.download.entries import Entry
from model.download.sources import is_on_disk
from model.loading.registry import models
from viz.notation.markdown import plain
from viz.shell.downloads import entry_to_fetch, fetch_behind, fetching
from viz.state.locality import visitor_is_local
from viz.state.remembered import remember
from viz.state.session import change_view, current

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
            said = f"A real language model, {offered.short_title}, is on this computer."
            _line(said, f"Open {offered.short_title}", _open, offered)
        elif job is None or job.refusal is None or job.stopped.is_set():
            said = f"{offered.short_title}, a real language model, is not on this computer yet."
            kept = (
                ""
                if job is None
                else " The download was stopped. The part that has arrived is kept."
            )
            _line(said + kept, "Resume" if kept else "Fetch it", fetch_behind, offered)
        else:
            _line(job.refusal, "Try again", fetch_behind, offered)


@st.fragment(run_every=SECONDS)
def _on_its_way(entry: Entry) -> None:
    """How far it is, with a way to stop. Meanwhile the rest of the page stays as it is."""
    job = fetching().known(entry.name)
    if job is None or job.ended.is_set():
        st.rerun()
    _line(f"{job.sentence}, in the background.", "Stop", _stop, entry)


def _line(said: str, label: str, act: Callable[[Entry], None], entry: Entry) -> None:
    """A sentence, and what can be done about it: by everybody who may open a model, but only at this
    computer where it concerns all visitors."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(said), width="content")
        if act is _open or visitor_is_local():
            st.button(label, key="real-model", on_click=act, args=(entry,))


def _open(entry: Entry) -> None:
    change_view(replace(current(), model=entry.name))
    remember(entry)


def _stop(entry: Entry) -> None:
    fetching().stop(entry.name)
