"""A request that left the browser before it heard of the newest link changes nothing; a link that is
opened does."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.test_every_page import opened
from viz import address


def asked_late(app: AppTest, **link: str) -> AppTest:
    """The page runs once more, asked for with this link."""
    app.query_params.clear()
    for name, value in link.items():
        app.query_params[name] = value
    return app.run()


def scaled(app: AppTest) -> bool:
    return bool(app.toggle(key="choose-scaled").value)


def test_a_late_request_does_not_take_a_change_back() -> None:
    app = opened("pages/attention.py", head="3")
    app.toggle(key="choose-scaled").set_value(False).run()
    app.radio(key="choose-mask").set_value("none").run()
    newest = dict(app.query_params)
    asked_late(app, head="3")
    assert not scaled(app)
    assert app.query_params == newest


def test_an_earlier_link_that_is_opened_later_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("pages/attention.py", head="3")
    app.toggle(key="choose-scaled").set_value(False).run()
    monkeypatch.setattr(address, "LATE", 0.0)
    asked_late(app, head="3")
    assert scaled(app)


def test_a_link_that_was_never_written_is_taken_at_once() -> None:
    app = opened("pages/attention.py", head="3")
    app.toggle(key="choose-scaled").set_value(False).run()
    asked_late(app, head="2")
    assert scaled(app)
    assert app.query_params["head"] == "2"


def test_a_late_request_does_not_take_the_tour_back() -> None:
    app = opened("pages/attention.py", tour="scaling", place="decoder.0.self", head="3")
    next(button for button in app.button if button.label == "Skip this step").click().run()
    assert app.query_params["tour"] == "mask"
    asked_late(app, tour="scaling")
    assert app.query_params["tour"] == "mask"
    assert any("The mask" in box.label for box in app.expander)
    asked_late(app, tour="weights")
    assert any("Weights and output" in box.label for box in app.expander)
