"""One token of the sentence, picked from a list that opens on the one that says most."""

from collections.abc import Sequence

import streamlit as st

from model.trace.records import Token
from viz.notation.labels import token_label


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


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)
