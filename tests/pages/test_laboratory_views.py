"""The laboratory's views: what presets open, and that the pictures hold the numbers of both traces."""

import re
from dataclasses import replace

import numpy as np
import pytest

from model import Intervention
from model.analysis.run_comparison import divergences, losses, movement
from model.analysis.tokens.prediction import probabilities
from model.loading.registry import models
from tests.model.tiny import sentence
from tests.pages.laboratory import (
    TEXT,
    assert_sound,
    behind,
    intervention,
    linked,
    opened,
    widget,
)
from tests.pages.reading import ODD_TEXTS, numbers, said, traces
from viz.notation.labels import token_label
from viz.shell.pictures import LOOK_FOR
from viz.state.engine import engine
from viz.state.link import to_link
from viz.state.presets import HEADS, NEXT, PATCH, POSITIONS, PRESETS, ROWS, STREAM
from viz.views.laboratory.editors import EDITORS

VIEWS = (HEADS, NEXT, POSITIONS, ROWS, STREAM, PATCH)


def test_a_preset_opens_its_view_and_says_what_to_look_for(subtests: pytest.Subtests) -> None:
    for preset in PRESETS:
        with subtests.test(preset=preset.title):
            app = opened()
            before = app.session_state["view"]
            number = PRESETS.index(preset)
            assert preset.question in app.button(key=f"laboratory-card-{number}").label
            app.button(key=f"laboratory-card-{number}-example").click().run()
            assert_sound(app)
            view = app.session_state["view"]
            assert (view.text, view.model, view.intervention) == (
                preset.view.text,
                preset.view.model,
                preset.view.intervention,
            )
            assert f"{LOOK_FOR} {preset.look_for}" in said(app)
            widget(app, "laboratory-undo").click().run()
            assert (
                app.session_state["view"] == before
            )  # the sentence, the model, the head, the cell and the view
            link = linked(to_link(preset.view))
            assert intervention(link) == preset.view.intervention
            assert f"{LOOK_FOR} {preset.look_for}" in said(link)


def test_a_card_changes_the_open_sentence_and_no_other_and_undo_leads_back() -> None:
    app = opened(head="2", show=ROWS)
    before = app.session_state["view"]
    assert app.button(key=f"laboratory-card-{len(PRESETS) - 1}").disabled  # no sinks in this model
    for number, preset in enumerate(PRESETS[:-1]):
        app.button(key=f"laboratory-card-{number}").click().run()
        assert_sound(app)
        view = app.session_state["view"]
        assert view.intervention == preset.change_of(before)
        assert replace(view, intervention=Intervention(), query=0, key=0) == replace(
            before, query=0, key=0
        )
        widget(app, "laboratory-undo").click().run()
        assert app.session_state["view"] == before


def test_a_card_chooses_the_weight_that_it_moves_most_and_names_the_head_that_moves_most() -> None:
    app = opened(place="decoder.1.self", head="1")
    app.button(key="laboratory-card-0").click().run()
    shown = engine().model("stories", lambda *news: None)
    before, after = (
        shown.trace(TEXT, intervention=each) for each in (Intervention(), intervention(app))
    )
    apart = {
        (one.name, head): np.abs(one.weights(head) - before.find(one.name).weights(head))
        for one in after.attention
        for head in range(one.heads)
    }
    view = app.session_state["view"]
    assert apart["decoder.1.self", 1][view.cell] == apart["decoder.1.self", 1].max()
    most = max(apart, key=lambda head: apart[head].max())
    assert most != ("decoder.1.self", 1)
    widget(app, "laboratory-most-moved").click().run()
    view = app.session_state["view"]
    assert (view.place, view.head) == most
    assert apart[most][view.cell] == apart[most].max()
    assert "laboratory-most-moved" not in {button.key for button in app.button}


@pytest.mark.slow
def test_every_editor_of_every_model_is_drawn(subtests: pytest.Subtests) -> None:
    for model in sorted(models):
        with subtests.test(model=model):
            loaded = engine().model(model, lambda *news: None)
            app = opened(model=model, text=sentence(loaded), scale="1.0")
            for edit in EDITORS:
                behind(app, edit)
                assert_sound(app)
            if loaded.config.shape == "encoder":
                for view in (NEXT, POSITIONS):
                    app.selectbox(key="choose-show").set_value(view).run()
                    assert any("is an encoder" in info.value for info in app.info)


def test_no_text_breaks_a_view_under_several_interventions() -> None:
    for text in ODD_TEXTS[:2]:
        app = opened(text=text, scale="1.0", positions="0", ablated="decoder.0.self:1")
        for view in VIEWS:
            app.selectbox(key="choose-show").set_value(view).run()
            assert_sound(app)
        for edit in ("Padding", "Edges"):
            behind(app, edit)
            assert_sound(app)


def test_the_views_draw_the_numbers_of_the_two_traces() -> None:
    model = engine().model("stories", lambda *news: None)
    wanted = Intervention(scale=1.0, ablated=frozenset({("decoder.0.self", 1)}))
    before, after = model.trace(TEXT), model.trace(TEXT, intervention=wanted)
    link = {"scale": "1.0", "ablated": "decoder.0.self:1"}
    shown = [
        numbers(trace["y"])
        for trace in traces(opened(show=POSITIONS, **link))
        if trace["mode"] == "markers"
    ]
    for values, trace in zip(shown, (before, after), strict=True):
        np.testing.assert_allclose(values, np.exp(-losses(trace)), rtol=1e-5)
    app = opened(show=STREAM, **link)
    np.testing.assert_allclose(
        numbers(traces(app)[-1]["z"]), movement(before, after, "decoder").share, rtol=1e-5
    )
    app = opened(show=ROWS, place="decoder.1.self", head="2", **link)
    marks = [numbers(trace["y"]) for trace in traces(app) if trace["mode"] == "markers"]
    for values, trace in zip(marks, (before, after), strict=True):
        np.testing.assert_allclose(values, trace.find("decoder.1.self").weights(2).max(-1))
    app = opened(show=NEXT, **link)
    shown = re.findall(r"\*\*(\d\.(\d{2,4}))\*\* nats, over", said(app))
    ((whole, decimals),) = shown
    assert whole == f"{divergences(before, after)[-1]:.{len(decimals)}f}"


def test_the_row_of_effects_holds_the_numbers_of_both_runs() -> None:
    assert not opened().metric
    model = engine().model("stories", lambda *news: None)
    wanted = Intervention(ablated=frozenset({("decoder.0.self", 1)}))
    runs = model.trace(TEXT), model.trace(TEXT, intervention=wanted)
    app = opened(place="decoder.1.self", ablated="decoder.0.self:1")
    shown = {
        one.label: (one.value.replace("\\", ""), one.delta.replace("\\", "")) for one in app.metric
    }
    for at, run in enumerate(
        reversed(runs)
    ):  # the changed run is the number, the unchanged one below
        row = probabilities(run.logits[-1])
        (likeliest,) = model.tokenizer.named([int(row.argmax())])
        written = shown["Next token"][at].removeprefix("was ")
        assert written == f"{token_label(likeliest.text)} {row.max():.2f}"
        attention = run.find("decoder.1.self")
        largest = np.mean([attention.weights(head).max(-1) for head in range(attention.heads)])
        assert float(shown["Top weight, L1"][at].removeprefix("was ")) == pytest.approx(
            largest, abs=6e-4
        )
        loss = float(shown["Loss per token"][at].removeprefix("was "))
        assert loss == pytest.approx(losses(run).mean(), abs=1e-3)
    apart = float(shown["Prediction, KL"][0].removesuffix(" nats"))
    assert apart == pytest.approx(divergences(*runs)[-1], abs=1e-3)
    moved = movement(*runs, "decoder").share[-1].mean()
    assert shown["Last vectors"][0] == f"{moved:.1%} away"


def test_the_colours_of_a_stream_that_nothing_moved_do_not_end_at_millionths() -> None:
    drawn = traces(opened(show=STREAM, text="Tom", mask="none"))[-1]
    assert not numbers(drawn["z"]).any()
    assert (drawn["zmin"], drawn["zmax"]) == (0, 1)
