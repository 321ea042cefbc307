"""The code of a worked step, which a reader may choose in place of its formula."""

import numpy as np
import streamlit as st

from model.snippets import STYLES, Style
from model.worked.code import given_to, script, snippet
from model.worked.example import Example
from viz.elements.one_of import one_listed
from viz.figures.cells import labels
from viz.shell.pictures import lines_of, script_of

FORMULA, CODE = "Formula", "Code"
READING = "worked-reading"  # session state: which of the two a reader chose last
STYLE = "worked-style"  # session state: the style of the code that a reader chose last


def reads_code(name: str) -> bool:
    """Whether the reader chooses the code here: one choice for all examples. name: of the example."""
    key = f"reading-{name}"
    st.session_state[key] = st.session_state.get(READING, FORMULA)

    def remember() -> None:
        st.session_state[READING] = st.session_state[key]

    chosen = st.segmented_control(
        "Formula or code",
        (FORMULA, CODE),
        required=True,
        key=key,
        label_visibility="collapsed",
        on_change=remember,
    )
    return chosen == CODE


def code_of_step(example: Example, at: int) -> None:
    """The lines of a step in the style that the reader chooses, the chosen cell's number, and a script
    that computes the step alone."""
    step, forms, inputs = example.steps[at], example.code, example.inputs
    style, cell = _style(example, at), _cell(example, at)
    row, column = cell["row"], cell["column"]
    lines_of(
        snippet(forms, inputs, at, style),
        given=given_to(forms, inputs, at, style),
        cell=cell,
        value=float(np.atleast_2d(step.result)[row, column]),
    )
    text = script(forms, inputs, at, style)
    needs = "PyTorch and NumPy" if "import numpy" in text else "PyTorch only"
    script_of(text, f"It needs {needs} and prints the result of this step.")


def _style(example: Example, at: int) -> Style:
    """The style of the code: the one chosen last, where this step has a form in it."""
    offered, key = list(example.code[at]), f"code-style-{example.name}-{at}"
    wanted: Style = st.session_state.get(STYLE, offered[0])
    st.session_state[key] = wanted if wanted in offered else offered[0]

    def remember() -> None:
        st.session_state[STYLE] = st.session_state[key]

    chosen = st.segmented_control(
        "Style",
        offered,
        required=True,
        format_func=STYLES.__getitem__,
        key=key,
        label_visibility="collapsed",
        on_change=remember,
    )
    if wanted not in offered:
        st.caption(f"This step has no form of its own in {STYLES[wanted]}.")
    return chosen or offered[0]


def _cell(example: Example, at: int) -> dict[str, int]:
    """The row and the column of the number that the last line gives; chosen where there are several."""
    step, values = example.steps[at], np.atleast_2d(example.steps[at].result)
    names = {
        "row": labels(step.rows, values.shape[0], alone=step.result.ndim < 2),
        "column": labels(step.columns, values.shape[1]),
    }
    chosen = dict.fromkeys(names, 0)
    several = [axis for axis in names if len(names[axis]) > 1]
    if several:
        row = st.container(horizontal=True)
        for axis in several:
            key = f"code-{axis}-{example.name}-{at}"
            chosen[axis] = one_listed(axis.capitalize(), names[axis], key, box=row)
    return chosen
