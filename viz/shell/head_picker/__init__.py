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
from viz.explorer.bundle import BUNDLED, component_script
from viz.explorer.heads import THEME, all_heads, in_view
from viz.explorer.packing import Json, packed
from viz.shell.frame import frame
from viz.state.look import traced
from viz.state.session import change_view, current

_FOLDER = Path(__file__).parent
_KEY = "head-picker"
_OPENS, _OPENED = "head-picker-opens", "head-picker-opened"  # the run whose maps the browser has
_LAST = "head-picker-heads"  # session state: by a run and the layers with maps, its heads
KEPT = 4
_CHOSEN = "head-picker-chosen"  # session state: a head that the page does not show yet
_STYLE = (BUNDLED / "picker.css").read_text(encoding="utf-8")
_component = st.components.v2.component(
    "head_picker",
    html=(_FOLDER / "picker.html").read_text(encoding="utf-8"),
    css=_STYLE.replace("}", "}\n"),  # Streamlit takes a string of one line for a path
    js=component_script("picker.js"),
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
    names = tuple(one.name for one in traced(request).attention)
    _draw(request, names if state.get(_OPENED) == request else (), docked=False)


def docked_heads(request: Request) -> None:
    """The heads of a run as a part of the page, those in view with their maps."""
    if st.session_state.pop(_CHOSEN, False):
        st.rerun()
    _draw(request, in_view(traced(request), current().place), docked=True)


def _draw(request: Request, mapped: tuple[str, ...], *, docked: bool) -> None:
    view = current()
    said = message(request, (view.place, view.head), mapped)
    _component(
        key=_KEY,
        data=packed({**said, "docked": docked}),
        width="stretch" if docked else "content",
        on_head_change=_take,
        on_opened_change=_note_opened,
    )


def message(request: Request, chosen: Head, mapped: tuple[str, ...]) -> Mapping[str, object]:
    """All heads of a run in their families, the chosen one, and the maps of the heads of some layers."""
    return {
        "run": f"{hash(request):x}",
        "chosen": {"place": chosen[0], "head": chosen[1]},
        "families": _families(request, mapped),
        "theme": THEME,
    }


def _families(request: Request, mapped: tuple[str, ...]) -> list[Json]:
    """All heads of a run. Those of the last ones are kept: another head is chosen among the same maps, and a
    switch leads back to them."""
    last: dict[object, list[Json]] = st.session_state.get(_LAST, {})
    families = last.pop((request, mapped), None)
    if families is None:
        families = all_heads(traced(request), request.intervention.ablated, mapped=mapped)
    st.session_state[_LAST] = dict([*last.items(), ((request, mapped), families)][-KEPT:])
    return families


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
