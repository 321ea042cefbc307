"""The drawers of a change on Explore: they hold the numbers of both traces."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from model import Intervention
from model.analysis.run_comparison import divergences, losses, movement
from model.loading.registry import models
from tests.cases import cases
from tests.model.tiny import sentence
from tests.pages.laboratory import TEXT, assert_sound, opened
from tests.pages.reading import ODD_TEXTS, choose, control, numbers, traces
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.home.drawer import DRAWERS
from viz.views.laboratory.editors import GROUPS
from viz.views.laboratory.effects import effects

WITHOUT = Intervention(scale=1.0, ablated=frozenset({("decoder.0.self", 1)}))
LINK = {"scale": "1.0", "ablated": "decoder.0.self:1"}


@pytest.mark.slow
@cases("model", sorted(models))
def test_every_editor_of_every_model_is_drawn(model) -> None:
    loaded = engine().model(model, lambda *news: None)
    for group in GROUPS:
        assert_sound(opened(group, model=model, text=sentence(loaded), scale="1.0"))


def test_no_text_breaks_a_drawer_under_several_interventions(subtests: pytest.Subtests) -> None:
    for text in ODD_TEXTS[:2]:
        for show in DRAWERS:
            with subtests.test(text=text, show=show):
                app = opened(
                    "Edges", text=text, show=show, positions="0", ablated="decoder.0.self:1"
                )
                for name in ("Changed", "Why", "Carries"):
                    for box in [one for one in app.segmented_control if one.label == name]:
                        for option in box.options:
                            choose(app, name, option)
                            assert_sound(app)


def test_the_drawers_draw_the_numbers_of_the_two_traces() -> None:
    model = engine().model("stories", lambda *news: None)
    before, after = model.trace(TEXT), model.trace(TEXT, intervention=WITHOUT)
    app = opened(show="Changed", place="decoder.1.self", head="2", **LINK)
    choose(app, "Changed", "Stream")
    np.testing.assert_allclose(
        numbers(traces(app)[-1]["z"]), movement(before, after, "decoder").share, rtol=1e-5
    )
    choose(app, "Changed", "Rows of weights")
    marks = [numbers(trace["y"]) for trace in traces(app) if trace["mode"] == "markers"]
    for values, trace in zip(marks, (before, after), strict=True):
        np.testing.assert_allclose(values, trace.find("decoder.1.self").weights(2).max(-1))


def test_what_changed_is_offered_only_where_something_was() -> None:
    def offered(**link: str) -> list[str]:
        return [one.label for one in opened(show="Changed", **link).segmented_control]

    assert "Changed" in offered(scale="1.0")
    assert "Changed" not in offered()


def test_the_effects_hold_the_numbers_of_both_runs() -> None:
    model = engine().model("stories", lambda *news: None)
    runs = model.trace(TEXT), model.trace(TEXT, intervention=WITHOUT)
    look = cast(Look, SimpleNamespace(model=model, place="decoder.1.self"))
    shown = {one.name: one for one in effects(look, *runs)}
    for which, run in zip(("before", "after"), runs, strict=True):
        attention = run.find("decoder.1.self")
        largest = np.mean([attention.weights(head).max(-1) for head in range(attention.heads)])
        assert float(getattr(shown["Top weight, L1"], which)) == pytest.approx(largest, abs=6e-4)
        loss = float(getattr(shown["Loss per token"], which))
        assert loss == pytest.approx(losses(run).mean(), abs=1e-3)
    apart = float(shown["Prediction, KL"].after.removesuffix(" nats"))
    assert apart == pytest.approx(divergences(*runs)[-1], abs=6e-3)
    moved = movement(*runs, "decoder").share[-1].mean()
    assert shown["Last vectors"].after == f"{moved:.1%} away"


def test_the_colours_of_a_stream_that_nothing_moved_do_not_end_at_millionths() -> None:
    app = opened(show="Changed", text="Tom", mask="none")
    choose(app, "Changed", "Stream")
    drawn = traces(app)[-1]
    assert not numbers(drawn["z"]).any()
    assert (drawn["zmin"], drawn["zmax"]) == (0, 1)


def test_a_drawer_is_closed_and_the_link_forgets_it() -> None:
    app = opened(show="Why?")
    assert control(app, "Why").value == "The score"
    app.button(key="drawer-close").click().run()
    assert "show" not in app.query_params
    assert not [one for one in app.segmented_control if one.label == "Why"]
