"""Pictures of a score as a sum and of edges: every number at its place, every point numbered as its cell."""

import numpy as np
import pytest

from viz.figures.bars import edge_bars, edge_lengths
from viz.figures.head_tiles import score_parts
from viz.notation.theme import LESS, MORE

VALUES = np.array([[1.5, -0.001, 0.0], [2.0, -3.0, 0.25]])
NAMES = {"query_parts": ["token", "L0H0"], "key_parts": ["token", "L0H0", "biases"]}


def test_each_pair_of_parts_has_its_point_and_unless_it_is_small_its_number() -> None:
    words = [f"cell {number}" for number in range(6)]
    figure = score_parts(VALUES, query="<b>", key=" Hill", words=words, **NAMES)
    cells = next(trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_allclose(cells.z, VALUES)
    points = figure.data[-1]
    assert list(zip(points.x, points.y, points.text, strict=True))[4] == (1, 1, "cell 4")
    drawn = figure.select_traces({"type": "scatter", "mode": "text"})
    written = [text for trace in drawn for text in trace.text]
    assert sorted(written) == sorted(["1.50", "", "", "2.00", "−3.00", "0.25"])
    assert figure.layout.yaxis.title.text == "query of &lt;b&gt;"
    assert figure.layout.xaxis.title.text == "key of ·Hill"


def test_a_bar_for_each_key_beside_its_weight() -> None:
    weights, added = np.array([0.748, 0.25, 0.002]), np.array([-0.5, 1.25, -0.001])
    figure = edge_bars(["a", "a", "b"], weights, added, title="adds", is_signed=True)
    left, right = figure.data
    assert (list(left.x), list(right.x), right.xaxis) == (
        [0.748, 0.25, 0.002],
        [-0.5, 1.25, -0.001],
        "x2",
    )
    assert list(left.y) == list(right.y) == [0, 1, 2]
    assert (list(right.text), list(right.marker.color)) == (
        ["−0.50", "+1.25", ""],
        [LESS, MORE, LESS],
    )
    assert list(left.text) == ["0.75", "0.25", ""]
    assert figure.layout.xaxis2.range[0] < -0.5
    assert figure.layout.xaxis2.title.text == "adds"
    with pytest.raises(ValueError, match="2 tokens"):
        edge_bars(["a", "b"], weights, added, title="adds", is_signed=True)


def test_lengths_run_from_nothing_to_the_longest() -> None:
    blocked = np.array([[False, True], [False, False]])
    figure = edge_lengths(
        np.array([[2.0, 0.0], [0.5, 1.0]]), queries=["a", "b"], keys=["a", "b"], blocked=blocked
    )
    cells = figure.data[-1]
    assert (cells.zmin, cells.zmax) == (0, 2)
    assert np.isnan(cells.z[0][1])
