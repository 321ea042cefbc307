"""The tour's card on the pages: it marks what was done, is left and resumed, and answers from the model."""

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Radio

from tests.pages import reading
from tests.pages.reading import control, named, visit
from viz.shell.frame import WAYS
from viz.state.navigation import HOME, entry
from viz.tour.card import FIRST, MINUTES
from viz.tour.steps import TEXT, TOUR_STEPS


def said(app: AppTest) -> str:
    return " ".join([reading.said(app), *(box.label.replace("\\", "") for box in app.expander)])


def titled(number: int) -> str:
    return f"step {number} of {len(TOUR_STEPS)}: {TOUR_STEPS[number - 1].title}"


def buttons(app: AppTest) -> dict[str, object]:
    return {button.label: button for button in app.button}


def test_without_a_tour_there_is_no_card_and_an_invitation() -> None:
    app = visit("pages/home.py")
    assert "step 1 of" not in said(app)
    assert "tour" not in app.query_params
    assert {"Guided tour", "Take the tour"} <= set(buttons(app))
    assert f"{len(TOUR_STEPS)} steps, about {MINUTES}" in buttons(app)["Take the tour"].help


def asked(app: AppTest) -> Radio:
    """The options of the one question that is open."""
    (question,) = [radio for radio in app.radio if (radio.key or "").startswith(("tour-", "try-"))]
    return question


def answer(app: AppTest, option: str) -> None:
    """Commits to it."""
    question = asked(app)
    place = [one.replace("\\", "") for one in question.options].index(option)
    question.set_value(place)
    buttons(app)["Show the answer"].click().run()


def test_an_act_counts_once_the_question_is_answered_and_the_next_step_stands_in_the_link() -> None:
    app = visit("pages/home.py", tour="scaling", place="decoder.0.self", head="3", scale="1")
    assert titled(4) in said(app)
    assert FIRST in said(app)
    assert "✓" not in said(app)
    answer(app, "It shrinks")
    assert "says: It grows" in said(app)
    assert "✓ done" in said(app)  # the link had it switched off
    buttons(app)["Next: The mask →"].click().run()
    assert titled(5) in said(app)
    assert "model: scores not" in said(app)
    assert app.query_params["tour"] == "mask"
    assert "scale" not in app.query_params
    buttons(app)["Back"].click().run()
    assert f"{titled(4)} · ✓ done" in said(app)
    assert named(app.toggle, "hero-scaled").value
    app.query_params["tour"] = "scores"  # by a link, in the same tab
    app.run()
    assert titled(3) in said(app)
    assert app.session_state["tour"].done == {"scaling"}


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


def test_the_last_change_is_taken_back_when_the_tour_ends_or_is_left() -> None:
    for way, positions in (("Leave the tour", ""),):
        app = visit("pages/home.py", tour="changes", show="More changes")
        app.session_state["changes-group"] = "Scores"
        app.run()
        answer(app, "No, another token comes first")
        named(app.toggle, "laboratory-positions").set_value(False).run()
        assert "✓ Done." in said(app)
        buttons(app)[way].click().run()
        assert named(app.toggle, "laboratory-positions").value
        assert positions in said(app)
        assert "positions" not in app.query_params


def test_in_another_tab_the_tour_says_where_it_goes_on_and_on_another_page_too() -> None:
    app = visit("pages/library.py", tour="mask")
    assert f"“{entry('pages/home.py').title}”" in said(app)
    assert "Go there" in buttons(app)
    assert "It continues" not in said(visit("pages/library.py", tour="mask.left"))


def test_a_view_that_opened_by_itself_is_no_choice_and_what_is_read_off_is_asked_beside_it() -> (
    None
):
    for page, tour, view, option in (
        ("pages/positions.py", "positions", "Added to the tokens", "The sum alone"),
        ("pages/stream.py", "feed-forward", "Contributions", "L2 feed-forward"),
    ):
        app = visit(page, tour=tour)
        assert "You chose" not in said(app)
        assert not [radio for radio in app.radio if (radio.key or "").startswith("tour-")]
        control(app, "Show").set_value(view).run()
        assert FIRST in said(app)
        assert "✓ Done." not in said(app)
        assert pictures(app) > 0
        answer(app, option)
        assert f"Right: {option}." in said(app)
        assert "✓ Done." in said(app)


def test_a_head_is_chosen_by_its_tile_and_then_answered() -> None:
    app = visit("pages/all_heads.py", tour="heads", place="decoder.0.self", head="0")
    question = asked(app)
    (tiles,) = [chart for chart in app.get("plotly_chart") if "choice-heads" in chart.proto.id]
    assert tiles.proto.selection_mode  # a click counts
    assert question.value is None


def test_no_picture_of_the_page_stands_beside_an_open_question(subtests: pytest.Subtests) -> None:
    steps = [step for step in TOUR_STEPS if step.question and not step.reads_off]
    for step in [step for step in steps if step.page != HOME]:
        with subtests.test(step=step.name):
            view = {name: str(value) for name, value in step.opens.items()}
            app = visit(step.page, tour=step.name, **view)
            assert "answered the tour" in said(app)
            assert not app.get("bidi_component")
            charts = [chart.proto.id for chart in app.get("plotly_chart")]
            assert all("tour-question" in chart for chart in charts)
            assert [one.label for one in app.segmented_control if one.label != WAYS] == []


def test_the_picture_is_put_away_while_a_question_of_the_page_is_open(
    subtests: pytest.Subtests,
) -> None:
    for page in ["all-heads", "prediction"]:
        with subtests.test(page=page):
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
            asked(app).set_value(0)
            buttons(app)["Show the answer"].click().run()
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
    buttons(app)["Leave the tour"].click().run()
    assert "step 5" not in said(app)
    assert app.query_params["tour"] == "mask.left"
    again = visit("pages/home.py", tour="mask.left")
    for one in (app, again):
        buttons(one)["Tour: step 5 of 10 →"].click().run()
        assert titled(5) in said(one)


def test_a_question_is_answered_only_once_the_reader_has_committed() -> None:
    app = visit("pages/prediction.py", tour="prediction", text=TEXT)
    buttons(app)["Show the answer"].click().run()
    assert "Choose an answer" in said(app)
    assert "Why:" not in said(app)
    answer(app, "embedding")
    assert "says: L1 attention" in said(app)
    assert "The picture opens" not in said(app)
    assert "✓" not in said(app)


def test_no_model_or_text_breaks_a_step(subtests: pytest.Subtests) -> None:
    for step in TOUR_STEPS:
        with subtests.test(step=step.name):
            for model, text in (
                ("minilm", "a $x$ *b* </script> the the"),
                ("translate-en-fr", "zzz"),
            ):
                app = visit(step.page, tour=step.name, model=model, text=text)
                assert step.title in said(app)
                assert "Leave the tour" in buttons(app)
            if step is not TOUR_STEPS[0]:
                offers = [label for label in buttons(app) if label == "Open the tour's sentence"]
                assert offers
                buttons(app)[offers[0]].click().run()
                assert (
                    next(box for box in app.text_area if box.label == "Your sentence").value == TEXT
                )


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
    first = asked(app).label
    buttons(app)["New question"].click().run()
    assert asked(app).label != first
