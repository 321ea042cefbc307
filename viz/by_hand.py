"""A worked example on a page: its steps one after another, each with formula, numbers and verdict."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import streamlit as st

from model.worked import examples
from model.worked.example import Example, Step
from viz.figures.heatmap import Axis, heatmap
from viz.markdown import plain
from viz.theme import QuantityName


@cache
def worked_example(name: str) -> Example:
    """The worked example of this name, as it opens."""
    return {example.name: example for example in examples()}[name]


def by_hand_of(names: Sequence[str]) -> None:
    """The worked examples of a page: one is chosen, and worked."""
    name = st.selectbox(
        "Example",
        names,
        format_func=lambda name: worked_example(name).title,
        key=f"example-of-{names[0]}",
    )
    by_hand(name)


def by_hand(name: str) -> None:
    """One step at a time: the result beside its formula, and what the notes print where they differ."""
    example = worked_example(name)
    st.markdown(f"**{plain(example.title)}.** {plain(example.idea)}")
    number = st.segmented_control(
        "Step",
        range(len(example.steps)),
        format_func=lambda index: f"{index + 1} {plain(example.steps[index].title)}",
        default=0,
        required=True,
        key=f"step-{example.name}",
        label_visibility="collapsed",
    )
    step = example.steps[number]
    result, formula = st.columns([3, 2], gap="large")
    with result:
        _result(step, example.name)
    with formula:
        st.latex(step.formula)
        if step.numbers:
            st.latex(step.numbers)
        _verdict(step)


def _result(step: Step, name: str) -> None:
    """A matrix as a heatmap with its numbers, a row of numbers as one row, a number as itself."""
    values = np.atleast_2d(step.result)
    if step.result.ndim == 0:
        st.metric(plain(step.title), f"{float(step.result):,.{_decimals(step)}f}")
        return
    counted = [""] if len(values) == 1 else _counted(len(values))
    rows = Axis("", step.rows or counted, tokens=False)
    columns = Axis("", step.columns or _counted(values.shape[1]), tokens=False)
    quantity = _QUANTITIES.get(step.quantity, "score")
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity=quantity,
        blocked=step.blocked,
        decimals=_decimals(step),
    )
    st.plotly_chart(figure, key=f"result-{name}-{step.title}", config={"displayModeBar": False})


_QUANTITIES: dict[str, QuantityName] = {
    "query": "query",
    "key": "key",
    "value": "value",
    "score": "score",
    "weight": "weight",
    "output": "output",
}


def _decimals(step: Step) -> int:
    """Whole numbers, such as counts, shapes and ids, are written as such."""
    return 0 if (step.result == step.result.round()).all() else 4


def _counted(count: int) -> list[str]:
    return [str(position) for position in range(count)]


def _verdict(step: Step) -> None:
    if step.agrees is False:
        printed = np.array2string(np.asarray(step.printed), separator=", ")
        st.warning(f"The notes print {plain(printed)}. {plain(step.remark or '')}")
    elif step.remark:
        st.caption(plain(step.remark))
    if step.agrees:
        st.caption("The notes print the same.")
