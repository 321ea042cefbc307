"""A training as a film: one head at every checkpoint, switched and played in the browser.

All checkpoints of one head are sent at once, so slider and play never wait for the server.
"""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from viz.explorer.bundle import BUNDLED
from viz.views.training.film.message import message

__all__ = ["film", "message"]

_FOLDER = Path(__file__).parent
_component = st.components.v2.component(
    "training_film",
    html=(_FOLDER / "film.html").read_text(encoding="utf-8"),
    css=(BUNDLED / "film.css").read_text(encoding="utf-8"),
    js=(BUNDLED / "film.js").read_text(encoding="utf-8"),  # of film.js and what it imports
)


def film(data: Mapping[str, object], *, mount: str) -> None:
    """Draws a film from its `message`. mount: a name for this place on the page."""
    _component(key=mount, data=data)
