"""The page of results of papers: cards, and the answers of the open model."""

import re
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from model.papers.claims import HOLDS, NOT_ASKED, claims
from model.papers.stored import read_stored
from tests.pages.reading import said, visit
from viz.state.link import from_link
from viz.state.navigation import read_address
from viz.views.library.papers import PAPER, answer, known

TRIED = 60  # looks at a page under way, each of which asks for what is ready
UNASKED = "notes-two-layers"  # a model that ships without answers


def cards(app: AppTest) -> dict[str, str]:
    """The text of each card by the claim's title, in their order."""
    found = {}
    for part in app.get("html"):
        for card in re.findall(
            r'<article class="paper"[^>]*>(.*?)</article>', part.proto.body, re.DOTALL
        ):
            title = re.search(r"<h3>(.*?)(?:<span|</h3>)", card)
            found[title[1]] = unescape(re.sub(r"<[^>]+>", " ", card))
    return found


def squares(app: AppTest) -> list[str]:
    """The verdict that the name of each square says; "" of one without."""
    (row,) = [one.proto.body for one in app.get("html") if 'class="verdicts"' in one.proto.body]
    found = re.findall(r'href="#paper-([^"]+)" aria-label="([^"]*)"[^>]*>([^<]*)</a>', row)
    assert [name for name, _, _ in found] == [*claims()]
    assert all(bool(sign) == (": " in words) for _, words, sign in found)
    return [unescape(words).rpartition(": ")[2] if sign else "" for _, words, sign in found]


def answered(app: AppTest, model: str, names: list[str]) -> AppTest:
    """The page once these claims have their answers."""
    for _ in range(TRIED):
        if all(answer(model, name) is not None for name in names):
            return app.run()
        app.run()
    raise AssertionError("the claims were not answered")


def test_a_model_that_ships_shows_its_answers_without_being_asked() -> None:
    for model in ("stories", "induction"):
        app = visit("papers", model=model)
        shown = cards(app)
        assert list(shown) == [claim.title for claim in claims().values()]
        _, stored = read_stored()[model]
        for one in stored:
            card = shown[one.title]
            assert one.verdict in card
            assert one.source in card
            if one.figure is not None:
                assert one.figure.unit in card
        assert not [button for button in app.button if button.key.startswith("papers-ask")]
        hold = sum(one.verdict == HOLDS for one in stored)
        assert f"**{hold} hold**" in said(app)
        assert squares(app) == [
            ({one.name: one.verdict for one in stored}.get(name, "")) for name in claims()
        ]
        assert not any(answer(model, name) for name in claims())  # nothing ran


def test_another_models_answers_are_not_shown_under_the_name_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viz.views.library.papers._weights", lambda name, changed: "0" * 64)
    app = visit("papers", model="stories")
    assert not any(HOLDS in card for card in cards(app).values())
    assert [button for button in app.button if button.key == "papers-ask-all"]


@pytest.mark.slow
def test_a_model_without_stored_answers_is_asked_on_a_button_and_shared() -> None:
    app = visit("papers", model=UNASKED)
    assert known(UNASKED) == {}
    one, *_ = claims()
    app.selectbox(key="papers-ask-one").set_value(one).run()
    app = answered(app, UNASKED, [one])
    result = answer(UNASKED, one)
    assert result.verdict in cards(app)[result.title]
    (button,) = [one for one in app.button if one.key == "papers-ask-all"]
    button.click().run()
    app = answered(app, UNASKED, list(claims()))
    assert not [one for one in app.button if one.key.startswith("papers-ask")]
    assert NOT_ASKED in cards(app)[claims()["forming"].title]
    other = visit("papers", model=UNASKED)  # another visitor
    assert result.verdict in cards(other)[result.title]


def test_a_link_puts_its_claim_first() -> None:
    app = visit("papers", model="stories", **{PAPER: "rollout"})
    assert next(iter(cards(app))) == claims()["rollout"].title
    assert len(cards(app)) == len(claims())
    odd = visit("papers", model="stories", **{PAPER: "<b>no claim</b>"})
    assert next(iter(cards(odd))) == next(iter(claims().values())).title


def test_each_claim_leads_to_a_view_that_is_there() -> None:
    for claim in claims().values():
        page, parameters = read_address(claim.link)
        assert "show" not in parameters or parameters["show"] in page.variants, claim.name
        _, problems = from_link(parameters)
        assert not problems, claim.name
