"""A worked example on a page: one step at a time, with formula, numbers and what the notes print."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import streamlit as st

from model.worked import examples
from model.worked.example import Example, Step
from viz.figures.cells import labels, worked_step
from viz.notation.markdown import plain
from viz.notation.numbers import number, numbers
from viz.shell.pictures import chart, table
from viz.state.navigation import page_link
from viz.views.worked.code import code_of_step, reads_code
from viz.views.worked.errata import errata_of
from viz.views.worked.printed_table import printed_table

WORKED_PAGE = "pages/worked_examples.py"
SHOW, NOTES, CODE = "show", "notes", "code"  # show=… in the link opens the tab about the notes, …
NO_CODE = "This step has no code: it computes nothing, it shows what is there."
PLACES = "worked-steps"  # session state: the open step of each example
SCROLLING = """<style>
.st-key-%s { overflow-x: auto }
.st-key-%s > div:has(.js-plotly-plot) { min-width: %dpx }
</style>"""


@cache
def worked_example(name: str) -> Example:
    """The worked example of this name, as it opens. Raises KeyError if there is none."""
    return {example.name: example for example in examples()}[name]


def by_hand(*names: str) -> None:
    """A worked example with the numbers it opens with, and the link to change them.

    Where there are several, the reader chooses one.
    """
    name = names[0]
    if len(names) > 1:
        name = st.selectbox(
            "Example",
            names,
            format_func=lambda name: worked_example(name).title,
            key=f"example-of-{name}",
        )
    work_through(worked_example(name))
    page_link(WORKED_PAGE, "Change its numbers →", example=name)


@st.fragment
def work_through(example: Example, moved: Callable[[int], None] | None = None) -> None:
    """One step at a time: the result beside the idea and the formula, and behind it what the notes print.

    Below the steps stand the errata of the notes. moved: is called with the number of the open step,
    counted from 0.
    """
    position = _stepper(example)
    if moved is not None:
        moved(position)
    step = example.steps[position]
    key = f"{example.name}-{position}"
    result, formula = st.columns([3, 2], gap="medium")
    with result:
        _result(step, key)
    with formula:
        stop = "" if example.title.endswith("?") else "."
        st.markdown(f"**{plain(example.title)}{stop}** {plain(example.idea)}")
        chosen = any(example.code) and reads_code(example.name)
        if chosen and example.code[position]:
            code_of_step(example, position)
        else:
            if chosen:
                st.caption(NO_CODE)
            st.latex(step.formula)
        if step.comment:
            st.caption(plain(step.comment))
    if step.numbers:
        st.latex(step.numbers)
    _plain_table(step, key)
    _verdict(step)
    errata_of(example, lambda at: open_step(example.name, at))


def open_step(name: str, position: int) -> None:
    """Opens a step of an example, counted from 0; the nearest one where there is no such step."""
    last = len(worked_example(name).steps) - 1
    _places()[name] = min(max(position, 0), last)


def _places() -> dict[str, int]:
    places: dict[str, int] = st.session_state.setdefault(PLACES, {})
    return places


def _stepper(example: Example) -> int:
    """The buttons back and next, and the list of steps between them; returns the open step."""
    name, last = example.name, len(example.steps) - 1
    open_step(name, _places().get(name, 0))
    position, key = _places()[name], f"step-{name}"
    st.session_state[key] = position
    with st.container(horizontal=True, vertical_alignment="center", key=f"stepper-{name}"):
        st.button(
            "← Back",
            key=f"back-{name}",
            disabled=position == 0,
            on_click=lambda: open_step(name, position - 1),
        )
        st.selectbox(
            "Step",
            range(last + 1),
            format_func=lambda at: f"Step {at + 1} of {last + 1}: {example.steps[at].title}",
            key=key,
            label_visibility="collapsed",
            on_change=lambda: open_step(name, st.session_state[key]),
        )
        st.button(
            "Next →",
            key=f"next-{name}",
            type="primary",
            disabled=position == last,
            on_click=lambda: open_step(name, position + 1),
        )
    return position


def _result(step: Step, key: str) -> None:
    """A matrix or a row as a picture, a single number as a metric."""
    if step.result.ndim == 0:
        st.metric(plain(step.title), number(float(step.result)))
    else:
        figure = worked_step(step)
        with st.container(key=f"scrolls-{key}"):
            st.html(SCROLLING % ((f"scrolls-{key}",) * 2 + (figure.layout.width or 0,)))
            chart(figure, f"result-{key}")


def _verdict(step: Step) -> None:
    """What the notes print for the step, and whether it agrees."""
    if step.notes is None or step.differing is None:
        return
    if step.agrees:
        st.success("The notes give the same result.")
    else:
        count, size = int(step.differing.sum()), int(np.isfinite(step.notes.values).sum())
        where = "" if size == 1 else f" in {count} of {size} figures"
        st.warning(f"The notes give a different result{where}. {plain(step.notes.erratum or '')}")
    st.html(printed_table(step))
    st.caption(plain(f"{step.notes.source}: “{step.notes.quotation}”"))
    page_link(WORKED_PAGE, "What the notes are →", **{SHOW: NOTES})


def _plain_table(step: Step, key: str) -> None:
    values = np.atleast_2d(step.result)
    frame = pd.DataFrame(
        numbers(values),
        index=labels(step.rows, len(values), alone=step.result.ndim < 2),
        columns=labels(step.columns, values.shape[1]),
    )
    table(frame, key)
