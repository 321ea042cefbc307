"""The model that a visitor chose last: the visitor's own browser keeps its name, for the next visit."""

from urllib.parse import unquote

import streamlit as st

from model.download.entries import Entry
from model.loading.registry import may_be_linked
from viz.state.view import View

COOKIE = "attention-model"  # viz/shell/keys/js/main.js writes it
_CHOSEN = "chosen-model"  # session state


def remember(entry: Entry) -> None:
    """Has the browser keep a model of the hub. Any other one is forgotten with the visit: its vocabulary may
    not have the words of the first sentence, and a folder's name is nobody else's business."""
    st.session_state[_CHOSEN] = View().model if entry.hub is None else entry.name


def to_remember() -> str | None:
    """The name that the browser is to keep; None where nothing was chosen in this session."""
    chosen: str | None = st.session_state.get(_CHOSEN)
    return chosen


def remembered() -> str:
    """The model that a visit begins with."""
    name = unquote(str(st.context.cookies.get(COOKIE, "")))
    return name if name and may_be_linked(name) else View().model
