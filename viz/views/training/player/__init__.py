"""The checkpoint player: one head at every checkpoint, switched and played in the browser.

All checkpoints of one head are sent at once, so slider and play never wait for the server.
"""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from viz.explorer.bundle import BUNDLED, component_script
from viz.views.training.player.message import message

__all__ = ["message", "player"]

_FOLDER = Path(__file__).parent
_component = st.components.v2.component(
    "training_player",
    html=(_FOLDER / "player.html").read_text(encoding="utf-8"),
    css=(BUNDLED / "player.css").read_text(encoding="utf-8"),
    js=component_script("player.js"),  # of player.js and what it imports
)


def player(data: Mapping[str, object], *, mount: str) -> None:
    """Draws the player from its `message`. mount: a name for this place on the page."""
    _component(key=mount, data=data)
