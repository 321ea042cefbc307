"""A text while it is written: what stands there so far, and the rows of a head's weights that it adds."""

import html
from collections.abc import Sequence

import numpy as np
import streamlit as st

from model.analysis.tokens.live_writing import GrowingRows, Writing
from model.trace.blocks import block_of
from model.trace.records import Token
from viz.elements.plot import plot
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.names import sublayer_name
from viz.notation.theme import WEIGHT, rgba
from viz.shell.background import Passes
from viz.state.look import Look
from viz.state.session import current

SHOWN = 160  # tokens of the text so far: the end of a long one
_STYLE = "margin:0; font-size:1.15rem; line-height:1.8; overflow-wrap:anywhere"


def growing(seen: Look, tokens: tuple[Token, ...], run: Passes[Writing]) -> None:
    """What is known of a run under way: its text and, of the chosen head, its matrix."""
    found = run.found
    if found is None or not found.steps:
        return
    tokenizer = seen.model.tokenizer
    given = seen.model.begun(tokens)
    new = tokenizer.named(found.ids)
    so_far(given, new)
    _matrix(seen, found.rows, tokens, (*given, *new))


def so_far(given: Sequence[Token], new: Sequence[Token]) -> None:
    """The given text, what was written after it marked, and its last token underlined."""
    st.html(marked_text(given, new))


def marked_text(given: Sequence[Token], new: Sequence[Token]) -> str:
    """The same as HTML. Words of a closed list carry no spaces of their own, so they get some."""
    spaced = not any(token.raw for token in (*given, *new))
    shown = max(SHOWN - len(new), 1)
    start = "… " if len(given) > shown else ""
    before = " " * (spaced and len(new) > 1)
    mark = f"background:{rgba(WEIGHT, 0.22)};color:inherit;border-radius:3px"
    return (
        f'<p style="{_STYLE}">{start}{_joined(given[-shown:], spaced)}{" " * spaced}'
        f'<mark style="{mark}">{_joined(new[:-1], spaced)}{before}'
        f"<b><u>{_joined(new[-1:], spaced)}</u></b></mark></p>"
    )


def _matrix(
    seen: Look, rows: GrowingRows, source: Sequence[Token], written: Sequence[Token]
) -> None:
    """The rows so far of the chosen layer and head; of the first layer where the chosen one has none."""
    names = [name for name in seen.model.attention_names if name.startswith("decoder")]
    name = seen.place if seen.place in names else names[0]
    read = source if name.endswith("cross") else written
    if rows.is_full or block_of(len(written), len(read)) != (1, 1):
        st.caption("The matrix of so long a text is drawn when the text is written.")
        return
    weights = rows.weights(name, current().head)
    if weights is None:
        return
    queries, keys = weights.shape
    future = None if name.endswith("cross") else ~np.tri(queries, keys, dtype=bool)
    figure = heatmap(
        weights,
        rows=Axis("query", [token.text for token in written[:queries]]),
        columns=Axis("key", [token.text for token in read[:keys]]),
        quantity="weight",
        blocked=future,
        words=(),
        square=True,
    )
    plot(figure, "prediction-growing")
    head = min(current().head, seen.model.layer(name).heads - 1)
    st.caption(f"{sublayer_name(name)}, head {head}: each written token adds a row.")


def _joined(tokens: Sequence[Token], spaced: bool) -> str:
    return (" " if spaced else "").join(_readable(token.text) for token in tokens)


def _readable(text: str) -> str:
    """A token inside running text: its leading space is a space, what cannot be seen is spelled."""
    if text.startswith(" ") and text.strip():
        return " " + html.escape(token_label(text[1:]))
    return html.escape(token_label(text))
