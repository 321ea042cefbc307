"""The lines of code behind a picture, closed until a reader opens them."""

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from model.snippets import STYLES, Snippet, Style, filled, lone_script
from model.snippets.script import TRACE_FILE
from viz.elements.one_of import one_of
from viz.notation.markdown import plain
from viz.notation.numbers import number

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
