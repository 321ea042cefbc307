"""The pictures of the prediction page: labels, cut tokens, sums, and text that is only text."""

import numpy as np
import pytest

from model.analysis.tokens.prediction import Sampling
from viz.figures.bars import Bars, distribution, weights_row
from viz.figures.cells import lens_table
from viz.figures.heatmap import cell_text
from viz.notation.theme import INK, PAPER
from viz.views.prediction.next_token import Row, with_numbers

HOSTILE = ["<b>x</b>", "$y$", "", "a", "a"]
SHARES = Bars([0.4, 0.3, 0.1, 0.05, 0.05], 0.1)


def test_every_token_has_a_row_of_its_own_and_other_is_the_last() -> None:
    figure = distribution(HOSTILE, [2, 1, 0, -1, -2], SHARES)
    logits, shares = figure.data
    assert list(logits.y) == [0, 1, 2, 3, 4]
    assert list(shares.x) == pytest.approx([0.4, 0.3, 0.1, 0.05, 0.05, 0.1])
    ticks = figure.layout.yaxis.ticktext
    assert ticks[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert ticks[-1] == "<i>other</i>"
    assert "logit" in figure.layout.xaxis.title.text
    assert "probability" in figure.layout.xaxis2.title.text


def test_a_token_without_a_share_is_marked_cut_and_the_chosen_one_too() -> None:
    drawn = Bars([0.6, 0.4, 0, 0, 0], 0)
    figure = distribution(HOSTILE, [2, 1, 0, -1, -2], SHARES, drawn, chosen=1)
    assert list(figure.data[-1].text) == ["0.6000", "0.4000", "cut", "cut", "cut", "cut"]
    assert "cut" not in figure.data[1].text
    tiny = distribution(["a"], [1], Bars([1 - 1e-7], 1e-7))
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


def test_reading_shows_every_key_and_where_the_models_own_words_begin() -> None:
    weights = np.array([0.2, 0.5, 0.3])
    figure = weights_row(weights, ["the", "the", "<b>"], written=1)
    assert list(figure.data[0].y) == [0.2, 0.5, 0.3]
    assert list(figure.layout.xaxis.ticktext) == ["the", "the", "&lt;b&gt;"]
    assert figure.layout.shapes[0].x0 == 1.5
    assert not weights_row(weights, ["a", "b", "c"]).layout.shapes
    with pytest.raises(ValueError, match="2 tokens"):
        weights_row(weights, ["a", "b"])


def test_the_formula_holds_the_numbers_of_one_token() -> None:
    logits = np.array([2.0, 1.0, 0.0], dtype=np.float32)
    written = with_numbers(Row(logits, Sampling(temperature=0.5, top_k=2), 0.0), 1)
    # exp(-2) = 0.1353 of 1 + exp(-2) + exp(-4) = 1.1536; the two that stay hold 0.9841 of it
    for part in ("1.0000 - 2.0000", "/ 0.5", "{1.1537}", "0.1173", r"{0.9841}", r"\mathbf{0.1192}"):
        assert part in written
    assert "cut" in with_numbers(Row(logits, Sampling(top_k=2), 0.0), 2)
    whole = with_numbers(Row(-1 - logits, Sampling(), 0.0), 2)
    assert "then" not in whole
    assert "(-1.0000)" in whole
