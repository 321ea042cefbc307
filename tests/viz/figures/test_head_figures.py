"""All heads in one picture: small enough, on one scale, each tile where its mark is."""

import math

import numpy as np
import pytest

from model.analysis.heads.families import families
from model.analysis.heads.tiles import Tiles, tiles
from model.trace.arrays import read_only
from tests.model.tiny import loaded, run
from viz.figures.bars import part_bars
from viz.figures.head_tiles import LEVELS, head_grid, head_map
from viz.figures.heatmap import NARROW, weights_of_head


def drawn_tiles(layers: int, heads: int, cells: int = 32) -> Tiles:
    """Random tiles with a causal mask, as a long text gives them."""
    draws = np.random.default_rng(0)
    future = np.triu(np.ones((cells, cells), bool), 1)
    weights = np.where(future, 0, draws.random((layers, heads, cells, cells)))
    return Tiles(
        tuple(f"decoder.{layer}.self" for layer in range(layers)),
        read_only(weights),
        read_only(np.broadcast_to(future, (layers, cells, cells)).copy()),
        (8, 8),
    )


def words(layers: int, heads: int) -> list[str]:
    return [f"L{layer}H{head}" for layer in range(layers) for head in range(heads)]


def trace_of(figure, name: str):
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def written_in(figure) -> set[str]:
    """The words that stand in the cells."""
    rows = [trace.text for trace in figure.data if trace.type == "scatter" and trace.mode == "text"]
    return {text for row in rows for text in row}


@pytest.mark.parametrize(("layers", "heads"), [(12, 12), (30, 9), (6, 12), (1, 1)])
def test_the_grid_is_one_picture_within_two_megabytes(layers: int, heads: int) -> None:
    figure = head_grid(drawn_tiles(layers, heads), chosen=(0, 0), words=words(layers, heads))
    assert len(figure.to_json()) < 2_000_000
    assert len(figure.data) == 5  # weights, masked cells, hatching, frames, marks
    assert len(trace_of(figure, "heads").x) == layers * heads


def test_heads_that_share_keys_have_frames_of_one_colour() -> None:
    found = drawn_tiles(2, 9)
    figure = head_grid(found, chosen=None, words=words(2, 9), groups=3)
    marks = trace_of(figure, "heads")
    lines = [one for one in figure.data if one.type == "scatter" and one.mode == "lines"]
    frames = [one for one in lines if one.name != "masked"]
    assert len({frame.line.color for frame in frames}) == len(frames) == 3
    for group, frame in enumerate(frames):
        corners = np.array(frame.x, dtype=float)
        lefts, rights = corners[::6], corners[1::6]
        inside = [int(np.flatnonzero((lefts <= x) & (x <= rights)).size > 0) for x in marks.x]
        assert inside == [int(head // 3 == group) for head in range(9)] * 2


def test_the_hatching_lies_on_the_masked_cells_of_every_tile_alone() -> None:
    found = drawn_tiles(2, 3)
    figure = head_grid(found, chosen=None, words=words(2, 3))
    greys, hatching = np.array(figure.data[1].z), trace_of(figure, "masked")
    x, y = (np.array(ends, dtype=float).reshape(-1, 3) for ends in (hatching.x, hatching.y))
    on = np.zeros_like(greys)
    for (right, left, _), (top, bottom, _) in zip(x, y, strict=True):
        assert right - left == bottom - top > 0  # slanting
        rows = np.arange(top + 0.5, bottom).astype(int)
        on[rows, (right - 0.5 - np.arange(len(rows))).astype(int)] = 1
    assert (greys[on == 1] == 1).all()
    high, wide = (np.array(greys.shape) + 1) // (2, 3)
    for layer in range(2):
        for head in range(3):
            tile = np.s_[layer * high : (layer + 1) * high, head * wide : (head + 1) * wide]
            assert on[tile].sum() > greys[tile].sum() / 8


def test_each_tile_lies_under_its_mark_on_one_scale_from_0_to_1() -> None:
    trace = run(loaded("gpt"))
    found = tiles(trace, families(trace)[0])
    layers, heads, rows, columns = found.weights.shape
    figure = head_grid(found, chosen=(1, 2), words=words(layers, heads))
    image, marks = figure.data[0], trace_of(figure, "heads")
    assert (image.zmin, image.zmax) == (0, LEVELS)
    times = 24 // max(rows, columns)
    for layer in range(layers):
        for head in range(heads):
            x, y = marks.x[layer * heads + head], marks.y[layer * heads + head]
            left, top = x - (columns * times - 1) / 2, y - (rows * times - 1) / 2
            assert left == int(left)
            part = image.z[int(top) :: times, int(left) :: times][:rows, :columns]
            np.testing.assert_allclose(part / LEVELS, found.weights[layer, head], atol=0.5 / LEVELS)
    (frame,) = figure.layout.shapes
    assert frame.x0 < marks.x[heads + 2] < frame.x1
    assert frame.y0 < marks.y[heads + 2] < frame.y1


def test_masked_cells_are_drawn_apart_and_not_as_weights() -> None:
    figure = head_grid(drawn_tiles(2, 2, cells=4), chosen=None, words=words(2, 2))
    image, grey = figure.data[:2]
    assert grey.z.max() == 1
    assert image.z[grey.z == 1].max() == 0
    everywhere = loaded("bert")
    trace = run(everywhere)
    open_ = head_grid(tiles(trace, families(trace)[0]), chosen=None, words=words(2, 3))
    assert len(open_.data) == 3


@pytest.mark.parametrize(("quantity", "low"), [("weight", 0), ("difference", -3), ("stream", 0)])
def test_a_map_has_a_number_and_a_mark_for_every_head(quantity: str, low: float) -> None:
    values = np.array([[0.5, 3.0, 0.25], [1.0, 0.0, -0.001]])
    figure = head_map(values, quantity=quantity, title="t", chosen=(0, 1), words=words(2, 3))
    picture = next(trace for trace in figure.data if trace.type == "heatmap")
    assert picture.zmin == low
    assert list(trace_of(figure, "heads").x) == [0, 1, 2] * 2
    assert list(trace_of(figure, "heads").y) == [0] * 3 + [1] * 3
    said = written_in(figure)
    assert said == {"0.50", "3.00", "0.25", "1.00", "0.00"}


def test_many_heads_leave_the_leading_nought_out_and_heads_not_run_stay_empty() -> None:
    values = np.full((1, 12), 0.071)
    values[0, 5], values[0, 6] = math.nan, -0.5
    figure = head_map(values, quantity="difference", title="t", chosen=None, words=words(1, 12))
    said = written_in(figure)
    assert said == {".07", "−.50"}


def test_a_narrow_picture_has_numbers_only_where_they_fit() -> None:
    attention = run(loaded("gpt")).attention[0]
    short = loaded("gpt").trace("the cat saw").attention[0]
    for record, numbered in ((attention, False), (short, True)):
        labels = ["a"] * record.weights(0).shape[0]
        figure = weights_of_head(record, 0, queries=labels, keys=labels, fitting=NARROW)
        said = written_in(figure)
        assert bool(said - {""}) == numbered


def test_what_a_sink_takes_stands_in_a_column_of_its_own() -> None:
    attention = loaded("all-stages").trace("the cat saw").attention[0]
    labels = [str(position) for position in range(len(attention.query[0]))]
    figure = weights_of_head(attention, 1, queries=labels, keys=labels)
    drawn = np.nan_to_num(figure.data[-1].z)
    np.testing.assert_allclose(drawn.sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(drawn[:, -1], attention.sink_weights(1))
    assert figure.layout.xaxis.ticktext[-1] == "sink"
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1) == (len(labels) - 0.5, len(labels) + 0.5)


def test_bars_are_in_order_with_their_numbers_and_no_live_markup() -> None:
    figure = part_bars(["<b>L0H1</b>", "bias"], [2.0, -1.0], title="adds")
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;L0H1&lt;/b&gt;", "bias")
    assert list(figure.data[0].text) == ["+2.00", "−1.00"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
