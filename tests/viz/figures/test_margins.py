"""Margins are counted from the letters of labels, and left to Plotly where labels may turn."""

import numpy as np
import pytest

from viz.figures.heatmap import Axis, heatmap
from viz.figures.room import LETTER, counted_margins


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
    assert short is not None
    assert long is not None
    assert long["l"] - short["l"] == pytest.approx(3 * LETTER)
    assert long["t"] > short["t"]
    assert margins(*["<"] * 7) == margins(*["a"] * 7)


@pytest.mark.parametrize(
    ("label", "letters"),
    [
        ("né", 2),
        ("ne\u0301", 2),
        ("‹E7›", 4),
        ("сад", 3),
        ("猫", 1.65),
        ("こねこ", 3 * 1.65),
        ("🐈", 2.1),
    ],
)
def test_a_letter_of_another_face_has_more_room_and_an_accent_none(
    label: str, letters: float
) -> None:
    plain, other = margins(*["a"] * 7, "tomcat"), margins(*["a"] * 7, "tomcat" + label)
    assert plain is not None
    assert other is not None
    assert other["l"] - plain["l"] == pytest.approx(letters * LETTER)


def test_labels_that_may_turn_are_plotlys() -> None:
    assert margins("the", "cat") is None
