"""A Plotly figure on a page."""

from collections.abc import Callable
from typing import Literal

import plotly.graph_objects as go
import streamlit as st

from viz.figures.in_words import in_words
from viz.figures.margins import counted_margins


def plot(
    figure: go.Figure,
    key: str,
    *,
    alt: str = "",
    clicked: Callable[[], None] | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> None:
    """A figure without its tool bar, drawn anew in another theme.

    alt: what it shows, in words; empty: its own words. clicked: called when a point is clicked; the state
    under `key` says which.
    """
    margin = counted_margins(figure)
    # By default the browser measures each label, to hide some.
    axes: dict[str, object] = {"ticklabeloverflow": "allow"}
    if margin:
        axes["automargin"] = False
    figure.update_xaxes(axes).update_yaxes(axes)
    figure.update_layout(datarevision=st.context.theme.type, margin=margin or {})
    st.plotly_chart(
        figure,
        key=key,
        width=width,
        on_select=clicked or "ignore",
        selection_mode="points",
        config={"displayModeBar": False},
        alt=alt or in_words(figure),
    )
