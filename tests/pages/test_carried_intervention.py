"""A view that carries an intervention: pages that show the unchanged model say so, and no claim
outlives it."""

from collections.abc import Sequence
from typing import Any

import pytest

from model import Intervention
from tests.cases import cases
from tests.pages.reading import said, visit
from viz.explorer import Selection
from viz.explorer.component import explorer
from viz.explorer.message import HeadClaim
from viz.state.link import to_link
from viz.state.presets import EXAMPLES, SentenceExample

UNCHANGED = "This page shows the **unchanged** model, without your change: positions off."
CLAIMS = [
    next(one for one in EXAMPLES if one.view.model == name) for name in ("house-gpt", "stories")
]


@cases(
    "page",
    [
        *("all_heads", "tokens", "positions"),
        *("layer_norm", "feed_forward", "prediction", "shapes_and_cost"),
    ],
)
def test_a_page_that_shows_the_unchanged_model_says_so(page) -> None:
    assert "unchanged** model, without" not in said(visit(page))
    app = visit(page, positions="0")
    assert UNCHANGED in said(app)
    app.button(key="take-change-back").click().run()
    assert app.session_state["view"].intervention == Intervention()
    assert UNCHANGED not in said(app)


@cases("page", ["home"])
def test_a_page_that_shows_the_intervention_does_not_say_that_it_shows_none(page) -> None:
    assert "unchanged** model, without" not in said(visit(page, positions="0"))


@pytest.mark.parametrize("example", CLAIMS, ids=lambda example: example.title)
def test_what_an_example_claims_is_not_said_of_a_changed_run(
    example: SentenceExample, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, told = to_link(example.view), list[HeadClaim]()

    def listening(*given: Any, claims: Sequence[HeadClaim], **more: Any) -> Selection:
        told[:] = claims
        return explorer(*given, claims=claims, **more)

    monkeypatch.setattr("viz.shell.page.explorer", listening)
    visit("home", **link)
    assert example.look_for in {claim.text for claim in told}
    visit("home", **link, scale="1.0")
    assert {claim.title for claim in told} == {"After the change."}
    assert example.look_for not in {claim.text for claim in told}
