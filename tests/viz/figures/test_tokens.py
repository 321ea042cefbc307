"""Figures of tokens, positions and predictions: text is only text, every token has its row."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.tokens.prediction import Sampling
from model.nn.positions import ROTARY, SINUSOIDAL, TABLES
from model.run.tokenizers import pieces
from model.trace.records import Token
from model.worked.equality import settled
from tests.cases import cases
from viz.figures.bars import Bars, WrittenStep, distribution, neighbours_bars, written_steps
from viz.figures.cells import lens_table
from viz.figures.curves import likeness_lines, position_curves
from viz.figures.heatmap import cell_text
from viz.figures.vectors import (
    AROUND,
    colour_end,
    likeness_map,
    look_up,
    position_map,
    rows_around,
    summands,
)
from viz.notation.theme import INK, PAPER
from viz.views.prediction.next_token import TokenRow, with_numbers
from viz.views.tokens.listing import token_strip

MARKUP = "<b>x</b>"


def cells(figure: go.Figure) -> np.ndarray:
    return np.asarray(next(figure.select_traces({"type": "heatmap"})).z)


def table(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)


@cases("id_", [0, 2, 5, 19])
def test_one_row_has_factor_one_and_the_sum_is_that_row(id_) -> None:
    values = table(20, 6)
    ids = rows_around(id_, 20)
    assert id_ in ids
    assert len(ids) <= 2 * AROUND + 1
    steps = {"+ position": values[0], "= vector": values[id_] + values[0]}
    figure = look_up(values, [MARKUP] * len(ids), id_=id_, product=values[id_], steps=steps)
    rows, labels = cells(figure), figure.layout.yaxis.ticktext
    np.testing.assert_array_equal(rows[-3], values[id_])
    np.testing.assert_array_equal(rows[-1], rows[-3] + rows[-2])
    one_hot = next(figure.select_traces({"mode": "markers+text"}))
    by_row = dict(zip(one_hot.y, one_hot.text, strict=True))
    assert list(by_row.values()).count("1") == 1
    assert list(by_row.values()).count("0") == len(ids) - 1
    for row, digit in by_row.items():
        id_of_row = int(labels[row].split()[0])
        np.testing.assert_array_equal(rows[row], values[id_of_row])
        assert (digit == "1") is (id_of_row == id_)
    assert [label for label in labels if label == "⋮"] == ["⋮"] * (
        (ids.start > 0) + (ids.stop < 20)
    )
    assert not any("<b>" in label for label in labels)


def test_the_nearest_stands_on_top_and_equal_texts_keep_their_bars() -> None:
    figure = neighbours_bars([MARKUP, "a", "a"], [0.9, 0.5, -0.25], mean=0.1)
    (bars,) = figure.data
    assert list(bars.x) == [0.9, 0.5, -0.25]
    assert list(bars.y) == [0, 1, 2]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert figure.layout.xaxis.range[0] < -0.25
    assert figure.layout.xaxis.range[1] > 0.9
    (mean,) = figure.layout.shapes
    assert (mean.x0, mean.x1) == (0.1, 0.1)


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
    end = colour_end(values).value
    assert list(figure.data[-1].colorbar.tickvals) == [-end, 0, end]
    alike = likeness_map(np.eye(4))
    assert (alike.data[-1].zmin, alike.data[-1].zmax) == (-1, 1)


def test_the_sum_stands_below_its_parts() -> None:
    parts = {"token": table(1, 5)[0], "+ position": table(2, 5)[1]}
    total = parts["token"] + parts["+ position"]
    figure = summands(parts, total)
    np.testing.assert_array_equal(cells(figure)[[0, 1, 3]], [*parts.values(), total])
    assert list(figure.layout.yaxis.ticktext) == ["token", "+ position", "", "= sum"]


def test_boxes_escape_their_text_and_mark_what_is_special() -> None:
    tokens = [
        Token(1, "[CLS]", special=True),
        Token(2, MARKUP, MARKUP.encode()),
        Token(3, "�", b"\xc3"),
        Token(4, "�", b"\xa9"),
    ]
    written = token_strip(pieces(tokens), 'a "name"')
    assert "<b>x" not in written
    assert written.count("<li") == 4
    assert written.count('class="added"') == 1
    assert token_strip(pieces(tokens), "", named=[1]).count('class="named"') == 1
    assert written.count("part of é") == 2
    assert "‹C3›" in written
    assert 'aria-label="a &quot;name&quot;"' in written


def test_formulas_hold_the_numbers_they_are_given() -> None:
    assert "10000^{2/8}" in SINUSOIDAL.cell(4, 3, 0.5, 8, 0)
    assert r"\cos" in SINUSOIDAL.cell(4, 3, 0.5, 8, 0)
    assert r"\sin" in SINUSOIDAL.cell(4, 2, 0.5, 8, 0)
    angle = 4 / 500**0.75
    assert "500^{6/8} = 0.0378" in settled(ROTARY.cell(4, 3, angle, 8, 500))
    assert r"500^{6/8} \approx 0.0380" in settled(ROTARY.cell(4, 3, 0.038, 8, 500))
    assert "-0.1250" in TABLES["learned"].cell(4, 3, -0.125, 8, 0)


HOSTILE = ["<b>x</b>", "$y$", "", "a", "a"]
SHARES = Bars([0.4, 0.3, 0.1, 0.05, 0.05], 0.1)


def test_every_token_has_a_row_of_its_own_and_all_others_have_the_last() -> None:
    figure = distribution(HOSTILE, [2, 1, 0, -1, -2], SHARES, others=1_234)
    logits, shares = figure.data
    assert list(logits.y) == [0, 1, 2, 3, 4]
    assert list(shares.x) == pytest.approx([0.4, 0.3, 0.1, 0.05, 0.05, 0.1])
    ticks = figure.layout.yaxis.ticktext
    assert ticks[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert "1,234" in ticks[-1]
    names = [note.text for note in figure.layout.annotations]
    assert "logit" in names[0]
    assert "probability" in names[1]


def test_a_token_without_a_share_is_marked_cut_and_the_chosen_one_too() -> None:
    drawn = Bars([0.6, 0.4, 0, 0, 0], 0)
    figure = distribution(
        HOSTILE, [2, 1, 0, -1, -2], SHARES, drawn, others=5, divisor=0.5, chosen=1
    )
    _, filled, outline = figure.data
    assert list(filled.text) == ["0.6000", "0.4000", "cut", "cut", "cut", "cut"]
    assert list(outline.x) == pytest.approx(SHARES.all)
    assert "0.5" in figure.layout.annotations[1].text
    tiny = distribution(["a"], [1], Bars([1 - 1e-7], 1e-7), others=1)
    assert list(tiny.data[1].text) == ["1.0000", "<0.0001"]
    assert figure.layout.yaxis.ticktext[1].startswith("<b>→")


def test_the_bold_tokens_of_the_lens_are_those_of_the_last_state() -> None:
    predicted = [["cat", "<i>"], ["dog", "cat"], ["dog", "<i>"]]
    figure = lens_table(
        np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
        predicted,
        states=["embedding", "L0 attention", "L0 feed-forward"],
        tokens=["the", "the"],
    )
    *written, heat = figure.data
    text = {
        (row, column): word
        for trace in written
        for row, column, word in zip(trace.y, trace.x, trace.text, strict=True)
    }
    bold = {cell for cell, word in text.items() if word.startswith("<b>")}
    assert bold == {(0, 1), (1, 0), (2, 0), (2, 1)}
    assert len(text) == 6
    assert text[0, 1] == "<b>&lt;i&gt;</b>"
    assert (heat.zmin, heat.zmax) == (0, 1)


def test_words_have_the_pages_own_colour_only_where_the_cell_is_strong() -> None:
    faint, strong = cell_text([["a", "b", "c"]], np.array([[0.1, 0.9, np.nan]]))
    assert (list(faint.text), faint.textfont.color) == (["a"], INK)
    assert (list(strong.text), strong.textfont.color) == (["b"], PAPER)


def test_a_column_holds_every_share_and_the_chosen_one_is_framed() -> None:
    steps = [WrittenStep(["the", "<b>"], [0.5, 0.25]), WrittenStep(["the"], [1.0])]
    figure = written_steps(steps, chosen=1)
    np.testing.assert_allclose(np.sum([part.y for part in figure.data], axis=0), 1)
    assert list(figure.data[0].y) == [0.5, 1.0]
    assert list(figure.data[1].y) == [0.25, 0.0]
    assert "&lt;b&gt;" in figure.data[1].hovertext[0]
    assert list(figure.layout.xaxis.ticktext) == ["the", "the"]
    assert figure.layout.shapes[0].x0 < 1 < figure.layout.shapes[0].x1


def test_the_formula_holds_the_numbers_of_one_token() -> None:
    logits = np.array([2.0, 1.0, 0.0], dtype=np.float32)
    written = with_numbers(TokenRow(logits, Sampling(temperature=0.5, top_k=2), 0.0), 1)
    # exp(-2) = 0.1353 of 1 + exp(-2) + exp(-4) = 1.1536; the two that stay hold 0.9841 of it
    for part in ("1.0000 - 2.0000", "/ 0.5", "{1.1537}", "0.1173", r"{0.9841}", r"\mathbf{0.1192}"):
        assert part in written
    assert "cut" in with_numbers(TokenRow(logits, Sampling(top_k=2), 0.0), 2)
    whole = with_numbers(TokenRow(-1 - logits, Sampling(), 0.0), 2)
    assert "then" not in whole
    assert "(-1.0000)" in whole
