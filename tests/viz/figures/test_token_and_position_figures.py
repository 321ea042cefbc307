"""The pictures of tokens and positions: what is drawn is what was given, and text is only text."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.tokens.windows import windows
from model.run.token_bytes import pieces
from model.trace.records import Token
from viz.figures.bars import neighbours_bars
from viz.figures.curves import likeness_lines, position_curves
from viz.figures.diagrams import WRITTEN, sliding_windows
from viz.figures.vectors import (
    AROUND,
    DIMENSIONS,
    PAIRS,
    colour_end,
    likeness_map,
    look_up,
    position_map,
    rows_around,
    summands,
    word_pairs,
)
from viz.views.positions.formulas import cell_in_numbers
from viz.views.tokens.listing import token_strip
from viz.views.tokens.windows import number_of_windows

HOSTILE = "<b>x</b>"


def cells(figure: go.Figure) -> np.ndarray:
    return np.asarray(next(figure.select_traces({"type": "heatmap"})).z)


def table(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)


@pytest.mark.parametrize("id_", [0, 2, 5, 19])
def test_one_row_has_factor_one_and_the_sum_is_that_row(id_: int) -> None:
    values = table(20, 6)
    ids = rows_around(id_, 20)
    assert id_ in ids
    assert len(ids) <= 2 * AROUND + 1
    figure = look_up(values, [HOSTILE] * len(ids), id_=id_, product=values[id_])
    np.testing.assert_array_equal(cells(figure)[-1], values[id_])
    labels = figure.layout.yaxis.ticktext
    assert [label.startswith("1 ×") for label in labels].index(True) == ids.index(id_)
    assert sum(label.startswith("0 ×") for label in labels) == len(ids) - 1
    assert not any("<b>" in label for label in labels)


def test_the_nearest_stands_on_top_and_equal_texts_keep_their_bars() -> None:
    figure = neighbours_bars([HOSTILE, "a", "a"], [0.9, 0.5, -0.25])
    (bars,) = figure.data
    assert list(bars.x) == [0.9, 0.5, -0.25]
    assert list(bars.y) == [0, 1, 2]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert figure.layout.xaxis.range[0] < -0.25


@pytest.mark.parametrize("count", [6, WRITTEN + 4])
def test_the_bar_of_a_target_is_that_of_its_window_moved_by_one(count: int) -> None:
    found = windows(range(count), 3, 2)
    figure = sliding_windows(found, [HOSTILE] * count, chosen=0)
    inputs, targets = figure.data[:2]
    assert list(inputs.x) == list(targets.x) == [3] * len(found)
    assert [end - start for start, end in zip(inputs.base, targets.base, strict=True)] == [1] * len(
        found
    )
    assert [base + 0.5 for base in inputs.base] == [window.start for window in found]
    written = len(figure.data) == 3
    assert written == (count <= WRITTEN)
    if written:
        assert len(figure.data[2].text) == 6 * len(found)
        assert "<b>" not in "".join(figure.data[2].text)
    else:
        assert "<b>" not in "".join(figure.layout.xaxis.ticktext)


def test_likeness_has_one_point_a_state() -> None:
    figure = likeness_lines(np.array([1, 0.5]), np.array([0.1, -0.3]), states=["a", "b"])
    assert [list(line.y) for line in figure.data] == [[1, 0.5], [0.1, -0.3]]
    assert figure.layout.yaxis.range[0] < -0.3
    assert len(likeness_lines(np.ones(2), None, states=["a", "b"]).data) == 1
    with pytest.raises(ValueError, match="3 states"):
        likeness_lines(np.ones(2), None, states=["a", "b", "c"])


def test_curves_are_the_columns_asked_for() -> None:
    values = table(40, 8)
    figure = position_curves(values, [0, 5], column_name="dimension", value_name="value")
    np.testing.assert_array_equal(figure.data[1].y, values[:, 5])
    assert figure.data[1].name == "dimension 5"
    assert figure.data[0].line.dash != figure.data[1].line.dash


def test_maps_of_positions_keep_every_cell() -> None:
    values = table(40, 10)
    figure = position_map(values, column_name="dimension", value_name="value")
    np.testing.assert_array_equal(cells(figure), values)
    assert "the colour scale ends at" in figure.layout.xaxis.title.text
    alike = likeness_map(np.eye(4))
    assert (alike.data[-1].zmin, alike.data[-1].zmax) == (-1, 1)


def test_the_two_rows_of_a_token_stand_together() -> None:
    first, second = table(PAIRS + 2, DIMENSIONS + 9), table(PAIRS + 2, DIMENSIONS + 9) + 1
    figure = word_pairs(first, second, texts=[HOSTILE] * len(first), end=colour_end(first))
    assert cells(figure).shape == (3 * PAIRS - 1, DIMENSIONS)
    np.testing.assert_array_equal(cells(figure)[0::3], first[:PAIRS, :DIMENSIONS])
    np.testing.assert_array_equal(cells(figure)[1::3], second[:PAIRS, :DIMENSIONS])
    assert not any("<b>" in label for label in figure.layout.yaxis.ticktext)
    assert len(figure.layout.yaxis.ticktext) == 3 * PAIRS - 1


def test_the_sum_stands_below_its_parts() -> None:
    parts = {"tokens": table(1, 5)[0], "positions": table(2, 5)[1]}
    total = parts["tokens"] + parts["positions"]
    figure = summands(parts, total)
    np.testing.assert_array_equal(cells(figure)[[0, 1, 3]], [*parts.values(), total])
    assert list(figure.layout.yaxis.ticktext) == ["token", "+ position", "", "= sum"]


def test_boxes_escape_their_text_and_mark_what_is_special() -> None:
    tokens = [
        Token(1, "[CLS]", special=True),
        Token(2, HOSTILE, HOSTILE.encode()),
        Token(3, "�", b"\xc3"),
        Token(4, "�", b"\xa9"),
    ]
    written = token_strip(pieces(tokens), 'a "name"')
    assert "<b>" not in written
    assert written.count("<li") == 4
    assert written.count("dashed") == 1
    assert written.count("part of é") == 2
    assert "‹C3›" in written
    assert 'aria-label="a &quot;name&quot;"' in written


def test_formulas_hold_the_numbers_they_are_given() -> None:
    assert "10000^{2/8}" in cell_in_numbers("sinusoidal", 4, 3, 0.5, width=8)
    assert r"\cos" in cell_in_numbers("sinusoidal", 4, 3, 0.5, width=8)
    assert r"\sin" in cell_in_numbers("sinusoidal", 4, 2, 0.5, width=8)
    angle = 4 / 500**0.75
    assert "500^{6/8} = 0.0378" in cell_in_numbers("rotary", 4, 3, angle, width=8, base=500)
    assert r"500^{6/8} \approx 0.0380" in cell_in_numbers("rotary", 4, 3, 0.038, width=8, base=500)
    assert "-0.1250" in cell_in_numbers("learned", 4, 3, -0.125, width=8)
    for count in range(2, 20):
        for length in range(1, count):
            for stride in (1, 2, 5):
                found = len(windows(range(count), length, stride))
                assert found == -((length - count) // stride)
                assert f"= {found}" in number_of_windows(count, length, stride, found)
