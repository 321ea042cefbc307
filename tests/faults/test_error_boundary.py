"""A mistake of ours in one part of a page: told without its details, and all the rest goes on."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from model.loading.shipped import DamagedError
from tests.faults.conftest import TYPED, told, typed
from tests.pages.reading import named

SECRET = "what the visitor typed"


def broken(*_: object, **__: object) -> None:
    raise KeyError(SECRET)


def refused_by_a_library(*_: object, **__: object) -> None:
    raise ValueError(SECRET)


def reported(app: AppTest) -> list[str]:
    """The numbers of reports that the page tells and offers to try again."""
    keys = (str(button.key) for button in app.button if button.label == "Try again")
    return [key for key in keys if key.rpartition("-")[2] in told(app)]


@pytest.mark.parametrize(
    ("view", "error"), [(broken, "KeyError"), (refused_by_a_library, "ValueError")]
)
def test_a_view_that_breaks_says_so_in_its_place_and_the_others_work(
    opened: Callable[..., AppTest],
    monkeypatch: pytest.MonkeyPatch,
    broken_parts: list[str],
    view: Callable[..., None],
    error: str,
) -> None:
    monkeypatch.setattr("viz.views.tokens.listing.token_list", view)
    app = opened("pages/tokens.py", model="stories")
    assert len(reported(app)) == 1
    assert SECRET not in repr(app)
    assert broken_parts == [error]
    assert typed(app) == TYPED
    show = next(views for views in app.segmented_control if views.label == "Show")
    show.set_value("Two tokenizers").run()
    assert told(app) == ""
    broken_parts.clear()


def test_an_explorer_that_breaks_leaves_the_rest_of_its_page(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, broken_parts: list[str]
) -> None:
    monkeypatch.setattr("viz.shell.page.explorer", broken)
    app = opened("pages/home.py", model="stories", mask="none")
    (again,) = reported(app)
    assert not named(app.toggle, "hero-mask").value
    monkeypatch.undo()
    app.button(again).click().run()
    assert told(app) == ""
    assert app.get("bidi_component")
    broken_parts.clear()


def test_a_refusal_inside_a_view_is_told_in_its_own_words(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = DamagedError("card.json of stories")

    def refuse(*_: object) -> None:
        raise refusal

    monkeypatch.setattr("viz.views.tokens.listing.token_list", refuse)
    app = opened("pages/tokens.py", model="stories")
    assert told(app) == str(refusal)
