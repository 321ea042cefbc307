"""Choosing one token of the sentence: from a list, or by a click on the mark of its row."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.trace.records import Token
from viz.elements.plot import plot
from viz.figures.heatmap import Axis
from viz.figures.token_rows import MARKED, ColourEnd, token_rows
from viz.notation.labels import token_label
from viz.notation.theme import QuantityName

HINT = "Click a mark on the left to fill the formula with that token's numbers."


def choose_token(box: DeltaGenerator, tokens: Sequence[str], key: str) -> int:
    """The chosen token's position. One that another sentence no longer has becomes the first."""
    keep_within(key, len(tokens))
    position: int = box.selectbox(
        "Token",
        range(len(tokens)),
        format_func=lambda at: f"{at} {token_label(tokens[at], 24)}",
        key=key,
    )
    return position


def pick_token(tokens: Sequence[Token], key: str) -> int:
    """The position of the picked token; at first the longest typed one of this sentence."""
    longest = max(
        range(len(tokens)),
        key=lambda place: (not tokens[place].special, _letters(tokens[place].text)),
    )
    picked: int = st.selectbox(
        "Token",
        range(len(tokens)),
        index=longest,
        format_func=lambda place: f"{place} {token_label(tokens[place].text, 24)}",
        key=f"{key}-{hash(tuple(token.id for token in tokens))}",
    )
    return picked


def keep_within(key: str, count: int) -> None:
    """A numbered choice that another sentence or model no longer has goes back to the first."""
    if st.session_state.get(key, 0) >= count:
        st.session_state[key] = 0


def choosable_rows(
    values: NDArray[np.floating],
    *,
    tokens: Sequence[str],
    columns: Axis,
    quantity: QuantityName,
    end: ColourEnd,
    key: str,
    chosen: str,
) -> None:
    """values (token, column) drawn with marks that choose a token.

    key: of the picture. chosen: of the token's list, which the marks write to.
    """
    row = st.session_state[chosen]
    figure = token_rows(
        values, tokens=tokens, columns=columns, quantity=quantity, end=end, chosen=row
    )
    picture = f"{key}-{row}"  # a new picture for each choice, with nothing selected in it
    plot(figure, picture, clicked=partial(_take_mark, picture, chosen))
    if len(tokens) <= MARKED:
        st.caption(HINT)


def _take_mark(picture: str, chosen: str) -> None:
    points = st.session_state[picture].selection.points
    if points:
        st.session_state[chosen] = int(points[0]["point_index"])


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)
