"""The tour's card on the pages: it marks what was done, is left and resumed, and answers from the model."""

import re

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from tests.cases import cases
from tests.pages.reading import control, named, said, visit
from viz.state.navigation import HOME, entry
from viz.tour.card import MINUTES
from viz.tour.steps import TEXT, TOUR_STEPS, UNFINISHED


def titled(number: int) -> str:
    """The heading of a step."""
    return f"{number} of {len(TOUR_STEPS)}: {TOUR_STEPS[number - 1].title}"


def headings(app: AppTest) -> list[str]:
    return [one.value for one in app.subheader]


def buttons(app: AppTest) -> dict[str, object]:
    return {button.label: button for button in app.button}


def test_without_a_tour_there_is_no_card_and_an_invitation() -> None:
    app = visit("pages/home.py")
    assert titled(1) not in headings(app)
    assert "tour" not in app.query_params
    assert {"Guided tour", "Take the tour"} <= set(buttons(app))
    assert f"{len(TOUR_STEPS)} steps, about {MINUTES}" in buttons(app)["Take the tour"].help


def is_option(button: Button) -> bool:
    return re.fullmatch(r"(tour-question|try-.*)-\d+-\d", button.key or "") is not None


def options(app: AppTest) -> list[str]:
    """Of the one question that is open."""
    return [one.label.replace("\\", "") for one in app.button if is_option(one)]


def answer(app: AppTest, option: str) -> None:
    """Commits to it."""
    labels = options(app)
    [one for one in app.button if is_option(one)][labels.index(option)].click().run()


def test_an_act_counts_once_the_question_is_answered_and_the_next_step_stands_in_the_link() -> None:
    app = visit("pages/home.py", tour="scaling", place="decoder.0.self", head="3", scale="1")
    assert titled(3) in headings(app)
    assert "✓ Done" not in said(app)
    answer(app, "It shrinks")
    assert "says: It grows" in said(app)
    assert "✓ Done." in said(app)  # the link had it switched off
    buttons(app)["Next: The mask →"].click().run()
    assert titled(4) in headings(app)
    assert "scores not scaled" in said(app)  # taken back
    assert app.query_params["tour"] == "mask"
    assert "scale" not in app.query_params
    buttons(app)["Back"].click().run()
    assert titled(3) in headings(app)
    assert "✓ Done." in said(app)
    assert named(app.toggle, "hero-scaled").value
    app.query_params["tour"] = "scores"  # by a link, in the same tab
    app.run()
    assert titled(2) in headings(app)
    assert app.session_state["tour"].done == {"scaling"}


@cases("step", TOUR_STEPS)
def test_the_picture_and_its_switches_stand_beside_every_step(step) -> None:
    view = {name: str(value) for name, value in step.opens.items()}
    app = visit(step.page, tour=step.name, **view)
    assert step.title in " ".join(headings(app))
    if step.page != HOME:
        assert control(app, "Show").value
    else:
        assert pictures(app) > 0
        switches = {one.key for one in app.toggle}
        assert {"hero-mask", "hero-scaled", "hero-head"} <= switches


def test_a_wrong_turn_is_told_and_the_step_can_be_started_again() -> None:
    app = visit("pages/home.py", tour="scaling", place="decoder.0.self", head="3")
    answer(app, "It grows")
    named(app.toggle, "hero-mask").set_value(False).run()
    assert "else: no mask. " in said(app)
    buttons(app)["Start this step over"].click().run()
    assert "else: no mask" not in said(app)
    assert named(app.toggle, "hero-mask").value
    named(app.toggle, "hero-scaled").set_value(False).run()
    assert "✓ Done." in said(app)
    named(app.toggle, "hero-scaled").set_value(True).run()
    assert "✓ Done." in said(app)  # it was done; what comes after does not undo it


def test_the_last_change_is_taken_back_when_the_tour_is_left() -> None:
    app = visit("pages/home.py", tour="head", place="decoder.0.self", head="1")
    answer(app, "It shrinks")
    named(app.toggle, "hero-head").set_value(False).run()
    assert "✓ Done." in said(app)
    buttons(app)["Leave"].click().run()
    assert named(app.toggle, "hero-head").value
    assert not app.session_state["view"].intervention.changes


def test_in_another_tab_the_tour_says_where_it_goes_on_and_on_another_page_too() -> None:
    app = visit("pages/library.py", tour="mask")
    assert f"“{entry('pages/home.py').title}”" in said(app)
    assert "Go there" in buttons(app)
    assert "It continues" not in said(visit("pages/library.py", tour="mask.left"))


def test_what_is_read_off_is_asked_once_the_act_is_done() -> None:
    app = visit("pages/home.py", tour="tokens", text=UNFINISHED)
    assert not options(app)
    app.text_area[0].set_value(TEXT).run()
    assert "✓ Done." not in said(app)
    answer(app, "“·Hill”")
    assert "Right: “·Hill”." in said(app)
    assert "✓ Done." in said(app)


def test_a_step_that_only_asks_is_done_when_it_is_answered() -> None:
    app = visit("pages/stream.py", tour="stream")
    assert "✓ Done" not in said(app)
    answer(app, "embedding")
    assert "says: L1 attention" in said(app)
    assert "✓ Done." in said(app)


@cases("page", ["all-heads", "prediction"])
def test_the_picture_is_put_away_while_a_question_of_the_page_is_open(page) -> None:
    app = visit(f"pages/{page.replace('-', '_')}.py")
    told = "The picture opens"
    assert told not in said(app)
    before = pictures(app)
    assert before > 0
    app.session_state[f"try-{page}"] = True
    app.run()
    assert told in said(app)
    assert pictures(app) == 0
    assert not app.get("bidi_component")  # nor the small pictures of the heads
    answer(app, options(app)[0])
    assert "Why:" in said(app)
    assert pictures(app) == before
    buttons(app)["New question"].click().run()
    assert pictures(app) == 0
    app.session_state[f"try-{page}"] = False
    app.run()
    assert pictures(app) == before


def pictures(app: AppTest) -> int:
    """The page's pictures, without those that a question shows."""
    charts = [chart for chart in app.get("plotly_chart") if not chart.proto.id.endswith("-heads")]
    return len(charts) + sum(one.key != "head-picker" for one in app.get("bidi_component"))


def test_a_tour_that_was_left_is_resumed_at_its_step_by_session_and_by_link() -> None:
    app = visit("pages/home.py", tour="mask")
    buttons(app)["Leave"].click().run()
    assert titled(4) not in headings(app)
    assert app.query_params["tour"] == "mask.left"
    again = visit("pages/home.py", tour="mask.left")
    for one in (app, again):
        buttons(one)["Tour: step 4 of 8 →"].click().run()
        assert titled(4) in headings(one)


@cases("step", TOUR_STEPS)
def test_no_model_or_text_breaks_a_step(step) -> None:
    for model, text in (("minilm", "a $x$ *b* </script> the the"), ("translate-en-fr", "zzz")):
        app = visit(step.page, tour=step.name, model=model, text=text)
        assert step.title in " ".join(headings(app))
        assert "Leave" in buttons(app)
    if step is not TOUR_STEPS[0]:
        offers = [label for label in buttons(app) if label == "Open the tour's sentence"]
        assert offers
        buttons(app)[offers[0]].click().run()
        assert next(box for box in app.text_area if box.label == "Your sentence").value == TEXT


def test_the_end_says_what_was_learned_and_where_to_go_on() -> None:
    app = visit("pages/home.py", tour="finish")
    assert all(step.learned in said(app) for step in TOUR_STEPS)
    buttons(app)["Close"].click().run()
    assert "What next?" not in said(app)
    assert "Guided tour" in buttons(app)


def test_an_unknown_step_in_a_link_starts_nothing() -> None:
    app = visit("pages/home.py", tour="</script>")
    assert "tour" not in app.query_params


def test_a_page_asks_one_question_at_a_time_and_then_another() -> None:
    app = visit("pages/prediction.py")
    app.session_state["try-prediction"] = True
    app.run()
    first = options(app)
    buttons(app)["New question"].click().run()
    assert options(app) != first
