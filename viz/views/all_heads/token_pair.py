"""Two tokens picked by clicking them: the one that looks and the one looked at."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.trace.records import Token
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.state.session import change_view, control, current, write_link

CLICKABLE = 64  # up to so many tokens each has a button; beyond that a list is quicker


def pick_pair(queries: Sequence[Token], keys: Sequence[Token]) -> tuple[int, int]:
    """The positions of both tokens; they are the query and key of the view and join its link."""
    view = current()
    query, key = min(view.query, len(queries) - 1), min(view.key, len(keys) - 1)
    change_view(replace(view, query=query, key=key))
    _row("Looks", queries, "query")
    _row("Is looked at", keys, "key")
    write_link()
    return query, key


def _row(label: str, tokens: Sequence[Token], field: str) -> None:
    """One row of tokens; the chosen one is pressed."""
    # With its position each label is another one: of equal labels Streamlit takes the first.
    labels = [f"{at} {token_label(token.text, 24)}" for at, token in enumerate(tokens)]
    if len(tokens) > CLICKABLE:
        st.selectbox(
            label,
            range(len(tokens)),
            format_func=labels.__getitem__,
            **control(field, "pair"),
        )
        return
    st.pills(
        label,
        range(len(tokens)),
        required=True,
        format_func=lambda at: plain(labels[at]),
        **control(field, "pair"),
    )
