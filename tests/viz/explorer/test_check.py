"""A short run is checked before its picture is sent; a long one when the browser asks."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import PAGES
from viz.explorer.packing import words
from viz.shell import page
from viz.state.engine import engine


def message(app: AppTest) -> dict[str, object]:
    assert not app.exception
    sent = [words(part.proto.bytes) for part in app.get("bidi_component")]
    (explorer,) = (each for each in sent if "checked" in each)
    return explorer


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_file(str(PAGES / "home.py"), default_timeout=120)


def ask(app: AppTest, run: object) -> None:
    """What Python notes when the browser asks for the check of a run."""
    app.session_state["explorer:asks-for-check-of"] = run
    app.run()


def is_small(check: object) -> bool:
    return isinstance(check, float) and 0 <= check < 1e-5


def test_a_short_run_comes_with_its_check(app: AppTest) -> None:
    said = message(app.run())
    assert said["checked"]
    assert is_small(said["check"])


def test_a_long_run_is_checked_when_the_browser_asks(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "CHECKED_AT_ONCE", 0)
    app.query_params["text"] = "A run that no other test has checked"
    first = message(app.run())
    assert (first["checked"], first["check"]) == (False, None)
    ask(app, "another run")
    assert not message(app)["checked"]
    ask(app, first["run"])
    assert is_small(message(app)["check"])


def test_a_long_run_that_is_not_kept_is_checked_at_once(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "CHECKED_AT_ONCE", 0)
    monkeypatch.setattr(engine(), "can_keep", lambda trace: False)
    app.query_params["text"] = "Another run that no other test has checked"
    assert is_small(message(app.run())["check"])
