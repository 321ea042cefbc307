"""The French that the decoder reads: the model's own, or what the reader wrote."""

import html
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.trace.records import Token
from model.trace.trace import Trace
from viz.notation.labels import token_label
from viz.notation.theme import WEIGHT, rgba
from viz.state.look import Look
from viz.state.session import change_view, current

_STYLE = "font-size:1.15rem; line-height:1.7; overflow-wrap:anywhere; margin:0"


def with_target(seen: Look, target: str | None) -> Look:
    """The same look with another target; None: the model's own."""
    return replace(seen, request=replace(seen.request, target=target))


def written_ids(trace: Trace) -> tuple[int, ...]:
    """The ids that the target consists of, without its start token, and the one that the model
    would write after them. Raises ValueError for a model that predicts nothing."""
    if trace.prediction is None:
        raise ValueError(f"{trace.model} predicts no next word.")
    return (
        *(token.id for token in trace.target_tokens[1:]),
        int(trace.prediction.after(-1).argmax()),
    )


def whose_french() -> None:
    """Says that the reader's own French is shown, and leads back to the model's."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if current().target is not None:
            st.caption("The French is your own.")
            st.button(
                "Back to the model's French",
                key="encoder-own-target",
                on_click=lambda: change_view(replace(current(), target=None)),
            )


def french_line(words: Sequence[Token], new: int | None = None) -> None:
    """Words in a row; the one at `new` is marked."""
    mark = f"background:{rgba(WEIGHT, 0.22)};color:inherit;border-radius:3px;padding:0 3px"
    texts = [html.escape(token_label(word.text)) for word in words]
    if new is not None:
        texts[new] = f'<mark style="{mark}"><b><u>{texts[new]}</u></b></mark>'
    st.html(f'<p style="{_STYLE}">{" ".join(texts)}</p>')
