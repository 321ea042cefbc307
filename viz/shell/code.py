"""The lines of code behind a picture, closed until a reader opens them."""

from collections.abc import Mapping

import streamlit as st

from model.snippets import STYLES, Snippet, Style, filled
from viz.elements.one_of import one_of
from viz.notation.markdown import plain
from viz.notation.numbers import number


@st.fragment
def code_behind(
    snippets: Mapping[Style, Snippet],
    key: str,
    *,
    given: Mapping[str, str],
    cell: Mapping[str, int],
    value: float,
) -> None:
    """The lines in the style that a reader chooses, with shapes.

    given: what the lines read, and its shape or origin. cell: of the chosen number. value: that number, as
    the page shows it.
    """
    row = st.expander("Code", key=f"code-{key}", on_change="rerun")
    if not row.open:
        return
    with row:
        style = one_of(
            "Style", list(STYLES), f"code-style-{key}", named=STYLES.__getitem__, quiet=True
        )
        lines_of(snippets[style], key, given=given, cell=cell, value=value)


def lines_of(
    snippet: Snippet, key: str, *, given: Mapping[str, str], cell: Mapping[str, int], value: float
) -> None:
    """The lines with shapes beside them, and last the chosen number."""
    if listed := ", ".join(f"{name} {given[name]}".strip() for name in snippet.given):
        st.caption(plain(f"Given: {listed}"))
    lines = [
        filled(line.code, cell) + (f"  # {line.beside}" if line.beside else "")
        for line in snippet.lines
    ]
    lines.append(f"{filled(snippet.result, cell)}  # {number(value)}")
    with st.container(key=f"code-of-{key}"):
        st.code("\n".join(lines), language="python", wrap_lines=True)
    if snippet.remark:
        st.caption(plain(snippet.remark))
