"""A recorded run on the page: its text in the box, what is said of it, and the way to open a file."""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.nn.intervention import Intervention
from model.serving.trace_files import opens_file
from model.system import deadline
from model.system.settings import settings
from model.trace.trace import Trace
from model.trace.unproven import RECORDED
from model.trace.uploaded import ENDING
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.state.engine import engine, still_wanted
from viz.state.look import is_loaded, loaded
from viz.state.session import called, change_view, current, free_upload, kept_view, note_uploaded

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("shell.recorded_run")

_TURN, _REFUSED = "trace-file-turn", "trace-file-refused"  # session state
_OWN = "own-view"  # session state: a recorded text, and the view that it took the place of
_UPLOAD = "server.maxUploadSize"  # megabytes
APART = 0.02  # of the largest output: more than half precision explains


def bring_text() -> None:
    """Sets the view's text to that of the recorded run that it names, once the file has been read, and back
    to the visitor's own text when a model is open again. Refusals are said later."""
    view = current()
    if opens_file(view.model):
        if is_loaded(view.model):
            with suppress(ValueError):
                show_as_recorded(loaded(view.model))
    elif _OWN in st.session_state and kept_view() is None:
        text, own = st.session_state.pop(_OWN)
        if view.text == text:  # nothing else was opened or written
            kept = {"text": own.text, "target": own.target, "intervention": own.intervention}
            change_view(replace(view, **kept))


def show_as_recorded(model: "Model") -> bool:
    """Where the open model is a recorded run, sets the view to what was recorded and keeps the visitor's own
    text and intervention for later. Returns whether this changed the view."""
    view = current()
    if model.runs:
        return False
    recorded = replace(view, text=model.truncate(""), target=None, intervention=Intervention())
    text, own = st.session_state.get(_OWN, ("", view))
    # What another file had recorded is nobody's own.
    st.session_state[_OWN] = recorded.text, own if view.text in (text, recorded.text) else view
    change_view(recorded)
    return view != recorded


def say_recorded(model: "Model") -> None:
    """Says that the open model is a recorded run, and where its numbers are not those of its own vectors.
    Raises PassTooLongError where a file has more to compute than a pass may take."""
    from model.run.recorded import RecordedModel  # torch: pages are drawn first

    if not isinstance(model, RecordedModel):
        return
    file = called(model.address) or model.address.rpartition("/")[2]
    changed = ", with an intervention" if model.run.intervention.changes else ""
    st.caption(
        say("model_file_views", recorded=RECORDED, model=model.name, file=file, changed=changed)
    )
    with deadline.within(settings().pass_seconds, still_wanted):
        gap = model.run.check()
    if not gap <= APART * largest_output(model.run):
        st.warning(say("outputs_file_not", gap=gap))


def largest_output(trace: Trace) -> float:
    """The largest number among the outputs of heads, at least 1."""
    return max(1.0, *(float(np.abs(one.output).max()) for one in trace.attention))


def open_trace_file(place: str) -> None:
    """The box to drop a trace file into, where the server's owner allows it. place: where on the page it
    stands; there may be two."""
    if not settings().trace_files:
        return
    turn = st.session_state.get(_TURN, 0)
    file = st.file_uploader(
        "Open a trace file",
        ENDING,
        key=f"trace-file-{place}-{turn}",
        max_upload_size=min(st.get_option(_UPLOAD), settings().trace_megabytes),
    )
    if refused := st.session_state.pop(f"{_REFUSED}-{place}", None):
        st.error(plain(refused))
    if file is None:
        return
    try:  # a run that ends while it waits for its turn leaves the file to the next one
        name = engine().keep_file(file, file.size)
    except ValueError as refusal:
        st.session_state[f"{_REFUSED}-{place}"] = str(refusal)
    else:
        note_uploaded(name, file.name)
        change_view(replace(current(), model=name))
    st.session_state[_TURN] = (
        turn + 1
    )  # the box is made anew, so that it does not keep the file too
    free_upload(file)
    st.rerun()
