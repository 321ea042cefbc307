"""For a class: what a teacher chooses, what is refused in a sentence, an answer hidden at first."""

import pytest

from tests.pages.reading import choose, control, said, visit
from viz.questions.exercises.kinds import KINDS, TEN_MINUTES
from viz.views.for_a_class.reach import is_only_here


def test_an_exercise_hides_its_answer_and_every_sheet_has_another() -> None:
    app = visit("for_a_class", show="Exercises")
    tasks = set()
    for sheet in (1, 2, 30):
        choose(app, "Sheet", sheet)
        assert "Exponentials" not in said(app)
        tasks.add(said(app) + "".join(part.body for part in app.get("html")))
    assert len(tasks) == 3
    app.session_state["class-answer-30-2"] = True
    app.run()
    assert "Exponentials" in said(app)
    assert "With all digits" in said(app)


def test_a_sheet_takes_ten_minutes_at_first_and_the_rest_is_spare() -> None:
    app = visit("for_a_class", show="Exercises")
    assert tuple(control(app, "Exercise").options) == TEN_MINUTES
    assert f"These {len(TEN_MINUTES)} take" in said(app)
    assert len(app.pills(key="class-kinds").options) == len(KINDS)


def test_an_address_of_this_computer_alone_is_told_from_one_that_a_class_reaches() -> None:
    for address, only_here in (
        ("http://127.0.0.1:8501/for_a_class", True),
        ("http://localhost:8501/", True),
        ("http://[::1]:8501/", True),
        ("http://192.168.1.20:8501/for_a_class", False),
        ("https://class.example.org/", False),
    ):
        assert is_only_here(address) == only_here


def test_fewer_pupils_leave_the_chosen_sheet_within_the_class() -> None:
    app = visit("for_a_class", show="Exercises")
    choose(app, "Sheet", 30)
    choose(app, "Pupils", 3)
    assert control(app, "Sheet").value <= 3


def test_a_sentence_too_short_is_refused_in_a_sentence_and_stays(subtests: pytest.Subtests) -> None:
    for text in ["a", "the cat"]:
        with subtests.test(text=text):
            app = visit("for_a_class", show="Exercises", text=text)
            assert ["Type a longer sentence" in info.value for info in app.info] == [True]
            assert control(app, "Your sentence").value == text


def test_no_kind_of_exercise_is_refused_in_a_sentence() -> None:
    app = visit("for_a_class", show="Exercises")
    choose(app, "Exercises on each sheet", [])
    assert len(app.info) == 1


def test_an_encoder_has_no_exercises_on_predictions() -> None:
    app = visit("for_a_class", show="Exercises", model="house-gpt")
    choose(app, "Exercises on each sheet", [*TEN_MINUTES, "Loss of a token"])
    choose(app, "Exercise", "Loss of a token")
    app.query_params["model"] = "minilm"  # a link that is opened in the same session
    app.run()
    assert not app.exception
    assert not app.error
    assert len(app.pills(key="class-kinds").options) == 12
    assert "Loss of a token" not in control(app, "Exercise").options
