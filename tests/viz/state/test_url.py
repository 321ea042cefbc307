"""The address, as the browser is told it and as late requests carry it."""

import pytest
import streamlit as st

from viz.state import url

FIRST, SECOND, THIRD = ({"head": head} for head in "123")
NAMES = frozenset({"head"})


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour goes by between any two things."""
    clock = iter(range(0, 10**6, 3600))
    monkeypatch.setattr(url.time, "monotonic", lambda: next(clock))


@pytest.mark.usefixtures("hours")
def test_a_request_with_an_earlier_address_is_late_until_one_comes_with_a_later_address() -> None:
    for said in (FIRST, SECOND, THIRD):
        url.tell("link", said, NAMES)
    assert url.knows("link", FIRST)
    assert url.knows("link", FIRST)  # the browser may send many before it hears
    assert url.knows("link", SECOND)
    assert not url.knows("link", FIRST)
    assert url.knows("link", THIRD)
    assert not url.knows("link", SECOND)
    assert not url.knows("link", {"head": "7"})


@pytest.mark.usefixtures("hours")
def test_an_address_that_was_told_twice_may_be_the_earlier_one() -> None:
    for said in (FIRST, SECOND, FIRST):
        url.tell("link", said, NAMES)
    assert url.knows("link", FIRST)
    assert url.knows("link", SECOND)
    assert url.knows("link", FIRST)
    assert not url.knows("link", SECOND)


def test_what_links_carried_is_late_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(url.time, "monotonic", lambda: now)
    url.tell("carried", FIRST)
    url.tell("carried", SECOND)
    assert url.knows("carried", FIRST)
    now = url.LATE
    assert not url.knows("carried", FIRST)
    assert url.knows("carried", SECOND)


@pytest.mark.usefixtures("hours")
def test_only_the_last_addresses_are_kept() -> None:
    for head in range(2 * url.EARLIER):
        url.tell("link", {"head": str(head)}, NAMES)
    assert not url.knows("link", {"head": "0"})
    assert url.knows("link", {"head": str(2 * url.EARLIER - 2)})
