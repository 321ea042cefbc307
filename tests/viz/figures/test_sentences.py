"""Lines between two sentences, arcs over one, and probabilities of words."""

import numpy as np
import pytest

from viz.figures import alignment as drawing
from viz.figures.alignment import alignment
from viz.figures.bars import GivenWord, word_probabilities

SOURCE, TARGET = ["the", "<b>x</b>", "the"], ["le", "$y$"]
BETWEEN = np.array([[0.98, 0.01, 0.01], [0.0, 0.4, 0.6]], np.float32)


def lines(figure: object) -> dict[tuple[float, float], float]:
    """Width of each line by its ends: source place, target place. Reference bands are left out."""
    found = {}
    for trace in figure.data:
        if (
            trace.mode != "lines"
            or trace.x[0] is None
            or trace.line.width == drawing.REFERENCE_WIDTH
        ):
            continue
        for start in range(0, len(trace.y), 3):
            found[trace.y[start], trace.y[start + 1]] = trace.line.width
    return found


def colours(figure: object) -> dict[tuple[float, float], str]:
    """Colour of each line by its ends."""
    return {
        (trace.y[start], trace.y[start + 1]): trace.line.color
        for trace in figure.data
        if trace.mode == "lines" and trace.x[0] is not None
        for start in range(0, len(trace.y), 3)
    }


def bands(figure: object) -> set[tuple[int, int]]:
    (trace,) = [
        trace
        for trace in figure.data
        if trace.mode == "lines" and trace.line.width == drawing.REFERENCE_WIDTH and not trace.name
    ]
    return {(trace.y[start], trace.y[start + 1]) for start in range(0, len(trace.y), 3)}


def test_a_line_is_as_wide_as_its_weight_and_a_light_one_is_left_out() -> None:
    drawn = lines(alignment(BETWEEN, source=SOURCE, target=TARGET))
    assert set(drawn) == {(0, 0), (1, 1), (2, 1)}
    for (source, target), width in drawn.items():
        assert width == pytest.approx(
            BETWEEN[target, source] * drawing.WIDEST, abs=drawing.STEP * drawing.WIDEST / 2 + 1e-6
        )
    assert BETWEEN[0, 1] < drawing.LEAST


def test_the_reference_lies_where_the_links_are_and_equal_words_keep_their_places() -> None:
    figure = alignment(BETWEEN, source=SOURCE, target=TARGET, reference=((0,), (1, 2)))
    assert bands(figure) == {(0, 0), (1, 1), (2, 1)}
    assert bands(alignment(BETWEEN, source=SOURCE, target=TARGET, reference=((), ()))) == set()
    words = [trace for trace in figure.data if trace.mode == "markers+text"]
    assert list(words[0].y) == [0, 1, 2]
    assert "&lt;b&gt;" in words[0].text[1]


def test_the_chosen_word_stands_out_and_no_words_are_a_picture_too() -> None:
    plain = alignment(BETWEEN, source=SOURCE, target=TARGET)
    chosen = alignment(BETWEEN, source=SOURCE, target=TARGET, chosen=1)
    assert lines(chosen) == lines(plain)
    before, after = colours(plain), colours(chosen)
    assert [ends for ends in after if after[ends] != before[ends]] == [(0, 0)]
    alignment(np.zeros((0, 3), np.float32), source=SOURCE, target=[])


def test_weights_and_words_must_fit() -> None:
    with pytest.raises(ValueError, match="2 target and 1 source"):
        alignment(BETWEEN, source=["a"], target=TARGET)


def test_the_models_choice_is_drawn_only_where_it_is_another_word() -> None:
    words = [GivenWord("le", 0.9, "le", 0.9), GivenWord("<i>", 0.00001, "chat", 0.8)]
    own, others = word_probabilities(words).data
    assert list(own.x) == [0.9, 0.00001]
    assert list(own.text) == ["0.9000", "<0.0001"]
    assert list(others.y) == [1]
    assert list(others.text) == ["chat 0.8000"]
    assert word_probabilities(words).layout.yaxis.ticktext[1] == "&lt;i&gt;"
    assert len(word_probabilities(words[:1]).data) == 1
