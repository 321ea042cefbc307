"""Beside others each visitor has an equal share of the time; the first pages of newcomers share one."""

import pytest

from tests.viz.state.conftest import Clock
from viz.state.quota import (
    AT_ONCE,
    AT_ONCE_NEWCOMERS,
    LEAST,
    PRESENT,
    SHARE_NEWCOMERS,
    USUAL,
    TimeQuota,
)


@pytest.fixture
def quota(clock: Clock) -> TimeQuota:
    return TimeQuota(clock)


def draw(quota: TimeQuota, visitor: str, seconds: float) -> None:
    """A page of this visitor, drawn in so many seconds."""
    quota.take(visitor, waited=True)
    quota.charge(visitor, seconds)


def arrive(quota: TimeQuota, *visitors: str) -> None:
    for visitor in visitors:
        draw(quota, visitor, 0.0)


def test_whoever_is_alone_never_waits(quota: TimeQuota):
    arrive(quota, "alone")
    draw(quota, "alone", 100.0)
    assert quota.wait("alone") == 0.0


def test_beside_others_one_waits_until_ones_share_is_regained(quota: TimeQuota, clock: Clock):
    arrive(quota, "busy", "other")
    draw(quota, "busy", AT_ONCE)
    assert quota.wait("busy") == 0.0
    draw(quota, "busy", 0.1)
    assert quota.wait("busy") == pytest.approx(0.2)  # half of the time is hers
    assert quota.wait("other") == 0.0
    clock.now += 0.2
    assert quota.wait("busy") == pytest.approx(0.0, abs=1e-9)


def test_no_share_is_smaller_than_the_least(quota: TimeQuota):
    arrive(quota, "busy", *(f"pupil {n}" for n in range(100)))
    draw(quota, "busy", AT_ONCE + 0.1)
    assert quota.wait("busy") == pytest.approx(0.1 / LEAST)


def test_who_left_takes_no_share(quota: TimeQuota, clock: Clock):
    arrive(quota, "busy", "left")
    draw(quota, "busy", 20 * AT_ONCE)
    assert quota.wait("busy") > 0.0
    clock.now += PRESENT + 0.1
    draw(quota, "busy", 0.0)
    assert quota.wait("busy") == 0.0


def test_first_pages_have_one_account_that_is_not_those_of_the_others(quota: TimeQuota):
    arrive(quota, "pupil")
    for number in range(10):
        draw(quota, f"newcomer {number}", AT_ONCE_NEWCOMERS / 10 + 0.01)
    assert quota.wait("next newcomer") == pytest.approx(0.1 / SHARE_NEWCOMERS)
    assert quota.wait("newcomer 3") == quota.wait("pupil") == 0.0


def test_the_visitors_remembered_are_bounded(quota: TimeQuota, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("viz.state.quota.KEPT", 3)
    arrive(quota, *"01234")
    assert [name for name in "01234" if quota.knows(name)] == ["2", "3", "4"]


def test_those_who_waited_together_do_not_begin_together(quota: TimeQuota, clock: Clock):
    arrive(quota, "busy", "other")
    draw(quota, "busy", AT_ONCE + 0.1)
    clock.now += quota.wait("busy") + 1e-6
    assert quota.take("busy", waited=False) == 0.0
    assert quota.take("busy", waited=False) == pytest.approx(2 * USUAL, abs=1e-3)
    assert quota.take("busy", waited=True) == 0.0
