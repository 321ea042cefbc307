"""What a view shows beside its picture: what to look for, a cell's numbers, lines of code, the check of a
run."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TypeVar

import streamlit as st

from model.snippets import Snippet, filled
from model.trace.blocks import of_query
from model.trace.records import Attention
from model.trace.unproven import NotShownError
from viz.elements.plot import rules
from viz.notation.markdown import plain
from viz.notation.numbers import number
from viz.notation.readout import readout
from viz.notation.words import sentences_of
from viz.state.look import Look
from viz.state.session import current

say = sentences_of("shell.pictures")

TABLED = 64  # tokens of a matrix that has a table: a larger one helps nobody
LOOK_FOR = say("look")
PAIRS = 4096**2  # of tokens: a matrix of them has 134 MB in double precision
T = TypeVar("T")


def look_for(words: str) -> None:
    """The sentence above a picture: what there is to see in it. words: Markdown."""
    st.markdown(f"{LOOK_FOR} {words}")


def of_all_pairs(view: Callable[[Look], T]) -> Callable[[Look], T]:
    """A view that computes with all pairs of a text's tokens at once, which it refuses for a long text."""

    @wraps(view)
    def bounded(look: Look) -> T:
        queries, keys = max(attention.sizes[1:] for attention in look.trace.attention)
        if queries * keys > PAIRS:
            raise NotShownError(
                f"This view computes with all {queries * keys:,} pairs of tokens at once. It is shown for "
                f"texts of up to {math.isqrt(PAIRS):,} tokens."
            )
        return view(look)

    return bounded


def without_sentence() -> None:
    """Hides the box of the page's sentence while a view is shown in which it plays no part."""
    rules(".st-key-choose-text { visibility: hidden }")


def readout_of(
    attention: Attention,
    head: int,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    query: int | None = None,
    key: int | None = None,
) -> None:
    """The line below a head's weights: the numbers of one cell, to be copied.

    query, key: the cell; without a key, the row whose largest weight is told; without both, the chosen cell.
    """
    if query is None:
        chosen = current().selection.clamped(
            heads=attention.heads, queries=len(queries), keys=len(keys)
        )
        query, key = chosen.query, chosen.key
    elif key is None:
        key = int(of_query(attention, query).weights(head)[0].argmax())
    words = readout(attention, head, query, key, queries=queries, keys=keys)
    # One line (viz/shell/style.css). Where it is too long it breaks after a part, never inside one.
    parts = (part.replace(" ", "\N{NO-BREAK SPACE}") for part in words.split(", "))
    st.code(", ".join(parts), language=None, wrap_lines=True)


def checked(seen: Look) -> None:
    """The check line of a page: how far the recomputed numbers lie from the recorded ones."""
    st.caption(say("check_attention_outputs", check=seen.trace.check(), device=seen.trace.device))
    for attention in seen.trace.attention:
        if attention.name == current().place and attention.doubt:
            st.caption(f"Not certain of {plain(attention.module)}: {plain(attention.doubt)}")


def script_of(script: str, said: str) -> None:
    """The button that opens a script, to be copied."""
    with st.popover("Copy as a script"):
        st.caption(plain(said))
        st.code(script, language="python")


def lines_of(
    snippet: Snippet, *, given: Mapping[str, str], cell: Mapping[str, int], value: float
) -> None:
    """The lines with shapes beside them, and last the chosen number."""
    if listed := ", ".join(f"{name} {given[name]}".strip() for name in snippet.given):
        st.caption(plain(f"Given: {listed}"))
    lines = [
        filled(line.code, cell) + (f"  # {line.beside}" if line.beside else "")
        for line in snippet.lines
    ]
    lines.append(f"{filled(snippet.result, cell)}  # {number(value)}")
    st.code("\n".join(lines), language="python")
    if snippet.remark:
        st.caption(plain(snippet.remark))
