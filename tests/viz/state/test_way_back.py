"""Back and Forward, where another request overtakes theirs."""

from dataclasses import replace

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from tests.cases import cases
from viz.state import way_back as module
from viz.state.way_back import CARRIED, FOLLOWED, WayBack, of_a_link

PLAIN = RerunData(page_script_hash="home", query_string="head=2")
BACK = replace(PLAIN, is_history_navigation=True)


@pytest.fixture
def back(monkeypatch: pytest.MonkeyPatch) -> WayBack:
    """Of two sessions at most; the page that arrives is that of the session "mine"."""
    context = ScriptRunContext.__new__(ScriptRunContext)
    context.session_id = "mine"
    monkeypatch.setattr(module, "get_script_run_ctx", lambda: context)
    return WayBack(many=2)


def came(back: WayBack, session: str, request: RerunData) -> bool:
    return back.marked(session, request).is_history_navigation


def test_a_request_that_overtakes_back_comes_back_too_until_the_page_has_arrived(
    back: WayBack,
) -> None:
    assert not came(back, "mine", PLAIN)
    assert came(back, "mine", BACK)
    assert came(back, "mine", PLAIN)
    assert came(back, "mine", PLAIN)
    back.arrive()
    assert not came(back, "mine", PLAIN)


@pytest.mark.parametrize("other", [{"page_script_hash": "tokens"}, {"query_string": "head=3"}])
def test_a_request_for_another_address_is_an_ordinary_one(
    back: WayBack, other: dict[str, str]
) -> None:
    came(back, "mine", BACK)
    assert not came(back, "mine", replace(PLAIN, **other))


def test_another_visitor_has_nothing_of_it(back: WayBack) -> None:
    came(back, "mine", BACK)
    assert not came(back, "another", PLAIN)


def test_the_marks_of_sessions_that_ended_are_forgotten(back: WayBack) -> None:
    for session in ("ended", "another", "mine"):
        came(back, session, BACK)
    assert not came(back, "ended", PLAIN)
    assert came(back, "another", PLAIN)
    assert came(back, "mine", PLAIN)


@cases("said, query", [
    (FOLLOWED, ""),
    (f"head=2&{CARRIED}", "head=2"),
    (f"text=a+b&{FOLLOWED}&head=2", "text=a+b&head=2"),
])  # fmt: skip
def test_a_link_of_the_app_is_an_ordinary_request_for_its_address(said, query) -> None:
    assert of_a_link(replace(BACK, query_string=said)) == replace(PLAIN, query_string=query)
    assert of_a_link(replace(BACK, query_string=query)).is_history_navigation


def test_a_link_carries_the_view_until_its_page_has_arrived(back: WayBack) -> None:
    context = module.get_script_run_ctx()
    assert context is not None
    context.query_string = "head=2"
    for said in ("head=2", f"head=2&{FOLLOWED}", f"head=3&{CARRIED}"):
        came(back, "mine", replace(BACK, query_string=said))
        assert not back.carries()
    assert not came(back, "mine", replace(BACK, query_string=f"head=2&{CARRIED}"))
    came(back, "another", replace(BACK, query_string=f"head=3&{CARRIED}"))
    assert back.carries()
    assert not came(back, "mine", PLAIN)  # a request that overtakes it
    assert back.carries()
    back.arrive()
    assert not back.carries()


def test_a_link_with_a_view_of_its_own_is_followed_until_its_page_has_arrived(
    back: WayBack,
) -> None:
    context = module.get_script_run_ctx()
    assert context is not None
    context.query_string = "head=2"
    came(back, "mine", PLAIN)
    assert not back.follows()
    came(back, "mine", replace(BACK, query_string=f"head=2&{FOLLOWED}"))
    assert back.follows()
    assert not back.carries()
    back.arrive()
    assert not back.follows()
