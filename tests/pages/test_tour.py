"""The tour's card on the pages: it marks what was done, is left and resumed, and answers from the model."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from viz.tour.steps import STEPS, TEXT

REPOSITORY = Path(__file__).resolve().parents[2]


def opened(file: str, **parameters: str) -> AppTest:
    app = AppTest.from_file(str(REPOSITORY / file), default_timeout=60)
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def said(app: AppTest) -> str:
    boxes = (app.markdown, app.caption, app.success, app.info)
    words = [box.value for kind in boxes for box in kind]
    return " ".join([*words, *(box.label for box in app.expander)])


def buttons(app: AppTest) -> dict[str, object]:
    return {button.label: button for button in app.button}


def test_without_a_tour_there_is_no_card_and_an_invitation() -> None:
    app = opened("pages/home.py")
    assert "step 1 of" not in said(app)
    assert "tour" not in app.query_params
    assert {"Guided tour", "Take the tour: 10 steps, about 10 minutes"} <= set(buttons(app))


def test_an_act_is_marked_and_the_next_step_stands_in_the_link() -> None:
    app = opened("pages/attention.py", tour="scaling", place="decoder.0.self", head="3")
    assert "step 4 of 10: Scaling" in said(app)
    assert "✓" not in said(app)
    app.toggle(key="choose-scaled").set_value(False).run()
    assert "step 4 of 10: Scaling · ✓ done" in said(app)
    buttons(app)["Next: The mask →"].click().run()
    assert "step 5 of 10: The mask" in said(app)
    assert app.query_params["tour"] == "mask"
    assert app.toggle(key="choose-scaled").value  # the next step starts from the unchanged model
    buttons(app)["Back"].click().run()
    assert "step 4 of 10: Scaling · ✓ done" in said(app)


def test_a_tour_that_was_left_is_resumed_at_its_step_by_session_and_by_link() -> None:
    app = opened("pages/attention.py", tour="mask")
    buttons(app)["Leave the tour"].click().run()
    assert "step 5" not in said(app)
    assert app.query_params["tour"] == "mask.left"
    again = opened("pages/attention.py", tour="mask.left")
    for one in (app, again):
        buttons(one)["Tour: step 5 of 10 →"].click().run()
        assert "step 5 of 10: The mask" in said(one)


def test_a_question_is_answered_only_once_the_reader_has_committed() -> None:
    app = opened("pages/prediction.py", tour="prediction", text=TEXT)
    assert "The picture opens when you have answered" in said(app)
    (question,) = [radio for radio in app.radio if "Which token does the model" in radio.label]
    buttons(app)["Show the answer"].click().run()
    assert "Choose an answer first." in said(app)
    wrong = next(place for place, option in enumerate(question.options) if "Hill" not in option)
    question = next(radio for radio in app.radio if "Which token" in radio.label)
    question.set_value(wrong)
    buttons(app)["Show the answer"].click().run()
    assert "The model says: “·Hill”" in said(app).replace("\\", "")
    assert "The picture opens" not in said(app)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_no_model_or_text_breaks_a_step(step: object) -> None:
    for model, text in (("minilm", "a $x$ *b* </script> the the"), ("translate-en-fr", "zzz")):
        app = opened(step.page, tour=step.name, model=model, text=text)
        assert not app.exception
        assert step.title in said(app)
        assert "Leave the tour" in buttons(app)
    if step is not STEPS[0]:
        offers = [label for label in buttons(app) if label == "Open the tour's sentence"]
        assert offers
        buttons(app)[offers[0]].click().run()
        assert next(box for box in app.text_input if box.label == "Your sentence").value == TEXT


def test_the_end_says_what_was_learned_and_where_to_go_on() -> None:
    app = opened("pages/laboratory.py", tour="finish")
    assert all(step.learned in said(app) for step in STEPS)
    buttons(app)["Close"].click().run()
    assert "Where to go on" not in said(app)
    assert "Guided tour" in buttons(app)


def test_an_unknown_step_in_a_link_starts_nothing() -> None:
    app = opened("pages/attention.py", tour="</script>")
    assert not app.exception
    assert "tour" not in app.query_params


def test_a_page_asks_one_question_at_a_time_and_then_another() -> None:
    app = opened("pages/attention.py")
    app.session_state["try-attention"] = True
    app.run()
    first = next(radio.label for radio in app.radio if radio.label.endswith("?"))
    buttons(app)["New question"].click().run()
    second = next(radio.label for radio in app.radio if radio.label.endswith("?"))
    assert first != second
