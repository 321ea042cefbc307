"""The models that were open in this visitor's session, so that a folder or an id need not be typed twice."""

from collections.abc import Iterable

import streamlit as st

from model.loading.registry import models
from model.trace.dropped import is_dropped
from viz.state.session import current

_OPENED, KEPT = "opened-models", 8  # session state


def opened_here(known: Iterable[str]) -> list[str]:
    """Models beside the known ones: the open one, and what was open in this session and still may be."""
    name, before = current().model, st.session_state.get(_OPENED, [])
    if name not in {*before, *known}:
        before = st.session_state[_OPENED] = [*before, name][-KEPT:]
    return [one for one in before if one == name or (models.found(one) and not is_dropped(one))]
