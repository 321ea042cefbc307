"""The check recomputes what the formula says, for every kind of mask, and sees a single wrong number."""

import math
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from model.system import deadline
from model.trace.records import BLOCK, Attention, NormRecord
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.made_trace import made_trace
from tests.viz.explorer.records import record

LONG = 2 * BLOCK + 7
HOLES = np.random.default_rng(0).random((LONG, LONG)) > 0.5
BAND = np.tri(LONG, dtype=bool) & ~np.tri(LONG, k=-9, dtype=bool)  # a sliding window
CLOSED = HOLES.copy()
CLOSED[[0, BLOCK, LONG - 1]] = False


def test_the_check_is_the_difference_from_the_context_head_by_head(
    subtests: pytest.Subtests,
) -> None:
    for mask_value, attention in product(
        [-math.inf, -1e9, 0.0],
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
    ):
        with subtests.test(mask_value=mask_value, attention=attention):
            attention = replace(attention, mask_value=mask_value)
            expected = max(
                float(np.abs(attention.context(head) - attention.output[head]).max())
                for head in range(attention.heads)
            )
            assert attention.check() == pytest.approx(expected, abs=1e-5)


@cases("row", [0, BLOCK, LONG - 1])
def test_one_wrong_number_is_seen_wherever_it_is(row) -> None:
    attention = record(LONG)
    assert attention.check() < 1e-5
    output = attention.output.copy()
    output[1, row, 3] += 0.01
    assert replace(attention, output=output).check() == pytest.approx(0.01, rel=1e-2)


def test_what_is_not_a_number_is_never_a_gap_of_zero() -> None:
    attention = record(LONG)
    output = attention.output.copy()
    output[0, BLOCK, 3] = math.nan  # not in the first head's first rows, not in the last head
    broken = replace(attention, output=output)
    assert math.isnan(broken.check())
    trace = replace(made_trace([np.eye(2)], "a b"), attention=(attention, broken, attention))
    assert math.isnan(trace.check())


def test_a_norm_whose_recorded_output_is_not_a_number_has_no_gap_of_zero() -> None:
    numbers = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    mean, variance = numbers.mean(-1), numbers.var(-1)
    norm = NormRecord(
        name="decoder.0.self.norm",
        kind="layer",
        input=numbers,
        mean=mean,
        inverse_deviation=1 / np.sqrt(variance + 1e-5),
        epsilon=1e-5,
        gamma=np.ones(4, np.float32),
        beta=np.zeros(4, np.float32),
        recorded=np.full_like(numbers, math.nan),
    )
    assert replace(norm, recorded=None).check() < 1e-5
    assert math.isnan(norm.check())


def made() -> Trace:
    return made_trace([np.eye(2, dtype=np.float32)], "a b")


def test_a_check_ends_when_its_time_is_over() -> None:
    attention = record(LONG, kind="causal")
    with deadline.within(-1.0, lambda: None), pytest.raises(deadline.PassTooLongError):
        attention.check()


def test_the_check_of_one_trace_does_not_wait_for_that_of_another() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Attention):
        def check(self) -> float:
            begun.set()
            go_on.wait()
            return 0.0

    (first,) = made().attention[:1]
    slow = replace(made(), attention=(Slow(**vars(first)),))
    other = threading.Thread(target=slow.check)
    other.start()
    begun.wait()
    try:
        quick = threading.Thread(target=made().check, daemon=True)
        quick.start()
        quick.join(60)
        assert not quick.is_alive()
        assert other.is_alive()
    finally:
        go_on.set()
        other.join()
