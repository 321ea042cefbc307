"""The one choice of a head, in the work bar: its name, and behind it a small map of every head.

The maps are made and sent when the visitor opens them. A picture in the browser that can show the head at
once takes the choice itself; else the page runs again.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.nn.places import Head
from model.serving.engine import Request
from viz.explorer.bundle import BUNDLED
from viz.explorer.heads import THEME, all_heads
from viz.explorer.packing import packed
from viz.shell.frame import frame
from viz.state.look import traced
from viz.state.session import change_view, current

_FOLDER = Path(__file__).parent
_KEY = "head-picker"
_OPENS, _OPENED = "head-picker-opens", "head-picker-opened"  # the run whose maps the browser has
_LAST = "head-picker-heads"  # session state: a run, whether with maps, and its heads
_CHOSEN = "head-picker-chosen"  # session state: a head that the page does not show yet
_STYLE = (BUNDLED / "picker.css").read_text(encoding="utf-8")
_component = st.components.v2.component(
    "head_picker",
    html=(_FOLDER / "picker.html").read_text(encoding="utf-8"),
    css=_STYLE.replace("}", "}\n"),  # Streamlit takes a string of one line for a path
    js=(BUNDLED / "picker.js").read_text(encoding="utf-8"),
)


@st.fragment
def head_picker(request: Request) -> None:
    """The heads of a page's run behind a button."""
    state = st.session_state
    if state.pop(_CHOSEN, False):
        st.rerun()
    if state.pop(_OPENS, False):
        state[_OPENED] = request
    frame().head = current().place, current().head
    _draw(request, has_maps=state.get(_OPENED) == request, docked=False)


def docked_heads(request: Request) -> None:
    """The heads of a run, each with its map, as a part of the page."""
    if st.session_state.pop(_CHOSEN, False):
        st.rerun()
    _draw(request, has_maps=True, docked=True)


def _draw(request: Request, *, has_maps: bool, docked: bool) -> None:
    view = current()
    said = message(request, (view.place, view.head), has_maps=has_maps)
    _component(
        key=_KEY,
        data=packed({**said, "docked": docked}),
        width="stretch" if docked else "content",
        on_head_change=_take,
        on_opened_change=_note_opened,
    )


def message(request: Request, chosen: Head, *, has_maps: bool) -> Mapping[str, object]:
    """All heads of a run in their families, the chosen one, and their maps if they are wanted."""
    # All heads of a run. Those of the last one are kept: another head is chosen among the same maps.
    asked, families = st.session_state.get(_LAST, (None, []))
    if asked != (request, has_maps):
        families = all_heads(traced(request), request.intervention.ablated, has_maps=has_maps)
        st.session_state[_LAST] = (request, has_maps), families
    return {
        "run": f"{hash(request):x}",
        "chosen": {"place": chosen[0], "head": chosen[1]},
        "families": families,
        "theme": THEME,
    }


def _take() -> None:
    """Opens the head that was chosen, where it is one of this run's."""
    chosen = st.session_state[_KEY].get("head")
    if not isinstance(chosen, Mapping):
        return
    place, head = chosen.get("place"), chosen.get("head")
    if isinstance(place, str) and isinstance(head, int) and head >= 0:
        change_view(replace(current(), place=place, head=head))
        st.session_state[_CHOSEN] = True


def _note_opened() -> None:
    st.session_state[_OPENS] = True
