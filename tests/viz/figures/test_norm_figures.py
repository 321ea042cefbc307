"""The pictures of the layer norm page: rows, marks, where colours end, and text that is only text."""

import numpy as np
import plotly.graph_objects as go
import pytest

from viz.figures.curves import variance_gap
from viz.figures.diagrams import norm_orders
from viz.figures.heatmap import Axis
from viz.figures.vectors import MARKED, colour_end, token_rows

HOSTILE = ["<b>x</b>", "$y$", "", "a", "a"]


def cells(figure: go.Figure) -> go.Heatmap:
    (found,) = [trace for trace in figure.data if trace.type == "heatmap"]
    return found


def columns(count: int) -> Axis:
    return Axis("dimension", [str(column) for column in range(count)], tokens=False)


def test_equal_tokens_keep_their_rows_and_each_row_has_its_mark() -> None:
    values = np.arange(20.0).reshape(5, 4)
    figure = token_rows(values, tokens=HOSTILE, columns=columns(4), quantity="stream", chosen=2)
    assert next(figure.select_traces({"type": "heatmap"})).z.shape == (5, 4)
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    marks = figure.data[-1]
    assert marks.name == "marks"
    assert list(marks.y) == [0, 1, 2, 3, 4]
    assert marks.x[0] < -0.5
    assert len({marks.marker.color[row] for row in (0, 1, 3, 4)}) == 1
    assert marks.marker.color[2] != marks.marker.color[0]


def test_marks_that_would_touch_are_left_out_and_nothing_else_is() -> None:
    count = MARKED + 1
    figure = token_rows(
        np.ones((count, 3)), tokens=["a"] * count, columns=columns(3), quantity="stream", chosen=1
    )
    assert [trace.type for trace in figure.data] == ["heatmap"]
    assert len(figure.layout.shapes) == 1


def test_a_picture_says_how_many_values_lie_beyond_its_colours() -> None:
    values = np.ones((10, 100))
    values[0, 0] = 50.0
    end = colour_end(values)
    assert end.value == pytest.approx(1)
    assert end.beyond == 1
    figure = token_rows(values, tokens=["t"] * 10, columns=columns(100), quantity="stream", end=end)
    assert "1 of 1,000 values lie beyond" in figure.layout.xaxis.title.text
    assert next(figure.select_traces({"type": "heatmap"})).zmax == pytest.approx(1)


def test_without_outliers_the_colours_reach_the_largest_value() -> None:
    end = colour_end(np.array([[1.0, -3.0], [2.0, 2.5]]))
    assert end.value == 3
    assert end.beyond == 0
    assert "largest value" in end.words


def test_values_that_are_all_zero_are_drawn() -> None:
    figure = token_rows(np.zeros((1, 2)), tokens=["a"], columns=columns(2), quantity="output")
    assert next(figure.select_traces({"type": "heatmap"})).zmax > 0


def test_the_models_own_order_is_the_one_in_bold() -> None:
    for own, other in (("pre", "post"), ("post", "pre")):
        texts = [note.text for note in norm_orders(own).layout.annotations]  # type: ignore[arg-type]
        assert any(text.startswith(f"<b>{own}-norm") and "this model" in text for text in texts)
        assert any(text.startswith(f"{other}-norm") for text in texts)


@pytest.mark.parametrize(("width", "gap"), [(4, 13.40), (128, 0.39), (512, 0.10), (576, 0.09)])
def test_the_gap_of_a_width_is_marked(width: int, gap: float) -> None:
    own = variance_gap(width).data[-1]
    assert list(own.x) == [width]
    assert own.y[0] == pytest.approx(gap, abs=0.005)
    assert own.y[0] == pytest.approx(100 * (1 - ((width - 1) / width) ** 0.5))
