"""For a class: what a teacher chooses, what is refused in a sentence, an answer hidden at first."""

from tests.cases import cases
from tests.pages.reading import choose, control, said, visit
from viz.questions.exercises.kinds import KINDS, TEN_MINUTES
from viz.views.for_a_class.reach import reached_from_elsewhere


def test_a_sheet_hides_its_answers_and_every_sheet_has_other_exercises() -> None:
    app = visit("for_a_class", show="Exercises")
    tasks = set()
    for sheet in (0, 1, 29):
        choose(app, "Sheet", sheet)
        assert "Exponentials" not in said(app)
        tasks.add(said(app) + "".join(part.body for part in app.get("html")))
    assert len(tasks) == 3
    choose(app, "Shown", "Answers")
    assert "Exponentials" in said(app)
    assert "With all digits" in said(app)


def test_a_sheet_takes_ten_minutes_at_first_and_the_rest_is_spare() -> None:
    app = visit("for_a_class", show="Exercises")
    titles = [one.value.partition(". ")[2] for one in app.subheader]
    assert tuple(titles) == TEN_MINUTES
    assert len(app.pills(key="class-kinds").options) == len(KINDS)


def test_an_address_that_a_class_opens_is_never_this_computers_own() -> None:
    named = ["localhost", "127.0.0.1", "192.168.1.20", "class.example.org"]
    for opened, names, reached in (
        ("http://127.0.0.1:8501/for_a_class", [], None),
        ("http://localhost:8501/", ["localhost", "127.0.0.1"], None),
        ("http://[::1]:8501/", ["*"], None),
        ("http://127.0.0.1:8501/tokens", named, "http://192.168.1.20:8501/tokens"),
        ("http://0.0.0.0/", named, "http://192.168.1.20/"),
        ("http://192.168.1.20:8501/x", [], "http://192.168.1.20:8501/x"),
        ("https://class.example.org/", named, "https://class.example.org/"),
        ("", named, None),
    ):
        assert reached_from_elsewhere(opened, names) == reached


def test_fewer_pupils_leave_the_chosen_sheet_within_the_class() -> None:
    app = visit("for_a_class", show="Exercises")
    choose(app, "Sheet", 29)
    choose(app, "Pupils", 3)
    assert control(app, "Sheet").value < 3


@cases("text", ["a", "the cat"])
def test_a_sentence_too_short_is_refused_in_a_sentence_and_stays(text) -> None:
    app = visit("for_a_class", show="Exercises", text=text)
    assert ["Type a longer sentence" in info.value for info in app.info] == [True]
    assert control(app, "Your sentence").value == text


def test_no_kind_of_exercise_is_refused_in_a_sentence() -> None:
    app = visit("for_a_class", show="Exercises")
    choose(app, "On each sheet", [])
    assert len(app.info) == 1


def test_an_encoder_has_no_exercises_on_predictions() -> None:
    app = visit("for_a_class", show="Exercises", model="house-gpt")
    choose(app, "On each sheet", [*TEN_MINUTES, "Loss of a token"])
    app.query_params["model"] = "minilm"  # a link that is opened in the same session
    app.run()
    assert not app.exception
    assert not app.error
    assert len(app.pills(key="class-kinds").options) == 12
    assert not [one for one in app.subheader if "Loss of a token" in one.value]
