"""The pictures of shapes and costs: amounts, lines that cross, times."""

import numpy as np
import pytest

from tests.cases import cases
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import GrowthLine, Timed, growth_lines, time_lines
from viz.figures.diagrams import to_scale

ROWS = [Amount("Scores", 1_000_000, "one <million>"), Amount("View", 0, "none")]


def test_every_amount_has_its_row_its_words_and_its_bar() -> None:
    figure = amounts(ROWS)
    (bars,) = figure.data
    assert list(bars.x) == [1_000_000, 0]
    assert list(bars.text) == ["one &lt;million&gt;", "none"]
    assert list(figure.layout.yaxis.ticktext) == ["Scores", "View"]
    assert figure.layout.xaxis.range[1] > 1_000_000
    assert list(bars.textposition) == ["inside", "outside"]


def area(trace) -> float:
    """The sum of the rectangles of a trace, each five corners and a gap."""
    corners = [
        [(trace.x[at + corner], trace.y[at + corner]) for corner in (0, 2)]
        for at in range(0, len(trace.x), 6)
    ]
    return sum((right - left) * (low - high) for (left, high), (right, low) in corners)


@cases("tokens, width, heads", [(13, 256, 8), (1_024, 768, 12), (4, 64, 500), (1, 32, 1)])
def test_areas_are_as_the_numbers_and_sides_as_rows_and_columns(tokens, width, heads) -> None:
    figure = to_scale(tokens, width, heads)
    vectors, weights = figure.data
    assert area(vectors) == pytest.approx(tokens * width)
    assert area(weights) == pytest.approx(heads * tokens**2)
    beside = max(vectors.x[:4]) < min(x for x in weights.x if x is not None)
    under = max(vectors.y[:4]) < min(y for y in weights.y if y is not None)
    assert beside or under
    assert figure.layout.yaxis.scaleanchor == "x"
    ends = figure.layout.xaxis.range[1], figure.layout.yaxis.range[0]
    assert max(x for x in weights.x if x is not None) <= ends[0]
    assert max(y for y in (*weights.y, *vectors.y) if y is not None) <= ends[1]


def test_the_lines_meet_at_the_cross() -> None:
    drawn = [
        GrowthLine("pairs", "#000000", quadratic=3),
        GrowthLine("rest", "#000000", linear=600),
        GrowthLine("weights", "#000000", constant=7),
    ]
    pairs, rest, weights, cross = growth_lines(
        drawn, length=10, unit="operations", crossing=200
    ).data
    assert (cross.x[0], cross.y[0]) == (200, 120_000)
    np.testing.assert_allclose(pairs.y, 3 * np.square(pairs.x))
    np.testing.assert_allclose(rest.y, 600 * np.asarray(rest.x))
    np.testing.assert_allclose(weights.y, 7)
    assert pairs.x[-1] > cross.x[0]


def test_without_pairs_nothing_crosses() -> None:
    drawn = [GrowthLine("rest", "#000000", linear=5)]
    assert len(growth_lines(drawn, length=10, unit="numbers").data) == 1


def test_times_are_drawn_in_milliseconds_beside_what_is_expected() -> None:
    timed = Timed("fused", (32, 64), (0.001, 0.003), "#000000")
    expected, measured = time_lines(
        [timed], Timed("expected", (32, 64), (0.002, 0.003), "#111111")
    ).data
    assert list(measured.y) == pytest.approx([1, 3])
    assert list(expected.y) == pytest.approx([2, 3])
    assert expected.line.dash == "dash"


@cases("share, words", [(0, "0.0%"), (0.0001, "<0.1%"), (0.517, "51.7%"), (1, "100.0%")])
def test_a_small_share_is_not_called_nothing(share, words) -> None:
    assert percent(share) == words
