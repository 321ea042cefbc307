"""The page of results of papers: cards, and the answers of the open model."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from model.papers.claims import HOLDS, NOT_ASKED, claims
from tests.pages.reading import said, visit
from viz.state.link import from_link
from viz.state.navigation import read_address
from viz.views.library.papers import PAPER, answer

TRIED = 60  # looks at a page under way, each of which asks for what is ready


def cards(app: AppTest) -> dict[str, str]:
    """The text of each card by the claim's title, in their order."""
    found = {}
    for part in app.get("html"):
        for card in re.findall(
            r'<article class="paper">(.*?)</article>', part.proto.body, re.DOTALL
        ):
            title = re.search(r"<h3>(.*?)(?:<span|</h3>)", card)
            assert title is not None
            found[title[1]] = re.sub(r"<[^>]+>", " ", card)
    return found


def answered(app: AppTest, model: str, names: list[str]) -> AppTest:
    """The page once these claims have their answers."""
    for _ in range(TRIED):
        if all(answer(model, name) is not None for name in names):
            return app.run()
        app.run()
    raise AssertionError("the claims were not answered")


def test_the_page_shows_each_claim_with_its_paper_and_asks_nothing_by_itself() -> None:
    app = visit("papers", model="stories")
    shown = cards(app)
    assert list(shown) == [claim.title for claim in claims().values()]
    for claim in claims().values():
        assert claim.figure_of_the_paper.source in shown[claim.title].replace("&amp;", "&")
    assert len([one for one in app.button if one.label == "Ask this model"]) == len(claims())
    assert not any(answer("stories", name) for name in claims())


def test_a_claim_is_asked_and_its_card_says_figure_control_and_verdict() -> None:
    app = visit("papers", model="induction")
    app.button(key="papers-ask-induction").click().run()
    app = answered(app, "induction", ["induction"])
    result = answer("induction", "induction")
    assert result is not None
    assert result.verdict == HOLDS
    card = cards(app)["Induction heads"]
    assert HOLDS in card
    assert str(result.figure) in card
    assert str(result.control) in card
    assert re.search("1 holds, 0 [^,]*, 0 ", said(app))
    assert [one.key for one in app.button if one.key == "papers-ask-induction"] == []


@pytest.mark.slow
def test_all_claims_are_asked_and_shared_and_another_model_has_answers_of_its_own() -> None:
    app = visit("papers", model="induction")
    (button,) = [one for one in app.button if one.key == "papers-ask-all"]
    button.click().run()
    app = answered(app, "induction", list(claims()))
    assert not [one for one in app.button if one.label.startswith("Ask")]
    assert "cannot be asked" in cards(app)["Successor heads"]
    other = visit("papers", model="induction")  # another visitor
    assert HOLDS in cards(other)["Induction heads"]
    own = visit("papers", model="translate-en-fr")
    assert HOLDS not in cards(own)["Induction heads"]
    assert NOT_ASKED not in cards(own)["Induction heads"]


def test_a_link_puts_its_claim_first() -> None:
    app = visit("papers", model="stories", **{PAPER: "rollout"})
    assert next(iter(cards(app))) == claims()["rollout"].title
    assert len(cards(app)) == len(claims())
    odd = visit("papers", model="stories", **{PAPER: "<b>no claim</b>"})
    assert next(iter(cards(odd))) == next(iter(claims().values())).title


def test_each_claim_leads_to_a_view_that_is_there() -> None:
    for claim in claims().values():
        page, parameters = read_address(claim.link)
        assert "show" not in parameters or parameters["show"] in page.views, claim.name
        _, problems = from_link(parameters)
        assert not problems, claim.name
