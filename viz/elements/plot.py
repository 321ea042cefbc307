"""What is drawn on a page: a Plotly figure, bars in a table, and style for as long as it is
there."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.system.files import bytes_text
from viz.figures.in_words import in_words
from viz.figures.room import LETTERS, counted_margins, narrow_rules, room_above, without_anchor
from viz.notation.words import sentences_of
from viz.state.session import choice

say = sentences_of("elements.plot")


def rules(css: str) -> None:
    """Rules of CSS. They stand in this place, without taking room: a style alone Streamlit would put into the
    one place of all fragments, where the next one overwrites it."""
    st.html(f'<i class="rules" hidden></i><style>{css}</style>')


# Bytes of a picture in the message to the browser. A matrix of as many cells as are drawn, with its mask and
# its hatching, has 3.2 MB; Streamlit refuses 20 MB.
LARGEST = 4_000_000
WOULD_SEND = say("picture_send")
PLOTLY = 450  # pixels of a figure without a height
WAITS = say("picture_being_drawn")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # Streamlit leaves it out of a class named after a key


@contextmanager
def held_place(key: str, figure: go.Figure) -> Iterator[None]:
    """The place of a figure: as high as it, hatched, and with a sentence, until Plotly draws it. key: of
    the figure."""
    drawn = _NO_NAME.sub("-", key)
    with st.container(key=f"place-{key}"):
        rules(
            f".st-key-place-{drawn}:not(:has(.st-key-{drawn} .main-svg)) {{ min-height: "
            f"{figure.layout.height or PLOTLY}px; background: var(--hatch); --waits: '{WAITS}' }}"
        )
        yield


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
            say(
                "most_drawn_shorter",
                would_send=WOULD_SEND,
                bytes_text=bytes_text(size),
                largest_bytes_text=bytes_text(LARGEST),
            )
        )
        return
    margin = counted_margins(figure)
    if above := room_above(figure):
        figure.update_layout(margin={"t": above})
    # By default the browser measures each label, to hide some.
    axes: dict[str, object] = {"ticklabeloverflow": "allow", "tickfont": {"size": LETTERS}}
    if margin:
        axes["automargin"] = False
    figure.update_xaxes(axes).update_yaxes(axes)
    figure.update_layout(
        datarevision=st.context.theme.type,
        margin=margin or {},
        font={"size": LETTERS},  # of what has no size of its own: Streamlit would draw it smaller
        legend={"font": {"size": LETTERS}},
    )
    for trace in figure.data:
        if getattr(trace, "colorbar", None) is not None and trace.showscale is not False:
            trace.colorbar.tickfont.size = LETTERS
    if narrow := narrow_rules(figure, f".st-key-{_NO_NAME.sub('-', key)}"):
        rules(narrow)
    with without_anchor(figure):
        st.plotly_chart(
            figure,
            key=key,
            width=width,
            on_select=choice(key, take) if clicked else "ignore",
            selection_mode="points",
            config={"displayModeBar": False},
            alt=alt or in_words(figure),
        )


def scrolling_plot(figure: go.Figure, key: str) -> None:
    """A figure that is no narrower than its own width: where there is less room, it scrolls."""
    scrolls = f"scrolls-{_NO_NAME.sub('-', key)}"
    with st.container(key=scrolls):
        rules(
            f".st-key-{scrolls} {{ overflow-x: auto }} .st-key-{scrolls} > div:has(.js-plotly-plot) "
            f"{{ min-width: {figure.layout.width or 0}px }}"
        )
        plot(figure, key)


def _bytes(figure: object) -> int:
    """About the bytes of a figure as JSON; arrays of numbers are written as base64."""
    size, parts = 0, [figure]
    while parts:
        part = parts.pop()
        if isinstance(part, np.ndarray) and part.dtype == object:
            part = part.tolist()
        if isinstance(part, dict):
            size += sum(map(len, part))
            parts += part.values()
        elif isinstance(part, np.ndarray):
            size += 4 * part.nbytes // 3
        elif isinstance(part, list | tuple) and part and isinstance(part[0], _HOLDS_PARTS):
            parts += part
        else:
            size += len(str(part))
    return size


_HOLDS_PARTS = (dict, list, tuple, np.ndarray)
