"""Square cells: as high as wide, no larger than need be, their numbers only where they fit."""

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from viz.figures.heatmap import Axis, heatmap
from viz.figures.room import LARGEST, TALLEST, counted_margins, narrow_rules, without_anchor


def drawn(rows: int, columns: int, value: float = 0.25, label: str = "cat") -> go.Figure:
    values = np.full((rows, columns), value)
    down, across = (Axis(name, [label] * count) for name, count in (("q", rows), ("k", columns)))
    return heatmap(values, rows=down, columns=across, quantity="score", square=True)


def cells(figure: go.Figure) -> float:
    """The height of all cells in pixels, without labels and scale."""
    margins = counted_margins(figure)
    assert margins
    height: float = figure.layout.height - margins["t"] - figure.layout.margin.b
    return height


def sizes(figure: go.Figure) -> set[float]:
    return {trace.textfont.size for trace in figure.select_traces({"mode": "text"})}


@pytest.mark.parametrize("count", [1, 3, 13, 64, 400])
def test_cells_have_a_largest_size_and_the_picture_a_largest_height(count: int) -> None:
    figure = drawn(count, count)
    assert figure.layout.yaxis.scaleratio == 1
    assert figure.layout.height <= TALLEST
    assert cells(figure) == pytest.approx(min(count * LARGEST, cells(drawn(400, 400))), abs=1)


@pytest.mark.parametrize(("rows", "columns", "share"), [(2, 60, 0.25), (60, 2, 2.0), (5, 7, 5 / 7)])
def test_far_more_rows_or_columns_make_cells_that_are_not_quite_square(
    rows: int, columns: int, share: float
) -> None:
    assert drawn(rows, columns).layout.yaxis.scaleratio * rows / columns == pytest.approx(share)


def test_long_numbers_are_smaller_and_those_that_cannot_be_read_are_left_out() -> None:
    assert sizes(drawn(3, 3)) == {12}
    (size,) = sizes(drawn(12, 12, -1.25))
    assert 9 <= size < 12
    assert sizes(drawn(12, 12, -12345.25)) == set()


def test_in_a_narrow_place_the_height_follows_the_width() -> None:
    figure = drawn(10, 20)
    margins = counted_margins(figure)
    assert margins
    figure.update_layout(margin=margins).update_yaxes(automargin=False)
    height = re.search(
        r"height:min\((\d+)px,calc\(([\d.]+)\*\(100cqi[^)]*\) - ([\d.]+)px\) \+ ([\d.]+)px",
        narrow_rules(figure, ".place").replace("var(--larger,1)", "var(1)"),
    )
    assert height
    most, share, beside, around = map(float, height.groups())
    assert most == figure.layout.height
    assert share == pytest.approx(10 / 20)
    assert beside == pytest.approx(margins["l"] + margins["r"], abs=0.1)
    assert around == pytest.approx(margins["t"] + figure.layout.margin.b, abs=0.1)
    hidden = re.findall(
        r"max-width:(\d+)px\)\{\.place g\.ytick:not\(:nth-child\((\d)n",
        narrow_rules(figure, ".place"),
    )
    assert hidden[0] == (str(round(beside + 20 * 13)), "2")  # rows of 13 pixels: a line of letters
    assert hidden[1] == (str(round(beside + 20 * 13 / 2)), "4")


@pytest.mark.parametrize("label", ["cat", "猫", "né", "🐈"])
def test_cells_are_square_whatever_the_letters_of_their_labels(label: str) -> None:
    figure = drawn(8, 8, label=label)
    figure.update_layout(margin=counted_margins(figure)).update_yaxes(automargin=False)
    assert "--height:min(" in narrow_rules(figure, ".place")


def test_plotly_keeps_the_shape_of_cells_where_no_rule_does() -> None:
    ruled, free = drawn(8, 8), drawn(8, 8)
    ruled.update_layout(margin=counted_margins(ruled)).update_yaxes(automargin=False)
    before = json.loads(ruled.to_json())
    with without_anchor(ruled):
        assert ruled.layout.yaxis.scaleanchor is None
        assert ruled.layout.xaxis.constrain is None
    assert json.loads(ruled.to_json()) == before  # it may be saved, and is square there too
    with pytest.raises(KeyError), without_anchor(ruled):
        raise KeyError
    assert json.loads(ruled.to_json()) == before
    for kept in (free, go.Figure(layout={"yaxis": {"scaleanchor": "x"}})):
        with without_anchor(kept):
            assert kept.layout.yaxis.scaleanchor == "x"
