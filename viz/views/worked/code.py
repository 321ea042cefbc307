"""The code of a worked step, which a reader may choose in place of its formula."""

import streamlit as st

from model.worked.code import given_to, script, written
from model.worked.example import Example
from viz.notation.markdown import plain

FORMULA, CODE = "Formula", "Code"
READING = "worked-reading"  # session state: which of the two a reader chose last


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


def code_of_step(example: Example, position: int) -> None:
    """The lines of a step, what they read, and a script that computes the step alone."""
    steps, inputs = example.steps, example.inputs
    given = given_to(steps, inputs, position)
    listed = ", ".join(f"{name} {shape}".strip() for name, shape in given.items())
    if listed:
        st.caption(plain(f"Given: {listed}"))
    with st.container(key=f"code-of-{example.name}"):
        st.code(written(steps[position]), language="python", wrap_lines=True)
    with st.popover("Copy as a script"):
        text = script(steps, inputs, position)
        needs = "PyTorch and NumPy" if "import numpy" in text else "PyTorch only"
        st.caption(f"It needs {needs} and prints the result of this step.")
        st.code(text, language="python")
