"""A Plotly figure on a page."""

from collections.abc import Callable
from typing import Literal

import plotly.graph_objects as go
import streamlit as st

from viz.figures.in_words import in_words
from viz.figures.margins import fix_margins


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
    figure.update_layout(datarevision=st.context.theme.type)
    quick = {"ticklabeloverflow": "allow"}  # else the browser measures every label, to hide some
    figure.update_xaxes(quick).update_yaxes(quick)
    fix_margins(figure)
    st.plotly_chart(
        figure,
        key=key,
        width=width,
        on_select=clicked or "ignore",
        selection_mode="points",
        config={"displayModeBar": False},
        alt=alt or in_words(figure),
    )
