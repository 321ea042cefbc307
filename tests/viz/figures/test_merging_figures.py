"""Heads put together: each keeps its places and its colour, and nothing is drawn that is not there."""

import numpy as np

from viz.figures.head_tiles import hue_of
from viz.figures.vectors import merging, merging_of_tokens

DRAWS = np.random.default_rng(0)
HEADS, WIDTH, OWN = 4, 24, 6


def test_the_outputs_stand_side_by_side_and_each_row_is_what_a_head_writes() -> None:
    outputs, written = DRAWS.normal(size=(HEADS, OWN)), DRAWS.normal(size=(HEADS, WIDTH))
    sums = {"= sum": written.sum(0), "recorded": written.sum(0)}
    figure = merging(outputs, written, sums, groups=HEADS, chosen=2)
    strips, rows = figure.data[:HEADS], figure.data[HEADS:]
    for head, strip in enumerate(strips):
        places = strip.x0 + strip.dx * np.arange(OWN)
        assert np.allclose(places, np.arange(head * OWN, (head + 1) * OWN))
        assert np.allclose(strip.z, outputs[head])
    assert np.allclose([row.z[0] for row in rows], [*written, *sums.values()], atol=1e-6)
    axis = figure.layout.yaxis
    labels = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    said = [labels[row.y0] for row in rows]
    assert said == [*(f"head {head}" for head in range(HEADS)), "= sum", "recorded"]
    (frame,) = figure.layout.shapes
    assert frame.y0 < rows[2].y0 < frame.y1


def test_narrow_heads_fill_the_same_width() -> None:
    outputs, total = DRAWS.normal(size=(2, 3, 5)), DRAWS.normal(size=(3, WIDTH))
    figure = merging_of_tokens(outputs, total, tokens=["a", " b", "c"], groups=2)
    first, second, below = figure.data
    assert np.isclose(first.x0 - first.dx / 2, -0.5)
    assert np.isclose(second.x0 + 4.5 * second.dx, WIDTH - 0.5)
    assert np.allclose(below.z, total)
    assert list(figure.layout.yaxis.ticktext) == ["a", "·b", "c"] * 2


def test_heads_that_share_keys_have_one_colour() -> None:
    colours = [hue_of(head, 9, 3) for head in range(9)]
    assert [len(set(colours[at : at + 3])) for at in (0, 3, 6)] == [1, 1, 1]
    assert len(set(colours)) == 3
    assert len({hue_of(head, 6, 6) for head in range(6)}) == 6


def test_each_row_ends_in_its_length_and_the_longest_head_is_marked() -> None:
    written = DRAWS.normal(size=(HEADS, WIDTH)) * np.array([[1], [5], [2], [3]])
    sums = {"= sum": written.sum(0) * 9}
    figure = merging(DRAWS.normal(size=(HEADS, OWN)), written, sums, groups=HEADS, chosen=2)
    rows = figure.data[HEADS:]
    said = {one.y: one.text for one in figure.layout.annotations}
    lengths = [f"{np.sqrt((row.z[0] ** 2).sum()):.2f}" for row in rows]
    lengths[1] = f"<b>{lengths[1]} longest</b>"
    assert [said[row.y0] for row in rows] == lengths


def test_twelve_heads_have_twelve_colours() -> None:
    assert len({hue_of(head, 12, 12) for head in range(12)}) == 12
