"""The arcs of a sentence are the weights, whatever the tokens are called."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from viz.figures.svg import WIDEST, WIDTHS, arc_line

WEIGHTS = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.005, 0.495]], dtype=np.float32)


def drawn(tokens=("a", " <b>", " c&d"), **more) -> ElementTree.Element:
    return ElementTree.fromstring(arc_line(tokens, WEIGHTS, 2, **more))


def tokens_of(svg: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in svg if group.get("class", "").startswith("token")]


def test_an_arc_is_as_wide_as_its_weight_and_says_it():
    groups = [group for group in drawn() if group.get("class", "").startswith("arcs")]
    for row, arcs in zip(WEIGHTS, groups, strict=True):
        shown = [weight for weight in row if weight >= 0.01]
        assert [float(arc.get("stroke-width")) for arc in arcs] == pytest.approx(
            [WIDEST * weight for weight in shown], abs=0.01
        )
        assert [float(arc[0].text) for arc in arcs] == pytest.approx(shown, abs=1e-4)


def test_no_token_becomes_markup():
    assert [group.find("text").text for group in tokens_of(drawn())] == ["a", "·<b>", "·c&d"]


def test_the_chosen_tokens_arcs_are_shown_and_told():
    groups = tokens_of(drawn())
    assert [group.get("class") for group in groups] == ["token", "token", "token shown chosen"]
    assert [group.get("tabindex") for group in groups] == ["-1", "-1", "0"]
    assert groups[-1].get("aria-label") == "Token 2, ·c&d, attends to: a 0.50, ·c&d 0.50"


@pytest.mark.parametrize("width", WIDTHS.values())
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
