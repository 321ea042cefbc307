"""Room for labels and numbers: square cells, counted margins, and what a narrow figure leaves out."""

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.cases import cases
from viz.figures.alignment import alignment
from viz.figures.chart import chart
from viz.figures.heatmap import Axis, heatmap
from viz.figures.room import LARGEST, LETTER, TALLEST, counted_margins, narrow_rules, without_anchor


def squares(rows: int, columns: int, value: float = 0.25, label: str = "cat") -> go.Figure:
    values = np.full((rows, columns), value)
    down, across = (Axis(name, [label] * count) for name, count in (("q", rows), ("k", columns)))
    return heatmap(values, rows=down, columns=across, quantity="score", square=True)


def height_of_cells(figure: go.Figure) -> float:
    """The height of all cells in pixels, without labels and scale."""
    margins = counted_margins(figure)
    assert margins
    height: float = figure.layout.height - margins["t"] - figure.layout.margin.b
    return height


def sizes(figure: go.Figure) -> set[float]:
    return {trace.textfont.size for trace in figure.select_traces({"mode": "text"})}


@cases("count", [1, 3, 13, 64, 400])
def test_cells_have_a_largest_size_and_the_picture_a_largest_height(count) -> None:
    figure = squares(count, count)
    assert figure.layout.yaxis.scaleratio == 1
    assert figure.layout.height <= TALLEST
    assert height_of_cells(figure) == pytest.approx(
        min(count * LARGEST, height_of_cells(squares(400, 400))), abs=1
    )


@cases("rows, columns, share", [(2, 60, 0.25), (60, 2, 2.0), (5, 7, 5 / 7)])
def test_far_more_rows_or_columns_make_cells_that_are_not_quite_square(
    rows, columns, share
) -> None:
    assert squares(rows, columns).layout.yaxis.scaleratio * rows / columns == pytest.approx(share)


def test_numbers_that_do_not_fit_their_cells_are_left_out() -> None:
    assert sizes(squares(3, 3)) == sizes(squares(12, 12)) == {13}
    assert sizes(squares(12, 12, -12345.25)) == set()


def test_in_a_narrow_place_the_height_follows_the_width() -> None:
    figure = squares(10, 20)
    margins = counted_margins(figure)
    assert margins
    figure.update_layout(margin=margins).update_yaxes(automargin=False)
    height = re.search(
        r"height:min\(min\((\d+)px,.*?\),calc\(([\d.]+)\*\(100cqi - ([\d.]+)px\) \+ ([\d.]+)px",
        narrow_rules(figure, ".place"),
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


@cases("label", ["cat", "猫", "né", "🐈"])
def test_cells_are_square_whatever_the_letters_of_their_labels(label) -> None:
    figure = squares(8, 8, label=label)
    figure.update_layout(margin=counted_margins(figure)).update_yaxes(automargin=False)
    assert "height:min(" in narrow_rules(figure, ".place")


def test_plotly_keeps_the_shape_of_cells_where_no_rule_does() -> None:
    ruled, free = squares(8, 8), squares(8, 8)
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


def margins(*tokens: str) -> dict[str, float] | None:
    return counted_margins(
        heatmap(
            np.eye(len(tokens)),
            rows=Axis("query", tokens),
            columns=Axis("key", tokens),
            quantity="weight",
        )
    )


def test_a_longer_label_has_more_room_and_an_escaped_letter_counts_once() -> None:
    short, long = (margins("<", *[token] * 7) for token in ("cat", "tomcat"))
    assert long["l"] - short["l"] == pytest.approx(3 * LETTER)
    assert long["t"] > short["t"]
    assert margins(*["<"] * 7) == margins(*["a"] * 7)


@cases("label, letters", [
    ("né", 2),
    ("ne\u0301", 2),
    ("‹E7›", 4),
    ("сад", 3),
    ("猫", 1.65),
    ("こねこ", 3 * 1.65),
    ("🐈", 2.1),
])  # fmt: skip
def test_a_letter_of_another_face_has_more_room_and_an_accent_none(label, letters) -> None:
    plain, other = margins(*["a"] * 7, "tomcat"), margins(*["a"] * 7, "tomcat" + label)
    assert other["l"] - plain["l"] == pytest.approx(letters * LETTER)


def test_labels_that_may_turn_are_plotlys() -> None:
    assert margins("the", "cat") is None


NARROWEST = 340  # pixels of a picture on a phone that is 390 pixels wide


def wide(columns: int, value: float = 0.25) -> go.Figure:
    labels = [f"token{at}" for at in range(columns)]
    values = np.full((3, columns), value)
    return heatmap(values, rows=Axis("a", labels[:3]), columns=Axis("b", labels), quantity="score")


def widths(figure: go.Figure, what: str) -> list[int]:
    """The widths below which something is hidden, in the order of the rules."""
    rules = narrow_rules(figure, ".place")
    found = re.findall(r"max-width:(\d+)px\)\{\.place ([^{]*)\{display:none", rules)
    return [int(width) for width, hidden in found if what in hidden]


def test_the_narrower_a_picture_the_fewer_labels_it_shows() -> None:
    found = widths(wide(20), "tick")
    assert len(found) > 2
    assert found == sorted(found, reverse=True)
    assert widths(wide(30), "tick")[0] > found[0]


def test_numbers_need_as_much_more_room_as_they_have_letters() -> None:
    (short,), (long,) = (widths(wide(8, value), "textpoint") for value in (0.25, 25000.25))
    assert long - short == pytest.approx(8 * 13 * 0.61 * len("25,000.25"[4:]), abs=2)


def test_a_picture_without_numbers_and_labels_needs_no_rule() -> None:
    assert narrow_rules(go.Figure(go.Scatter(y=[1, 2])), ".place") == ""


def test_on_a_phone_both_sentences_have_their_names() -> None:
    names = ("read by the encoder", "written by the decoder")
    figure = alignment(np.eye(2), source=["the", "cat"], target=["le", "chat"], names=names)
    assert max(widths(figure, "tick"), default=0) < NARROWEST


def test_a_wide_picture_has_no_room_for_rows_that_its_legend_has_on_a_phone_alone() -> None:
    lines = [go.Scatter(x=[0, 1], y=[0, 1], name=f"a line of some length, {at}") for at in range(4)]
    rules = narrow_rules(chart(lines, {}, {}, height=300), ".place")
    found = re.findall(r"min-width:(\d+)px\)\{\.place>\*\{margin-top:-(\d+)px", rules)
    spared = [(int(width), int(room)) for width, room in found]
    assert [room for _, room in spared] == [
        19,
        38,
        57,
    ]  # of three, two and one row, where there were four
    assert NARROWEST < spared[0][0] <= spared[1][0] < spared[2][0]
    assert "margin-top" not in narrow_rules(chart(lines[:1], {}, {}, height=300), ".place")
