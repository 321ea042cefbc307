"""Lines between two sentences, arcs over one, and probabilities of words."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cases import each
from viz.figures import alignment as drawing
from viz.figures.alignment import alignment
from viz.figures.bars import GivenWord, word_probabilities
from viz.figures.svg import WIDEST, WIDTHS, arc_line

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


WEIGHTS = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.005, 0.495]], dtype=np.float32)


def svg_of(tokens=("a", " <b>", " c&d"), **more) -> ElementTree.Element:
    return ElementTree.fromstring(arc_line(tokens, WEIGHTS, 2, **more))


def tokens_of(svg: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in svg if group.get("class", "").startswith("token")]


def test_an_arc_is_as_wide_as_its_weight_and_says_it():
    groups = [group for group in svg_of() if group.get("class", "").startswith("arcs")]
    for row, arcs in zip(WEIGHTS, groups, strict=True):
        shown = [weight for weight in row if weight >= 0.01]
        assert [float(arc.get("stroke-width")) for arc in arcs] == pytest.approx(
            [WIDEST * weight for weight in shown], abs=0.01
        )
        assert [float(arc[0].text) for arc in arcs] == pytest.approx(shown, abs=1e-4)


def test_no_token_becomes_markup():
    assert [group.find("text").text for group in tokens_of(svg_of())] == ["a", "·<b>", "·c&d"]


def test_the_chosen_tokens_arcs_are_shown_and_told():
    groups = tokens_of(svg_of())
    assert [group.get("class") for group in groups] == ["token", "token", "token shown chosen"]
    assert [group.get("tabindex") for group in groups] == ["-1", "-1", "0"]
    assert groups[-1].get("aria-label") == "Token 2, ·c&d, attends to: a 0.50, ·c&d 0.50"


@each("width", WIDTHS.values())
def test_a_long_sentence_wraps(width):
    count = 40
    svg = ElementTree.fromstring(
        arc_line([" word"] * count, np.eye(count, dtype=np.float32), 39, width=width)
    )
    boxes = [group.find("rect") for group in tokens_of(svg)]
    assert max(float(box.get("x")) + float(box.get("width")) for box in boxes) <= width
    assert len({box.get("y") for box in boxes}) > 1
    height = float(re.search(r"(\d+)$", svg.get("viewBox")).group())
    assert max(float(box.get("y")) + float(box.get("height")) for box in boxes) <= height


def test_an_arc_to_another_line_goes_around_the_words():
    count = 14
    weights = np.full((count, count), 1 / count, dtype=np.float32)  # each token attends to all
    svg = ElementTree.fromstring(arc_line([" word"] * count, weights, 0, width=WIDTHS["narrow"]))
    words = [group.find("rect") for group in tokens_of(svg)]
    assert len({word.get("y") for word in words}) > 2
    for path in svg.iterfind(".//path"):
        for part in pairwise(points(path.get("d"))):
            assert not [word for word in words if meets(word, part)], path.get("d")


def points(path: str) -> list[tuple[float, float]]:
    """The corners of a path that goes to another line; none of an arc on one line."""
    found = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]
    return [] if " c" in path or found[0][1] == found[-1][1] else found


def meets(word: ElementTree.Element, part: tuple[tuple[float, float], ...]) -> bool:
    """Whether a part of a path lies on a word, more than at its edge."""
    left, top, width, height = (float(word.get(name)) for name in ("x", "y", "width", "height"))
    across, down = ([one[axis] for one in part] for axis in (0, 1))
    return (
        min(across) < left + width
        and max(across) > left
        and min(down) < top + height - 1
        and max(down) > top + 1
    )


def test_weights_of_another_size_are_refused():
    with pytest.raises(ValueError, match="3, 3"):
        arc_line(["a"], WEIGHTS, 0)
