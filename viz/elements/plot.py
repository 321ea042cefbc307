"""A Plotly figure on a page."""

import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.system.files import bytes_text
from viz.elements.rules import rules
from viz.figures.in_words import in_words
from viz.figures.room import counted_margins, narrow_rules, room_above, without_anchor

# Bytes of a picture in the message to the browser. A matrix of as many cells as are drawn, with its mask and
# its hatching, has 3.2 MB; Streamlit refuses 20 MB.
LARGEST = 4_000_000
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # Streamlit leaves it out of a class named after a key


def plot(
    figure: go.Figure,
    key: str,
    *,
    alt: str = "",
    clicked: Callable[[int], None] | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> None:
    """A figure without its tool bar, drawn anew in another theme; with fewer labels where it is narrow.

    alt: what it shows, in words; empty: its own words. clicked: is told the number of a clicked point.
    """

    def take() -> None:
        points = st.session_state[key].selection.points
        if clicked is not None and points:
            clicked(int(points[0]["point_index"]))

    size = _bytes(figure.to_plotly_json())
    if size > LARGEST:
        st.info(
            f"This picture would send {bytes_text(size)}; at most {bytes_text(LARGEST)} are drawn. "
            "A shorter text has a smaller one."
        )
        return
    margin = counted_margins(figure)
    if above := room_above(figure):
        figure.update_layout(margin={"t": above})
    # By default the browser measures each label, to hide some.
    axes: dict[str, object] = {"ticklabeloverflow": "allow"}
    if margin:
        axes["automargin"] = False
    figure.update_xaxes(axes).update_yaxes(axes)
    figure.update_layout(datarevision=st.context.theme.type, margin=margin or {})
    if narrow := narrow_rules(figure, f".st-key-{_NO_NAME.sub('-', key)}"):
        rules(narrow)
    with without_anchor(figure):
        st.plotly_chart(
            figure,
            key=key,
            width=width,
            on_select=take if clicked else "ignore",
            selection_mode="points",
            config={"displayModeBar": False},
            alt=alt or in_words(figure),
        )


def _bytes(part: object) -> int:
    """About the bytes of a part of a figure as JSON; arrays of numbers are written as base64."""
    if isinstance(part, dict):
        return sum(len(name) + _bytes(one) for name, one in part.items())
    if isinstance(part, np.ndarray) and part.dtype != object:
        return 4 * part.nbytes // 3
    if isinstance(part, list | tuple | np.ndarray):
        return sum(map(_bytes, part))
    return len(str(part))
