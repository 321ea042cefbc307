"""Who leads: one, several that are printed alike, or all; and what pages say then."""

import numpy as np
import pytest

from viz.notation.numbers import leaders, led_by
from viz.views.all_heads.means import ALL, _look_for
from viz.views.laboratory.effects import _moved_most

NAMES = ["L0H0", "L0H1", "L0H2", "L0H3", "L1H0"]


@pytest.mark.parametrize(
    ("values", "said", "several"),
    [
        ([0.1, 0.9, 0.2, 0.3, 0.4], "**L0H1**", False),
        ([0.1, 0.9001, 0.2, 0.9002, 0.4], "**L0H1** and **L0H3**", True),  # printed alike
        ([0.9, 0.9, 0.9, 0.9, 0.4], "**4 of 5 alike**", True),
        ([0.0] * 5, "**all 5 alike**", True),
    ],
)
def test_equal_values_share_the_first_place(values: list[float], said: str, several: bool) -> None:
    assert led_by(NAMES, values, decimals=3) == (said, several)


def test_one_head_alone_leads() -> None:
    assert led_by(["L0H0"], [0.0], decimals=2) == ("**L0H0**", False)
    assert leaders([-0.0, 0.0, -1.0], decimals=2) == (0, 1)


def test_no_token_is_said_to_lead_where_several_are_equal() -> None:
    even = np.full(2, 0.5)
    assert "No token stands out" in _look_for(ALL, even, ["a", "b"], False)
    first = np.array([1.0, 0.0])
    assert "**a** (position 0) gets a mean weight of 1.00" in _look_for(
        ALL, first, ["a", "b"], False
    )


def test_predictions_that_did_not_move_moved_most_after_no_token() -> None:
    assert "most after" not in _moved_most(["a", "b"], np.zeros(2), 0.0)
    assert "most after **b** (position 1): **0.2000**" in _moved_most(
        ["a", "b"], np.array([0, 0.2]), 0.0
    )
