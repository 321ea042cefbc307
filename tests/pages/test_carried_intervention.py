"""A view that carries an intervention: pages that show the unchanged model say so, and no claim
outlives it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from model import Intervention
from tests.cases import cases
from tests.pages.reading import named, said, visit
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


def test_a_switch_leads_to_the_run_that_the_browser_has_ahead(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    told: dict[str, Any] = {}

    def listening(*given: Any, ahead: Callable[[], Sequence[Any]], **more: Any) -> Selection:
        told.update(more, ahead=[one["run"] for one in ahead()])
        return explorer(*given, ahead=ahead, **more)

    monkeypatch.setattr("viz.shell.page.explorer", listening)
    app = visit("home")
    for name in ("hero-mask", "hero-scaled", "hero-mask", "hero-scaled"):
        with subtests.test(turns=name):
            turn = told["turns"][name]
            assert {one["run"] for one in told["turns"].values()} == set(told["ahead"])
            switch = named(app.toggle, name)
            assert switch.value == turn["on"]
            switch.set_value(not turn["on"]).run()
            assert told["run"] == turn["run"]
