"""Choosing one token of the sentence: from a list, or by a click on the mark of its row."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.trace.records import Token
from viz.elements.one_of import one_listed
from viz.elements.plot import plot
from viz.figures.heatmap import Axis
from viz.figures.vectors import MARKED, ColourEnd, token_rows
from viz.notation.labels import numbered_labels
from viz.notation.theme import QuantityName

LISTED = 24  # characters of a token in a list
HINT = "Click a mark on the left to fill the formula with the numbers of that token."


def pick_token(tokens: Sequence[Token], key: str) -> int:
    """The position of the chosen token; at first the longest typed one of this sentence."""
    longest = max(
        range(len(tokens)),
        key=lambda place: (not tokens[place].special, sum(map(str.isalpha, tokens[place].text))),
    )
    key = f"{key}-{hash(tuple(token.id for token in tokens))}"
    labels = numbered_labels([token.text for token in tokens], LISTED)
    return one_listed("Token", labels, key, first=longest)


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

    def take(token: int) -> None:
        st.session_state[chosen] = token

    plot(figure, f"{key}-{row}", clicked=take)  # a new picture each time: nothing is selected in it
    if len(tokens) <= MARKED:
        st.caption(HINT)
