"""Heatmaps: large ones in blocks, worked steps number by number, and figures in words."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import plotly.graph_objects as go
import pytest

from model.trace.blocks import CELLS, block_of, largest_of_blocks
from model.trace.trace import Trace
from model.worked import examples
from model.worked.example import Step
from tests.pages.reading import numbers
from viz.figures.alignment import alignment
from viz.figures.cells import worked_step
from viz.figures.heatmap import Axis, heatmap, weights_of_head
from viz.figures.in_words import in_words
from viz.notation import numbers as notation

SENTENCE = "One cell = 2 × 2 positions,<br>"


def numbered(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def long_trace(tokens: int, **more: object) -> Trace:
    dice = np.random.default_rng(0)
    vectors = {name: dice.normal(size=(2, tokens, 4)) for name in ("query", "key", "value")}
    return Trace.from_arrays(**vectors, **more)


def cells(figure: go.Figure) -> go.Heatmap:
    return [trace for trace in figure.data if trace.type == "heatmap"][-1]


def test_a_figure_has_a_bounded_number_of_cells_and_blocks_only_where_it_must() -> None:
    for rows, columns in product([1, 12, 511, 512, 513, 4096, 30_000], repeat=2):
        high, wide = block_of(rows, columns)
        assert -(-rows // high) * -(-columns // wide) <= CELLS
        assert ((high, wide) == (1, 1)) == (rows * columns <= CELLS)


def test_a_block_has_its_number_of_largest_size_and_none_only_where_all_are_masked() -> None:
    nan = np.nan
    values = np.array([[1, -3, nan], [2, 0, nan], [nan, 4, -5]], np.float32)
    np.testing.assert_array_equal(largest_of_blocks(values, (2, 2)), [[-3, nan], [4, -5]])


def test_scores_and_differences_have_a_scale_around_0_and_weights_one_from_0_to_1() -> None:
    axes = {"rows": Axis("query", numbered(2)), "columns": Axis("key", numbered(2))}
    values = np.array([[0.25, -3], [1, 0]], np.float32)
    for quantity, ends in (("score", (-3, 3)), ("difference", (-3, 3)), ("weight", (0, 1))):
        drawn = cells(heatmap(values, quantity=quantity, **axes))
        assert (drawn.zmin, drawn.zmax) == ends


def test_a_long_matrix_is_drawn_in_blocks_that_lie_where_their_tokens_do() -> None:
    count = 1001
    values = np.zeros((count, count), np.float32)
    values[700, 301] = -7
    masked = np.triu(np.ones((count, count), bool), 1)
    axes = {"rows": Axis("query", numbered(count)), "columns": Axis("key", numbered(count))}
    figure = heatmap(values, quantity="score", blocked=masked, square=True, **axes)
    drawn = cells(figure)
    z = numbers(drawn.to_plotly_json()["z"])
    assert z.shape == (501, 501)
    row, column = np.argwhere(z == -7)[0]
    assert (drawn.dy, drawn.dx) == (2, 2)
    assert drawn.y0 + row * drawn.dy == 700.5  # the middle of tokens 700 and 701
    assert drawn.x0 + column * drawn.dx == 300.5
    assert np.isnan(z[10, 11])  # all of these four are masked
    assert not np.isnan(z[10, 10])
    assert tuple(figure.layout.xaxis.range) == (-0.5, count - 0.5)
    assert any(re.match(f"{SENTENCE}.*largest size", one.text) for one in figure.layout.annotations)
    assert "501 × 501 cells" in in_words(figure)


def test_a_short_matrix_says_nothing_of_blocks() -> None:
    axes = {"rows": Axis("query", numbered(300)), "columns": Axis("key", numbered(300))}
    figure = heatmap(np.eye(300, dtype=np.float32), quantity="weight", square=True, **axes)
    assert not figure.layout.annotations
    assert cells(figure).dx is None


def test_weights_in_blocks_are_the_largest_of_the_heads_own() -> None:
    count = 700
    attention = long_trace(count, mask=np.tri(count, dtype=bool)).attention[0]
    figure = weights_of_head(attention, 1, queries=numbered(count), keys=numbered(count))
    z = numbers(cells(figure).to_plotly_json()["z"])
    whole = largest_of_blocks(attention.weights(1), (2, 2))
    future = np.isnan(z)
    np.testing.assert_allclose(z[~future], whole[~future], atol=1e-6)
    np.testing.assert_array_equal(future, np.triu(np.ones((350, 350), bool), 1))
    assert f"{SENTENCE}their maximum." in [one.text for one in figure.layout.annotations]


def test_a_named_cell_stands_in_a_frame_alone_and_in_its_block() -> None:
    for count, around in ((5, (0.5, 1.5, 2.5, 3.5)), (700, (-0.5, 1.5, 1.5, 3.5))):
        attention = long_trace(count, mask=np.tri(count, dtype=bool)).attention[0]
        tokens = numbered(count)
        figure = weights_of_head(attention, 1, queries=tokens, keys=tokens, cell=(3, 1))
        frames = {(one.x0, one.x1, one.y0, one.y1) for one in figure.layout.shapes}
        assert frames == {around}
        plain = weights_of_head(attention, 1, queries=tokens, keys=tokens)
        assert not plain.layout.shapes


def test_a_sink_has_blocks_of_its_own() -> None:
    count = 601
    attention = replace(long_trace(count).attention[0], sinks=np.array([0.0, 3.0], np.float32))
    figure = weights_of_head(attention, 1, queries=numbered(count), keys=numbered(count))
    z = numbers(cells(figure).to_plotly_json()["z"])
    taken = attention.sink_weights(1)
    np.testing.assert_allclose(z[:300, -1], taken[:600].reshape(300, 2).max(1), atol=1e-6)
    assert z.shape == (301, 302)  # 301 blocks of keys, and the sink's


def written(figure: go.Figure) -> dict[tuple[int, int], str]:
    """What stands in the cells, by row and column."""
    return {
        (int(row), int(column)): text
        for trace in figure.data
        if trace.type == "scatter" and trace.mode == "text"
        for row, column, text in zip(trace.y, trace.x, trace.text, strict=True)
    }


def frames(figure: go.Figure) -> set[tuple[float, float]]:
    """Row and column of each framed cell."""
    return {
        ((shape.y0 + shape.y1) / 2, (shape.x0 + shape.x1) / 2)
        for shape in figure.layout.shapes
        if shape.type == "rect"
    }


def test_every_number_stands_in_its_cell_and_just_the_errata_are_framed(
    subtests: pytest.Subtests,
) -> None:
    for example in examples():
        with subtests.test(example=example.name):
            for step in example.steps:
                if not step.result.ndim:
                    continue
                figure = worked_step(step)
                values = np.atleast_2d(step.result)
                if figure.data[0].type == "scatter" and figure.data[0].mode != "text":  # lines
                    assert [list(line.y) for line in figure.data] == values.tolist()
                else:
                    assert_cells(figure, step, values)


def assert_cells(figure: go.Figure, step: Step, values: np.ndarray) -> None:
    upright = cells(figure).z.shape != values.shape
    words = notation.numbers(values)
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


def weights_of(values: np.ndarray, tokens: list[str], **more: object) -> go.Figure:
    axes = {"rows": Axis("query", tokens), "columns": Axis("key", tokens)}
    return heatmap(values, **axes, quantity="weight", square=True, **more)  # type: ignore[arg-type]


def test_a_heatmap_tells_where_its_largest_number_stands() -> None:
    values = np.array([[0.25, 0.0], [0.1, 0.75]])
    blocked = np.array([[False, True], [False, False]])
    words = ["the", "<b>&"]
    said = in_words(weights_of(values, words, blocked=blocked))
    assert re.search(r"2 × 2 .*\bquery\b.*\bkey\.", said)
    assert re.search(r"Largest 0\.75 .*query <b>&, key <b>&;.* 0\.1\.", said)
    assert "1 cell is masked" in said


def test_bars_tell_the_largest_and_whose_it_is() -> None:
    trace = go.Bar(x=[1.0, 3.0, None], y=[0, 1, 2], orientation="h")
    figure = go.Figure(trace)
    figure.update_xaxes(title={"text": "probability<br>colours end somewhere"})
    figure.update_yaxes(tickvals=[0, 1, 2], ticktext=["a", "&lt;b&gt;", "c"])
    assert re.fullmatch(r"Bars\. probability: 2 .* 3 .*<b>\.", in_words(figure))


def test_lines_tell_where_they_start_and_end_and_how_far_they_go() -> None:
    figure = go.Figure(go.Scatter(y=[1.0, 5.0, 2.0, float("nan")], name="loss"))
    figure.update_layout(xaxis={"title": {"text": "step"}}, yaxis={"title": {"text": "nats"}})
    said = in_words(figure)
    assert re.fullmatch(r"Lines, nats .*step\. loss: 3 .* 1 .* 2, .* 1 .* 5\.", said)


def test_an_alignment_tells_what_each_word_reads_most() -> None:
    weights = np.array([[0.9, 0.1], [0.2, 0.8]])
    said = in_words(alignment(weights, source=["black", "cat"], target=["chat", "noir"]))
    assert re.search(r"\bchat .*black \(0\.90\); noir .*cat \(0\.80\)", said)


def test_a_picture_without_a_number_is_still_a_sentence() -> None:
    empty = weights_of(np.full((1, 1), np.nan), ["a"])
    for figure in (go.Figure(), go.Figure(go.Bar()), empty):
        assert re.fullmatch(r".+\.", in_words(figure))
        assert "nan" not in in_words(figure)
