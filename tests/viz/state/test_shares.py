"""Beside others each visitor has an equal share of the time; the first pages of newcomers share one."""

import pytest

from tests.viz.state.conftest import Clock
from viz.state.shares import (
    AT_ONCE,
    AT_ONCE_NEWCOMERS,
    LEAST,
    PRESENT,
    SHARE_NEWCOMERS,
    USUAL,
    Shares,
)


@pytest.fixture
def shares(clock: Clock) -> Shares:
    return Shares(clock)


def draw(shares: Shares, visitor: str, seconds: float) -> None:
    """A page of this visitor, drawn in so many seconds."""
    shares.take(visitor, waited=True)
    shares.charge(visitor, seconds)


def arrive(shares: Shares, *visitors: str) -> None:
    for visitor in visitors:
        draw(shares, visitor, 0.0)


def test_whoever_is_alone_never_waits(shares: Shares):
    arrive(shares, "alone")
    draw(shares, "alone", 100.0)
    assert shares.wait("alone") == 0.0


def test_beside_others_one_waits_until_ones_share_is_regained(shares: Shares, clock: Clock):
    arrive(shares, "busy", "other")
    draw(shares, "busy", AT_ONCE)
    assert shares.wait("busy") == 0.0
    draw(shares, "busy", 0.1)
    assert shares.wait("busy") == pytest.approx(0.2)  # half of the time is hers
    assert shares.wait("other") == 0.0
    clock.now += 0.2
    assert shares.wait("busy") == pytest.approx(0.0, abs=1e-9)


def test_no_share_is_smaller_than_the_least(shares: Shares):
    arrive(shares, "busy", *(f"pupil {n}" for n in range(100)))
    draw(shares, "busy", AT_ONCE + 0.1)
    assert shares.wait("busy") == pytest.approx(0.1 / LEAST)


def test_who_left_takes_no_share(shares: Shares, clock: Clock):
    arrive(shares, "busy", "left")
    draw(shares, "busy", 20 * AT_ONCE)
    assert shares.wait("busy") > 0.0
    clock.now += PRESENT + 0.1
    draw(shares, "busy", 0.0)
    assert shares.wait("busy") == 0.0


def test_first_pages_have_one_account_that_is_not_those_of_the_others(shares: Shares):
    arrive(shares, "pupil")
    for number in range(10):
        draw(shares, f"newcomer {number}", AT_ONCE_NEWCOMERS / 10 + 0.01)
    assert shares.wait("next newcomer") == pytest.approx(0.1 / SHARE_NEWCOMERS)
    assert shares.wait("newcomer 3") == shares.wait("pupil") == 0.0


def test_the_visitors_remembered_are_bounded(shares: Shares, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("viz.state.shares.KEPT", 3)
    arrive(shares, *"01234")
    assert [name for name in "01234" if shares.knows(name)] == ["2", "3", "4"]


def test_those_who_waited_together_do_not_begin_together(shares: Shares, clock: Clock):
    arrive(shares, "busy", "other")
    draw(shares, "busy", AT_ONCE + 0.1)
    clock.now += shares.wait("busy") + 1e-6
    assert shares.take("busy", waited=False) == 0.0
    assert shares.take("busy", waited=False) == pytest.approx(2 * USUAL, abs=1e-3)
    assert shares.take("busy", waited=True) == 0.0
