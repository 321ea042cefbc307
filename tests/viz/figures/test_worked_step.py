"""The picture of a worked step: every number in its own cell, masked cells and errata marked."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.worked import examples
from model.worked.example import Step
from viz.figures.cells import worked_step
from viz.notation.numbers import numbers

STEPS = [
    pytest.param(step, id=f"{example.name}-{number}")
    for example in examples()
    for number, step in enumerate(example.steps)
    if step.result.ndim
]


def written(figure: go.Figure) -> dict[tuple[int, int], str]:
    """What stands in the cells, by row and column."""
    return {
        (int(row), int(column)): text
        for trace in figure.data
        if trace.type == "scatter" and trace.mode == "text"
        for row, column, text in zip(trace.y, trace.x, trace.text, strict=True)
    }


def cells(figure: go.Figure) -> go.Heatmap:
    return [trace for trace in figure.data if trace.type == "heatmap"][-1]


def frames(figure: go.Figure) -> set[tuple[float, float]]:
    """Row and column of each framed cell."""
    return {
        ((shape.y0 + shape.y1) / 2, (shape.x0 + shape.x1) / 2)
        for shape in figure.layout.shapes
        if shape.type == "rect"
    }


@pytest.mark.parametrize("step", STEPS)
def test_every_number_stands_in_its_cell_and_just_the_errata_are_framed(step: Step) -> None:
    figure = worked_step(step)
    values = np.atleast_2d(step.result)
    if figure.data[0].type == "scatter" and figure.data[0].mode != "text":  # lines
        assert [list(line.y) for line in figure.data] == values.tolist()
    else:
        assert_cells(figure, step, values)


def assert_cells(figure: go.Figure, step: Step, values: np.ndarray) -> None:
    upright = cells(figure).z.shape != values.shape
    words = numbers(values)
    blocked = None if step.blocked is None else np.atleast_2d(step.blocked)
    shown = {
        (column, row) if upright else (row, column): words[row][column]
        for row, column in np.ndindex(values.shape)
        if step.quantity != "weight" or blocked is None or not blocked[row, column]
    }
    assert written(figure) == shown
    off = np.argwhere(np.atleast_2d(step.differing)) if step.differing is not None else []
    assert len(frames(figure)) == len(off)
    assert upright or frames(figure) == {(float(row), float(column)) for row, column in off}


def test_masked_cells_are_hatched_and_hold_no_colour() -> None:
    blocked = np.array([[False, True], [False, False]])
    step = Step("x", "x", np.array([[1.0, 0.0], [0.5, 0.5]]), quantity="weight", blocked=blocked)
    figure = worked_step(step)
    assert np.isnan(cells(figure).z[0, 1])
    assert "masked" in figure.data[0].hovertemplate
    (hatching,) = [trace for trace in figure.select_traces({"fill": "toself"})]
    assert hatching.fillpattern.shape == "/"
    assert (min(hatching.x), max(hatching.x)) == (0.5, 1.5)
    assert (min(hatching.y), max(hatching.y)) == (-0.5, 0.5)


def test_numbers_of_different_kinds_take_no_colour_and_vectors_take_theirs() -> None:
    plain = worked_step(Step("x", "x", np.array([1.0, 900.0])))
    coloured = worked_step(Step("x", "x", np.array([1.0, 900.0]), quantity="query"))
    assert len({colour for _, colour in cells(plain).colorscale}) == 1
    assert len({colour for _, colour in cells(coloured).colorscale}) > 1


def test_a_row_with_long_labels_stands_upright() -> None:
    labels = tuple(f"a rather long label {number}" for number in range(4))
    figure = worked_step(Step("x", "x", np.arange(4.0), columns=labels))
    assert cells(figure).z.shape == (4, 1)
    assert list(figure.layout.yaxis.ticktext) == list(labels)


def test_a_picture_leaves_each_number_room() -> None:
    figure = worked_step(Step("x", "x", np.full((2, 10), -1000.1234)))
    assert figure.layout.width >= 10 * 7 * len("-1,000.1234")
