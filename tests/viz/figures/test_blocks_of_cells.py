"""A matrix of more cells than a picture shows: drawn in blocks, on axes that still count tokens."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.trace.blocks import CELLS, block_of, largest_of_blocks
from model.trace.trace import Trace
from tests.pages.reading import numbers
from viz.figures.heatmap import Axis, heatmap, weights_of_head
from viz.figures.in_words import in_words

SENTENCE = "One cell = 2 × 2 positions,<br>"


def labels(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def long_trace(tokens: int, **more: object) -> Trace:
    dice = np.random.default_rng(0)
    vectors = {name: dice.normal(size=(2, tokens, 4)) for name in ("query", "key", "value")}
    return Trace.from_arrays(**vectors, **more)


def cells_of(figure: go.Figure) -> go.Heatmap:
    return figure.data[-1]


@pytest.mark.parametrize("rows", [1, 12, 511, 512, 513, 4096, 30_000])
@pytest.mark.parametrize("columns", [1, 12, 511, 512, 513, 4096, 30_000])
def test_a_picture_has_a_bounded_number_of_cells_and_blocks_only_where_it_must(
    rows: int, columns: int
) -> None:
    high, wide = block_of(rows, columns)
    assert -(-rows // high) * -(-columns // wide) <= CELLS
    assert ((high, wide) == (1, 1)) == (rows * columns <= CELLS)


def test_a_block_has_its_number_of_largest_size_and_none_only_where_all_are_masked() -> None:
    nan = np.nan
    values = np.array([[1, -3, nan], [2, 0, nan], [nan, 4, -5]], np.float32)
    np.testing.assert_array_equal(largest_of_blocks(values, (2, 2)), [[-3, nan], [4, -5]])


def test_a_long_matrix_is_drawn_in_blocks_that_lie_where_their_tokens_do() -> None:
    count = 1001
    values = np.zeros((count, count), np.float32)
    values[700, 301] = -7
    masked = np.triu(np.ones((count, count), bool), 1)
    axes = {"rows": Axis("query", labels(count)), "columns": Axis("key", labels(count))}
    figure = heatmap(values, quantity="score", blocked=masked, square=True, **axes)
    drawn = cells_of(figure)
    z = numbers(drawn.to_plotly_json()["z"])
    assert z.shape == (501, 501)
    row, column = np.argwhere(z == -7)[0]
    assert (drawn.dy, drawn.dx) == (2, 2)
    assert drawn.y0 + row * drawn.dy == 700.5  # the middle of tokens 700 and 701
    assert drawn.x0 + column * drawn.dx == 300.5
    assert np.isnan(z[10, 11])  # all of these four are masked
    assert not np.isnan(z[10, 10])
    assert tuple(figure.layout.xaxis.range) == (-0.5, count - 0.5)
    assert f"{SENTENCE}the value of largest size." in [
        one.text for one in figure.layout.annotations
    ]
    assert "501 × 501 cells" in in_words(figure)


def test_a_short_matrix_says_nothing_of_blocks() -> None:
    axes = {"rows": Axis("query", labels(300)), "columns": Axis("key", labels(300))}
    figure = heatmap(np.eye(300, dtype=np.float32), quantity="weight", square=True, **axes)
    assert not figure.layout.annotations
    assert cells_of(figure).dx is None


def test_weights_in_blocks_are_the_largest_of_the_heads_own() -> None:
    count = 700
    attention = long_trace(count, mask=np.tri(count, dtype=bool)).attention[0]
    figure = weights_of_head(attention, 1, queries=labels(count), keys=labels(count))
    z = numbers(cells_of(figure).to_plotly_json()["z"])
    whole = largest_of_blocks(attention.weights(1), (2, 2))
    future = np.isnan(z)
    np.testing.assert_allclose(z[~future], whole[~future], atol=1e-6)
    np.testing.assert_array_equal(future, np.triu(np.ones((350, 350), bool), 1))
    assert f"{SENTENCE}their maximum." in [one.text for one in figure.layout.annotations]


def test_a_sink_has_blocks_of_its_own() -> None:
    from dataclasses import replace

    count = 601
    attention = replace(long_trace(count).attention[0], sinks=np.array([0.0, 3.0], np.float32))
    figure = weights_of_head(attention, 1, queries=labels(count), keys=labels(count))
    z = numbers(cells_of(figure).to_plotly_json()["z"])
    taken = attention.sink_weights(1)
    np.testing.assert_allclose(z[:300, -1], taken[:600].reshape(300, 2).max(1), atol=1e-6)
    assert z.shape == (301, 302)  # 301 blocks of keys, and the sink's
