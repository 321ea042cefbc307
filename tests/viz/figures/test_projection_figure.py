"""A token's vector times a head's matrix: each number of the matrix below its number of x."""

from itertools import pairwise

import numpy as np
import pytest

from viz.figures.vectors import projection

DRAWS = np.random.default_rng(0)
X, MATRIX, BIAS = DRAWS.normal(size=12), DRAWS.normal(size=(4, 12)), DRAWS.normal(size=4)


def drawn(bias: np.ndarray):
    return projection(
        X,
        MATRIX,
        bias,
        MATRIX @ X + bias,
        dimension=2,
        marked=[7, 1],
        quantity="query",
        letters=("q", "W_Q"),
    )


def test_the_rows_of_the_picture_add_up() -> None:
    figure = drawn(BIAS)
    cells = {trace.name: trace for trace in figure.data}
    assert list(cells) == ["x", "W_Q", "products", "b", "q", "written out"]
    total = cells["products"].z.sum() + cells["b"].z[2, 0]
    assert total == pytest.approx(cells["q"].z[2, 0], abs=1e-5)
    assert cells["x"].z[0] * cells["W_Q"].z[2] == pytest.approx(cells["products"].z[0], abs=1e-6)
    assert cells["x"].x0 is cells["W_Q"].x0 is cells["products"].x0 is None  # one column each


def test_the_strips_do_not_overlap_and_the_frame_is_around_the_chosen_row() -> None:
    figure = drawn(BIAS)
    x, matrix, products, bias, result, written = figure.data
    edges = [
        (trace.y0 - trace.dy / 2, trace.y0 + (len(trace.z) - 0.5) * trace.dy)
        for trace in (x, matrix, products)
    ]
    assert all(before[1] < after[0] for before, after in pairwise(edges))
    assert len(X) - 0.5 < bias.x0 - bias.dx / 2
    assert bias.x0 + bias.dx / 2 < result.x0 - result.dx / 2
    (frame,) = figure.layout.shapes
    assert (frame.y0, frame.y1) == pytest.approx((matrix.y0 + 1.5, matrix.y0 + 2.5))
    assert list(written.x) == [7, 1]
    assert edges[1][1] < written.y[0] < edges[2][0]
    assert figure.layout.xaxis.tickvals[:3] == (0, 2, 4)


def test_no_bias_is_drawn_where_there_is_none() -> None:
    names = [trace.name for trace in drawn(np.zeros(4)).data]
    assert names == ["x", "W_Q", "products", "q", "written out"]
