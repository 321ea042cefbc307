"""Figures of heads: every number, frame and mark at its place, nothing drawn that is not there."""

import math
import re

import numpy as np
import pytest

from model.analysis.heads.statistics import Tiles, families, tiles
from model.trace.arrays import read_only
from tests.cases import cases
from tests.model.tiny import loaded, run
from viz.figures.bars import edge_bars, edge_lengths, part_bars
from viz.figures.head_tiles import LEVELS, Link, composition_graph, head_grid, head_map, hue_of
from viz.figures.heatmap import NARROW, weights_of_head
from viz.figures.vectors import merging, merging_of_tokens
from viz.notation.theme import LESS, MORE


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


@cases("layers, heads", [(12, 12), (30, 9), (6, 12), (1, 1)])
def test_the_grid_is_one_picture_within_two_megabytes(layers, heads) -> None:
    figure = head_grid(drawn_tiles(layers, heads), chosen=(0, 0), words=words(layers, heads))
    assert len(figure.to_json()) < 2_000_000
    assert len(figure.data) == 3  # weights, masked cells, marks
    assert len(figure.layout.shapes) == 3  # hatching, frames, the chosen head's: an element each
    assert len(trace_of(figure, "heads").x) == layers * heads


def places_on(path: str) -> np.ndarray:
    """Where a shape's path goes: (place, x and y)."""
    return np.array(re.findall(r"[-\d.]+", path), dtype=float).reshape(-1, 2)


def test_heads_that_share_keys_have_frames_of_one_colour() -> None:
    found = drawn_tiles(2, 9)
    figure = head_grid(found, chosen=None, words=words(2, 9), groups=3)
    marks = trace_of(figure, "heads")
    frames = [one for one in figure.layout.shapes if "Z" in one.path]
    assert len({frame.line.color for frame in frames}) == len(frames) == 3
    for group, frame in enumerate(frames):
        corners = places_on(frame.path)[:, 0]
        lefts, rights = corners[::4], corners[1::4]
        inside = [int(np.flatnonzero((lefts <= x) & (x <= rights)).size > 0) for x in marks.x]
        assert inside == [int(head // 3 == group) for head in range(9)] * 2


def test_the_hatching_lies_on_the_masked_cells_of_every_tile_alone() -> None:
    found = drawn_tiles(2, 3)
    figure = head_grid(found, chosen=None, words=words(2, 3))
    greys = np.array(figure.data[1].z)
    (hatching,) = (one for one in figure.layout.shapes if "Z" not in one.path)
    on = np.zeros_like(greys)
    for (right, top), (left, bottom) in places_on(hatching.path).reshape(-1, 2, 2):
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
    (frame,) = (one for one in figure.layout.shapes if one.type == "rect")
    assert frame.x0 < marks.x[heads + 2] < frame.x1
    assert frame.y0 < marks.y[heads + 2] < frame.y1
    corners = places_on(next(one.path for one in figure.layout.shapes if "Z" in (one.path or "")))
    middles = corners.reshape(-1, 4, 2).mean(axis=1)
    np.testing.assert_array_equal(middles, np.stack([marks.x, marks.y], 1))


def test_masked_cells_are_drawn_apart_and_not_as_weights() -> None:
    figure = head_grid(drawn_tiles(2, 2, cells=4), chosen=None, words=words(2, 2))
    image, grey = figure.data[:2]
    assert grey.z.max() == 1
    assert image.z[grey.z == 1].max() == 0
    everywhere = loaded("bert")
    trace = run(everywhere)
    open_ = head_grid(tiles(trace, families(trace)[0]), chosen=None, words=words(2, 3))
    assert len(open_.data) == 2
    assert all("Z" in one.path for one in open_.layout.shapes)


@cases("quantity, low", [("weight", 0), ("difference", -3), ("stream", 0)])
def test_a_map_has_a_number_and_a_mark_for_every_head(quantity, low) -> None:
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


LINKS = [
    Link((0, 2), (1, 3), "K", 0.9, "long", "L1H3 reads L0H2 by K"),
    Link((0, 1), (1, 3), "V", 0.4, "long", "L1H3 reads L0H1 by V"),
    Link((0, 2), (1, 3), "Q", 0.5, "long", "L1H3 reads L0H2 by Q"),
]


def test_the_widest_line_is_drawn_last_and_named() -> None:
    figure = composition_graph(["L0", "L1"], 4, LINKS, chosen=(1, 3))
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert lines[-1].name == "read by K"
    assert lines[-1].line.width == max(one.line.width for one in lines)
    assert lines[-1].opacity > max(one.opacity for one in lines[:-1])
    assert len({one.x[-1] for one in lines}) == 3  # each side by side where the head reads
    (ring,) = (trace for trace in figure.data if trace.name == "widest")
    (named,) = figure.layout.annotations
    assert list(zip(ring.x, ring.y, strict=True)) == [(2, 0), (3, 1)]
    assert (named.x, named.y) == (2, 0)
    assert "L1H3 reads L0H2 by K" in named.text


def test_where_rows_are_many_no_name_lies_on_another_row() -> None:
    figure = composition_graph([f"L{layer}" for layer in range(30)], 4, LINKS, chosen=(1, 3))
    assert not figure.layout.annotations
    assert any(trace.name == "widest" for trace in figure.data)


def test_without_lines_nothing_is_named() -> None:
    assert not composition_graph(["L0"], 2, [], chosen=(0, 0)).layout.annotations


DRAWS = np.random.default_rng(0)
HEADS, D_MODEL, D_V = 4, 24, 6


def test_the_outputs_stand_side_by_side_and_each_row_is_what_a_head_writes() -> None:
    outputs, written = DRAWS.normal(size=(HEADS, D_V)), DRAWS.normal(size=(HEADS, D_MODEL))
    sums = {"= sum": written.sum(0), "recorded": written.sum(0)}
    figure = merging(outputs, written, sums, groups=HEADS, chosen=2)
    strips, rows = figure.data[:HEADS], figure.data[HEADS:]
    for head, strip in enumerate(strips):
        places = strip.x0 + strip.dx * np.arange(D_V)
        assert np.allclose(places, np.arange(head * D_V, (head + 1) * D_V))
        assert np.allclose(strip.z, outputs[head])
    assert np.allclose([row.z[0] for row in rows], [*written, *sums.values()], atol=1e-6)
    axis = figure.layout.yaxis
    labels = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    said = [labels[row.y0] for row in rows]
    assert said == [*(f"head {head}" for head in range(HEADS)), "= sum", "recorded"]
    (frame,) = figure.layout.shapes
    assert frame.y0 < rows[2].y0 < frame.y1


def test_narrow_heads_fill_the_same_width() -> None:
    outputs, total = DRAWS.normal(size=(2, 3, 5)), DRAWS.normal(size=(3, D_MODEL))
    figure = merging_of_tokens(outputs, total, tokens=["a", " b", "c"], groups=2)
    first, second, below = figure.data
    assert np.isclose(first.x0 - first.dx / 2, -0.5)
    assert np.isclose(second.x0 + 4.5 * second.dx, D_MODEL - 0.5)
    assert np.allclose(below.z, total)
    assert list(figure.layout.yaxis.ticktext) == ["a", "·b", "c"] * 2


def test_heads_that_share_keys_have_one_colour() -> None:
    colours = [hue_of(head, 9, 3) for head in range(9)]
    assert [len(set(colours[at : at + 3])) for at in (0, 3, 6)] == [1, 1, 1]
    assert len(set(colours)) == 3
    assert len({hue_of(head, 6, 6) for head in range(6)}) == 6


def test_each_row_ends_in_its_length_and_the_longest_head_is_marked() -> None:
    written = DRAWS.normal(size=(HEADS, D_MODEL)) * np.array([[1], [5], [2], [3]])
    sums = {"= sum": written.sum(0) * 9}
    figure = merging(DRAWS.normal(size=(HEADS, D_V)), written, sums, groups=HEADS, chosen=2)
    rows = figure.data[HEADS:]
    said = {one.y: one.text for one in figure.layout.annotations}
    lengths = [f"{np.sqrt((row.z[0] ** 2).sum()):.2f}" for row in rows]
    lengths[1] = f"<b>{lengths[1]} longest</b>"
    assert [said[row.y0] for row in rows] == lengths


def test_twelve_heads_have_twelve_colours() -> None:
    assert len({hue_of(head, 12, 12) for head in range(12)}) == 12
