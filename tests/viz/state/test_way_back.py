"""Back and Forward, where another request overtakes theirs."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from viz.state import way_back

PLAIN = RerunData(page_script_hash="home", query_string="head=2")
BACK = replace(PLAIN, is_history_navigation=True)


@pytest.fixture(autouse=True)
def arrives(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page that calls `arrive` is the session "mine"."""
    context = ScriptRunContext.__new__(ScriptRunContext)
    context.session_id = "mine"
    monkeypatch.setattr(way_back, "get_script_run_ctx", lambda: context)
    yield
    for session in ("mine", "another"):
        context.session_id = session
        way_back.arrive()


def came(session: str, request: RerunData) -> bool:
    return way_back.marked(session, request).is_history_navigation


def test_a_request_that_overtakes_back_comes_back_too_until_the_page_has_arrived() -> None:
    assert not came("mine", PLAIN)
    assert came("mine", BACK)
    assert came("mine", PLAIN)
    assert came("mine", PLAIN)
    way_back.arrive()
    assert not came("mine", PLAIN)


@pytest.mark.parametrize("other", [{"page_script_hash": "tokens"}, {"query_string": "head=3"}])
def test_a_request_for_another_address_is_an_ordinary_one(other: dict[str, str]) -> None:
    came("mine", BACK)
    assert not came("mine", replace(PLAIN, **other))


def test_another_visitor_has_nothing_of_it() -> None:
    came("mine", BACK)
    assert not came("another", PLAIN)


def test_the_marks_of_sessions_that_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way_back, "MANY", 1)
    came("another", BACK)
    came("mine", BACK)
    assert not came("another", PLAIN)
    assert came("mine", PLAIN)
