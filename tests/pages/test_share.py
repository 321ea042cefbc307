"""A lecturer shows a class one view after another; a pupil who opens the link follows."""

from streamlit.testing.v1 import AppTest

from tests.pages.reading import press, said, visit
from viz.state.class_views import ENDED, JOIN, LEAD, class_views
from viz.state.navigation import entry

SHARE, BEGIN = {"show": "Share"}, "Begin a class"
CHANGED = {
    "text": "the old man sat by the fire",
    "head": "2",
    "mask": "none",
    "query": "3",
    "key": "2",
}


def code_of(lecturer: AppTest) -> str:
    (link,) = [one.value for one in lecturer.code]
    return link.rpartition(f"{JOIN}=")[2]


def begun() -> AppTest:
    lecturer = visit("for_a_class", **SHARE, **CHANGED)
    assert "Your class sees" not in said(lecturer)  # nobody sees the line before
    press(lecturer, BEGIN)
    assert f"class sees: {entry('pages/home.py').title}" in said(lecturer)
    return lecturer


def test_the_class_sees_the_lecturers_model_sentence_head_cell_and_changes() -> None:
    shown = class_views.look(code_of(begun()))
    assert shown.page == "pages/home.py"
    assert shown.parameters == CHANGED
    pupil = visit("home", **shown.parameters, **{JOIN: "unknown.0"})
    assert ENDED in said(pupil)
    assert pupil.session_state["view"].text == CHANGED["text"]


def test_a_pupil_is_offered_what_the_lecturer_shows_next_and_may_leave() -> None:
    lecturer = begun()
    code = code_of(lecturer)
    pupil = visit("home", **class_views.look(code).parameters, **{JOIN: f"{code}.0"})
    assert "are following your" in said(pupil)
    lecturer.query_params["tour"] = "scaling.left"  # the lecturer's own
    press(lecturer, "Show this page")
    pupil.run()
    assert "lecturer has moved" in said(pupil)
    assert pupil.session_state["view"].text == CHANGED["text"]  # nothing moves by itself
    shown = class_views.look(code)
    assert (shown.page, shown.number) == ("pages/for_a_class.py", 1)
    assert shown.parameters == CHANGED | SHARE
    press(pupil, "Leave the class")
    assert "follow" not in said(pupil)
    pupil.query_params[JOIN] = f"{code}.0"  # a request that left the browser before
    pupil.run()
    assert "follow" not in said(pupil)


def test_when_the_lecturer_ends_the_class_its_link_opens_nothing() -> None:
    lecturer = begun()
    code = code_of(lecturer)
    pupil = visit("home", **{JOIN: f"{code}.0"})
    press(lecturer, "End the class")
    assert "Your class sees" not in said(lecturer)
    assert [one.label for one in lecturer.button].count(BEGIN) == 1
    pupil.run()
    assert "The class has" in said(pupil)
    assert ENDED in said(visit("home", **{JOIN: code}))


def test_no_link_of_a_class_breaks_a_page() -> None:
    code = code_of(begun())
    for link in (
        "",
        ".",
        "\u00b2.\u00b2",
        f"{code}.\u00b2",
        f"{code}.-1",
        f"{code}.{'9' * 5000}",
        f"{code}.x",
    ):
        assert visit("home", **{JOIN: link}).title[0].value == "The attention visualizer"


def test_whoever_has_the_key_of_a_class_leads_it_and_nobody_else() -> None:
    code, key = class_views.begin("pages/home.py", {})
    lecturer = visit("for_a_class", **SHARE, **{LEAD: f"{code}.{key}"})
    assert code_of(lecturer) == code
    assert LEAD not in lecturer.query_params
    press(lecturer, "Show this page")
    assert class_views.shown(code).number == 1
    for wrong in (f"{code}.x", code, "", "."):
        other = visit("for_a_class", **SHARE, **{LEAD: wrong})
        assert ENDED in said(other)
        assert not other.code
