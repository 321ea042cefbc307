"""Margins are counted where the width of letters is known, and left to Plotly elsewhere."""

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


@pytest.mark.parametrize("tokens", [["猫"] * 8, ["the", "cat"]])
def test_letters_of_unknown_width_and_labels_that_may_turn_are_plotlys(tokens: list[str]) -> None:
    assert margins(*tokens) is None
