"""What a view shows: what to look for, a figure that can be saved, its table, its code, the check of a
run."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TypeVar

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.snippets import STYLES, Snippet, Style, filled, lone_script
from model.snippets.script import TRACE_FILE
from model.trace.blocks import of_query
from model.trace.records import Attention
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_of
from viz.elements.plot import plot, rules
from viz.notation.csv_safe import sheltered_table
from viz.notation.markdown import plain
from viz.notation.numbers import difference, number
from viz.notation.readout import readout
from viz.saving.save import save_figure
from viz.state.look import Look
from viz.state.session import current

TABLED = 64  # tokens of a matrix that has a table: a larger one helps nobody
TABLE_CELLS = 200_000  # of a table: a few megabytes
PAIRS = 4096**2  # of tokens: a matrix of them has 134 MB in double precision
T = TypeVar("T")


def look_for(words: str) -> None:
    """The sentence above a picture: what there is to see in it. words: Markdown."""
    st.markdown(f"**What to look for.** {words}")


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


def chart(figure: go.Figure, key: str) -> None:
    """A figure, and a button that saves it."""
    plot(figure, key)
    save_figure(lambda: figure, key)


def readout_of(
    attention: Attention,
    head: int,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    query: int | None = None,
) -> None:
    """The line below a head's weights: the numbers of one cell, to be copied.

    query: the row whose largest weight is told; None: the chosen cell.
    """
    if query is None:
        chosen = current().selection.clamped(
            heads=attention.heads, queries=len(queries), keys=len(keys)
        )
        query, key = chosen.query, chosen.key
    else:
        key = int(of_query(attention, query).weights(head)[0].argmax())
    words = readout(attention, head, query, key, queries=queries, keys=keys)
    # One line (viz/shell/style.css). Where it is too long it breaks after a part, never inside one.
    parts = (part.replace(" ", "\N{NO-BREAK SPACE}") for part in words.split(" · "))
    st.code("\N{NO-BREAK SPACE}· ".join(parts), language=None, wrap_lines=True)


@st.fragment
def table(
    columns: pd.DataFrame | Mapping[str, object],
    key: str,
    *,
    index: str | None = None,
    decimals: int = 4,
    formats: Mapping[str, str] | None = None,
) -> None:
    """The plain table behind a picture, for screen readers and for copying: closed, and made when it is
    opened. index: what a row's number counts. formats: of columns whose numbers have other digits than
    `decimals`."""
    row = st.expander("The numbers as a table", key=f"numbers-{key}", on_change="rerun")
    if row.open:
        frame = pd.DataFrame(columns)
        if index is not None:
            frame = frame.rename_axis(index)
        numbers = frame.select_dtypes("number")
        shown = {
            str(name): st.column_config.NumberColumn(
                format="%d" if whole else (formats or {}).get(str(name), f"%.{decimals}f")
            )
            for name, whole in (numbers.isna() | (numbers % 1 == 0)).all().items()
        }
        if (rows := max(1, TABLE_CELLS // max(1, frame.shape[1]))) < len(frame):
            row.caption(f"The first {rows:,} of {len(frame):,} rows.")
            frame = frame[:rows]
        row.dataframe(sheltered_table(frame), key=f"table-{key}", column_config=shown)


def checked(seen: Look) -> None:
    """The check line of a page: how far the recomputed numbers lie from the recorded ones."""
    st.caption(
        "Check: attention outputs and norms, recomputed from the recorded vectors, differ from the "
        f"model's own by at most {difference(seen.trace.check())}. The pass ran on "
        f"{plain(seen.trace.device)}."
    )
    for attention in seen.trace.attention:
        if attention.name == current().place and attention.doubt:
            st.caption(f"Not certain of {plain(attention.module)}: {plain(attention.doubt)}")


_FILES = re.compile(r'load\("([^"]+)"')


@st.fragment
def code_behind(
    snippets: Mapping[Style, Snippet],
    key: str,
    *,
    given: Mapping[str, str],
    cell: Mapping[str, int],
    value: float,
    reads: Sequence[str] | None,
) -> None:
    """The lines in the style that the reader chooses, with shapes; and as a script.

    given: what the lines read, with its shape or origin. cell: the indices of the chosen number. value: that
    number, as the page shows it. reads: the lines of a script that read the given arrays from files; None
    where no file holds them.
    """
    row = st.expander("Code", key=f"code-{key}", on_change="rerun")
    if not row.open:
        return
    with row:
        style = one_of(
            "Style", list(STYLES), f"code-style-{key}", named=STYLES.__getitem__, quiet=True
        )
        lines_of(snippets[style], given=given, cell=cell, value=value)
        if reads is not None:
            script = lone_script(snippets[style], reads, cell)
            files = dict.fromkeys(_FILES.findall(script))
            needs = " and ".join(["PyTorch", *map(_origin, files)])
            script_of(script, f"It needs {needs}, and prints the number in the last line.")


def script_of(script: str, said: str) -> None:
    """The button that opens a script, to be copied."""
    with st.popover("Copy as a script"):
        st.caption(plain(said))
        st.code(script, language="python")


def _origin(file: str) -> str:
    """A file, and where it is saved."""
    return f"{file} ({'Save: the whole trace' if file == TRACE_FILE else 'the page Code: weights'})"


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
