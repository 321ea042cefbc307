"""A request that left the browser before it heard of the newest link changes nothing; a link that is
opened does."""

import re
from dataclasses import replace

from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from model.nn.intervention import Intervention
from tests.pages.reading import named, press, visit
from viz.tour.steps import TOUR_STEPS


def asked_late(app: AppTest, **link: str) -> AppTest:
    """The page runs once more, asked for with this link."""
    app.query_params.clear()
    for name, value in link.items():
        app.query_params[name] = value
    return app.run()


def scaled(app: AppTest) -> bool:
    return bool(named(app.toggle, "hero-scaled").value)


def test_a_late_request_does_not_take_an_intervention_back() -> None:
    app = visit("pages/home.py", head="3")
    app.toggle(key="hero-scaled").set_value(False).run()
    before = dict(app.query_params)
    app.toggle(key="hero-mask").set_value(False).run()
    newest = dict(app.query_params)
    asked_late(app, **before)
    assert app.toggle(key="hero-mask").value is False
    assert not scaled(app)
    assert app.query_params == newest


def test_an_earlier_link_is_taken_once_the_browser_has_said_the_newest() -> None:
    app = visit("pages/home.py", head="3")
    app.toggle(key="hero-scaled").set_value(False).run()
    app.run()  # with the newest link
    asked_late(app, head="3")
    assert scaled(app)


def test_a_link_that_was_never_written_is_taken_at_once() -> None:
    app = visit("pages/home.py", head="3")
    app.toggle(key="hero-scaled").set_value(False).run()
    asked_late(app, head="2")
    assert scaled(app)
    assert app.query_params["head"] == "2"


def open_step(app: AppTest) -> str:
    """The title of the tour's open step."""
    (heading,) = [one.value for one in app.subheader if " of " in one.value]
    return heading.partition(": ")[2]


def test_a_late_request_does_not_take_the_tour_back() -> None:
    app = visit("pages/home.py", tour="scaling", place="decoder.0.self", head="3")
    press(app, "Skip")
    at = [step.name for step in TOUR_STEPS].index("mask")
    assert app.query_params["tour"] == "mask"
    asked_late(app, tour="scaling")
    assert app.query_params["tour"] == "mask"
    assert open_step(app) == TOUR_STEPS[at].title
    asked_late(app, tour="weights")
    assert open_step(app) == TOUR_STEPS[at + 1].title


MASK = "hero-mask"


def hides(app: AppTest) -> bool:
    return bool(named(app.toggle, MASK).value)


def asked_late_with(app: AppTest, late: WidgetState) -> AppTest:
    """The page runs once more, with an old value of a widget among those of today."""
    states = app._tree.get_widget_states().widgets
    return app._run(WidgetStates(widgets=[*(one for one in states if one.id != late.id), late]))


def test_a_control_that_was_set_anew_does_not_come_back_with_a_click_on_another() -> None:
    app = visit("pages/home.py", head="3")
    lifted = app.toggle(key=MASK).set_value(False)._widget_state
    app.run()
    app.button(key="undo-changes").click().run()
    assert hides(app)
    app.toggle(key="hero-scaled").set_value(False)
    asked_late_with(app, lifted)  # the browser had not yet drawn the model's own mask
    assert hides(app)
    assert not scaled(app)


def test_what_a_run_took_back_before_it_was_cut_off_does_not_come_back_with_the_next_click() -> (
    None
):
    app = visit("pages/home.py", head="3")
    app.toggle(key=MASK).set_value(False).run()
    view = app.session_state["view"]
    app.session_state["view"] = replace(
        view, intervention=Intervention()
    )  # and no page was drawn of it
    app.toggle(key="hero-scaled").set_value(False).run()
    assert hides(app)
    assert not scaled(app)


def test_a_clock_goes_on_from_the_newest_step_though_the_slider_tells_of_an_older() -> None:
    app = visit("encoder_decoder", model="translate-en-fr", text="the black cat sleeps")

    def word() -> str:
        (html,) = [one.proto.body for one in app.get("html") if "<mark" in one.proto.body]
        return re.findall(r"<mark[^>]*><b><u>(.*?)</u>", html)[0]

    (slider,) = [one for one in app.slider if one.label == "Step"]
    at_third = slider.set_value(3)._widget_state
    assert word() == "noir"
    next(one for one in app.button if one.label == "▶ Play").click().run()
    assert word() == "le"
    asked_late_with(app, at_third)  # a request of the clock that makes it play
    assert word() == "chat"


def test_a_control_keeps_its_place_and_focus_while_its_visitor_uses_it() -> None:
    app = visit("pages/home.py", head="3")
    ids = {app.toggle(key=MASK).proto.id}
    for value in (False, True, False):
        app.toggle(key=MASK).set_value(value).run()
        ids.add(app.toggle(key=MASK).proto.id)
    assert len(ids) == 1


def test_a_head_that_was_chosen_in_a_picture_is_not_taken_back_by_its_control() -> None:
    asked = {"model": "translate-en-fr", "text": "the black cat sleeps", "show": "Alignment"}
    app = visit("encoder_decoder", **asked)

    def head() -> int:
        return int(named(app.selectbox, "encoder-cross-head").value[1])

    chosen = named(app.selectbox, "encoder-cross-head").set_value(("decoder.1.cross", 3))
    late = chosen._widget_state
    app.run()
    assert head() == 3
    app.session_state["view"] = replace(app.session_state["view"], head=1)
    app.run()
    assert head() == 1
    asked_late_with(app, late)  # sent before the browser had drawn the picture's choice
    assert head() == 1
