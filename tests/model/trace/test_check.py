"""The check recomputes what the formula says, for every kind of mask, and sees a single wrong number."""

import math
from dataclasses import replace

import numpy as np
import pytest

from model.trace.check import BLOCK
from model.trace.records import Attention
from tests.viz.explorer.records import record

LONG = 2 * BLOCK + 7
HOLES = np.random.default_rng(0).random((LONG, LONG)) > 0.5
BAND = np.tri(LONG, dtype=bool) & ~np.tri(LONG, k=-9, dtype=bool)  # a sliding window
CLOSED = HOLES.copy()
CLOSED[[0, BLOCK, LONG - 1]] = False


@pytest.mark.parametrize("mask_value", [-math.inf, -1e9, 0.0])
@pytest.mark.parametrize(
    "attention",
    [
        record(1),
        record(LONG, kind="causal"),
        record(LONG, kind="self"),
        record(5, LONG, kind="cross"),
        record(LONG, mask=HOLES),
        record(LONG, mask=CLOSED),
        record(LONG, mask=BAND),
        record(LONG, mask=np.zeros_like(HOLES)),
    ],
    ids=["one", "causal", "open", "cross", "holes", "closed rows", "window", "nothing seen"],
)
def test_the_check_is_the_difference_from_the_context_head_by_head(
    attention: Attention, mask_value: float
) -> None:
    attention = replace(attention, mask_value=mask_value)
    expected = max(
        float(np.abs(attention.context(head) - attention.output[head]).max())
        for head in range(attention.heads)
    )
    assert attention.check() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("row", [0, BLOCK, LONG - 1])
def test_one_wrong_number_is_seen_wherever_it_is(row: int) -> None:
    attention = record(LONG)
    assert attention.check() < 1e-5
    output = attention.output.copy()
    output[1, row, 3] += 0.01
    assert replace(attention, output=output).check() == pytest.approx(0.01, rel=1e-2)
