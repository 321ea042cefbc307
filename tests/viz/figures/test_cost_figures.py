"""The pictures of shapes and costs: amounts, lines that cross, times."""

import numpy as np
import pytest

from model.analysis.cost.cost import Growth
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import Timed, growth_lines, time_lines
from viz.figures.diagrams import WIDE, DrawnArray, blocks

ROWS = [Amount("Scores", 1_000_000, "one <million>"), Amount("View", 0, "none")]


def test_every_amount_has_its_row_its_words_and_its_bar() -> None:
    (bars,) = amounts(ROWS, unit="numbers").data
    assert list(bars.x) == [1_000_000, 0]
    assert list(bars.text) == ["one &lt;million&gt;", "none"]
    figure = amounts(ROWS, unit="numbers")
    assert list(figure.layout.yaxis.ticktext) == ["Scores", "View"]
    assert figure.layout.xaxis.title.text == "numbers"
    assert figure.layout.xaxis.range[1] > 1_000_000
    assert list(bars.textposition) == ["inside", "outside"]


def area(trace) -> float:
    """The sum of the rectangles of a trace, each five corners and a gap."""
    corners = [
        [(trace.x[at + corner], trace.y[at + corner]) for corner in (0, 2)]
        for at in range(0, len(trace.x), 6)
    ]
    return sum((right - left) * (low - high) for (left, high), (right, low) in corners)


def test_areas_are_as_the_numbers_and_sides_as_rows_and_columns(subtests: pytest.Subtests) -> None:
    for tokens, width, heads in [(13, 256, 8), (1_024, 768, 12), (4, 64, 500)]:
        with subtests.test(tokens=tokens):
            arrays = [
                DrawnArray("Q", 1, tokens, width, "", "#000000"),
                DrawnArray("Scores", heads, tokens, tokens, "<b>", "#000000"),
            ]
            figure = blocks(arrays)
            query, scores = figure.data
            names = figure.layout.annotations
            assert area(scores) / area(query) == pytest.approx(heads * tokens / width)
            high, wide = query.y[2] - query.y[0], query.x[2] - query.x[0]
            assert high / wide == pytest.approx(tokens / width)
            assert scores.y[2] - scores.y[0] == pytest.approx(high)
            assert max(x for x in (*query.x, *scores.x) if x is not None) <= WIDE + 1e-6
            assert query.y[2] < names[1].y < scores.y[0]
            assert names[1].text == "<b>Scores</b> &lt;b&gt;"
            assert figure.layout.yaxis.scaleanchor == "x"


def test_the_lines_meet_at_the_cross() -> None:
    cost = Growth(quadratic=3, linear=600)
    pairs, rest, cross = growth_lines(cost, length=10, unit="operations").data
    assert (cross.x[0], cross.y[0]) == (200, 120_000)
    np.testing.assert_allclose(pairs.y, 3 * np.square(pairs.x))
    np.testing.assert_allclose(rest.y, 600 * np.asarray(rest.x))
    assert pairs.x[-1] > cross.x[0]


def test_without_pairs_nothing_crosses() -> None:
    assert len(growth_lines(Growth(0, 5), length=10, unit="numbers").data) == 2


def test_times_are_drawn_in_milliseconds_beside_what_is_expected() -> None:
    timed = Timed("fused", (32, 64), (0.001, 0.003), "#000000")
    expected, measured = time_lines(
        [timed], Timed("expected", (32, 64), (0.002, 0.003), "#111111")
    ).data
    assert list(measured.y) == pytest.approx([1, 3])
    assert list(expected.y) == pytest.approx([2, 3])
    assert expected.line.dash == "dash"


def test_a_small_share_is_not_called_nothing(subtests: pytest.Subtests) -> None:
    for share, words in [(0, "0.0%"), (0.0001, "<0.1%"), (0.517, "51.7%"), (1, "100.0%")]:
        with subtests.test(share=share):
            assert percent(share) == words
