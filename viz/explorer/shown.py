"""What the browser shows of the chosen cell, which lives in the page's view. It is kept here, so that the
browser is told only where the page moves the reader."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import streamlit as st

from viz.explorer.selection import Selection


@dataclass(frozen=True)
class Shown:
    """What the browser shows."""

    start: (
        Selection  # of this revision; it stays, so that the message to the browser stays the same
    )
    selection: Selection | None  # None: it counts for nothing, whatever it is
    revision: int  # grows whenever the page moves the reader; older reports are then worth nothing


def show(selection: Selection, mount: str) -> Shown:
    """What the browser is to show from now on."""
    before = _shown(mount)
    if before is None or before.selection != selection:
        revision = 0 if before is None else before.revision + 1
        st.session_state[_key(mount)] = before = Shown(selection, selection, revision)
    return before


def hear(mount: str, select: Callable[[Selection], object]) -> None:
    """Hands on what the browser reports, where it is readable and of this revision."""
    before, report = _shown(mount), st.session_state[mount].get("selection")
    if before is None or not isinstance(report, Mapping):
        return
    if report.get("revision") == before.revision:
        numbers = [report.get(name) for name in ("head", "query", "key")]
        head, query, key = (number if isinstance(number, int) else 0 for number in numbers)
        reported = Selection(head, str(report.get("stage")), query, key)
        st.session_state[_key(mount)] = replace(before, selection=reported)
        select(reported)


def forget(mount: str = "explorer") -> None:
    """Lets the page's next selection count in any case, for instance when an example is opened again."""
    before = _shown(mount)
    if before is not None:
        st.session_state[_key(mount)] = replace(before, selection=None)


def _shown(mount: str) -> Shown | None:
    shown: Shown | None = st.session_state.get(_key(mount))
    return shown


def _key(mount: str) -> str:
    return f"{mount}:shown"
