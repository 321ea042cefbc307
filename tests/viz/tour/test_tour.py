"""Each step of the tour is not done when it opens, and done once its reader has acted."""

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

from streamlit.testing.v1 import AppTest

from model import Intervention, Model, Trace, load_model, models
from tests.cases import cases
from viz.questions.question import Scene
from viz.state.link import View, from_link, to_link
from viz.state.navigation import PAGES
from viz.tour.progress import TourState, read
from viz.tour.steps import (
    MODEL,
    NAMES,
    TEXT,
    TOUR_STEPS,
    UNFINISHED,
    Moment,
    TourStep,
    opened,
    unfit,
)

ACTS: dict[str, dict[str, object]] = {  # what the reader does, as fields of the view
    "tokens": {"text": TEXT},
    "scores": {"stage": "scores", "key": 1},  # the largest score of row 12: 42.5
    "scaling": {"intervention": Intervention(scale=1.0)},
    "mask": {"intervention": Intervention(mask="none")},
    "weights": {"stage": "output", "query": 12, "key": 1},
    "heads": {"place": "decoder.1.self", "head": 0},
    "head": {"intervention": Intervention(ablated=frozenset({("decoder.0.self", 1)}))},
    "stream": {},  # it asks, and that is all
}
UNSCALED, UNMASKED = Intervention(scale=1.0), Intervention(mask="none")
COPYING = "L1H0, L1H1, L1H4, L1H7 and L1H6"
# What lies beside it, and what is said of that: the words and numbers that no other turn is told.
TURNS: tuple[tuple[str, dict[str, object], tuple[str, ...]], ...] = (
    ("tokens", {"text": UNFINISHED + "Tom"}, ("space is missing", "“Tom”")),
    ("tokens", {"text": UNFINISHED + " tom"}, ("typed “tom”", "“Tom”")),
    ("tokens", {"text": "the cat"}, ("different sentence", TEXT)),
    ("tokens", {"text": TEXT, "model": "minilm", "place": "encoder.0.self"},
     (models["minilm"].title, models[MODEL].title)),
    ("scores", {"stage": "scores"}, ("scores are open", "“·Tom” (12)", "largest")),
    ("scores", {"stage": "scores", "key": 0},
     ("“·Tom” (12)", "“Tom” (0) has a score of 30.1", "larger")),
    ("scores", {"stage": "scores", "query": 3, "key": 5}, ("“·a” (3)", "“·ball” (5) comes after", "masked")),
    ("scores", {"stage": "scores", "query": 0, "key": 0}, ("“Tom” (0)", "only one score", "another row")),
    ("scores", {"query": 3}, ("“weights” is open", "“scores”")),
    ("scores", {"stage": "query", "key": 1}, ("“Q” is open", "“scores”")),
    ("scores", {"stage": "scores", "key": 1, "intervention": UNMASKED},
     ("changed: no mask", "the unchanged model")),
    ("scaling", {"intervention": UNMASKED}, ("something else: no mask", "√d”")),
    ("scaling", {"intervention": Intervention(scale=0.5)}, ("something else: scores × 0.5", "√d”")),
    ("scaling", {"intervention": Intervention(scale=1.0, mask="none", positions=False)},
     ("That is right", "no mask and positions off")),
    ("mask", {"intervention": UNSCALED}, ("something else: scores not scaled", "“Hide the future”")),
    ("weights", {"query": 12, "key": 1}, ("“scaled” is open", "“weights”")),
    ("weights", {"stage": "weights"}, ("row of “·ball” (5)", "last row")),
    ("weights", {"stage": "weights", "query": 12, "key": 0},
     ("“·Tom” (12)", "“Tom” (0) has 0.085", "largest weight")),
    ("weights", {"stage": "weights", "query": 12, "key": 1},
     ("Right:", "“·Tom” (12)", "“·Hill” (1) has the most, 0.879", "“output”")),
    ("weights", {"stage": "output", "query": 12, "key": 12},
     ("“·Tom” (12) has 0.000", "Go back", "largest weight")),
    ("weights", {"stage": "output", "query": 12, "key": 1, "intervention": UNSCALED},
     ("changed: scores not scaled", "the unchanged model")),
    ("heads", {"head": 5}, ("L0H5", "0.001", COPYING)),
    ("heads", {"place": "decoder.3.self", "head": 5}, ("L3H5", "0.505", COPYING)),
    ("head", {"intervention": UNSCALED}, ("something else: scores not scaled", "“Use head L0H1”")),
    ("head", {"intervention": Intervention(scale=1.0, ablated=frozenset({("decoder.0.self", 1)}))},
     ("That is right", "scores not scaled")),
)  # fmt: skip


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def traced(view: View) -> Trace:
    return loaded(view.model).trace(view.text, intervention=view.intervention)


def walked(step: TourStep) -> View:
    """The view a step opens on for a reader who did all that comes before."""
    view = View()
    for before in TOUR_STEPS[: TOUR_STEPS.index(step)]:
        view = replace(opened(before, view), **ACTS[before.name])
    return opened(step, view)


def missing(step: TourStep, before: View, **act: object) -> str | None:
    view = replace(before, **act)
    return step.missing(Moment(view, before, traced(view)))


@cases("step", TOUR_STEPS)
def test_a_step_is_open_at_first_and_done_by_its_act_alone(step) -> None:
    before = walked(step)
    assert before.text == (UNFINISHED if step is TOUR_STEPS[0] else TEXT)
    assert unfit(step, traced(before), before) is None
    assert missing(step, before) == (None if step.name == "stream" else "")
    assert missing(step, before, **ACTS[step.name]) is None


@cases("name, act, said", TURNS)
def test_another_act_is_told_in_a_sentence_that_says_what_is_missing(name, act, said) -> None:
    step = TOUR_STEPS[NAMES.index(name)]
    told = missing(step, walked(step), **act)
    assert told is not None
    assert [words for words in said if words not in told] == [], told


def test_every_step_has_a_wrong_turn_that_is_tried() -> None:
    assert {name for name, _, _ in TURNS} == set(NAMES) - {"stream"}


def test_the_heads_that_count_as_copying_give_most_of_their_weight_to_it_at_every_word() -> None:
    step = TOUR_STEPS[NAMES.index("heads")]
    before = walked(step)
    trace = traced(before)
    # “Tom” at 12 stood at 0 before “Hill”, “ball” at 10 stood at 5 before the full stop.
    copying = {
        (attention.name, head)
        for attention in trace.attention
        for head in range(attention.heads)
        if min(attention.weights(head)[[12, 10], [1, 6]]) > 0.5
    }
    for attention in trace.attention:
        for head in range(attention.heads):
            lacks = missing(step, before, place=attention.name, head=head)
            assert (lacks is None) == ((attention.name, head) in copying)


@cases("step", [step for step in TOUR_STEPS if step.question])
def test_a_question_of_the_tour_has_a_clear_answer_on_its_sentence(step) -> None:
    view = replace(walked(step), **(ACTS[step.name] if step.reads_off else {}))
    run = cache(lambda intervention: traced(replace(view, intervention=intervention)))
    model = loaded(view.model)
    ground = Scene(run, model.tokenizer.named, view.place, view.head, model.unembed)
    assert step.question is not None
    assert step.question(ground, 0) is not None


def test_the_tour_goes_the_way_of_a_sentence_over_pages_that_there_are() -> None:
    files = [page.file for page in PAGES]
    assert all(step.page in files for step in TOUR_STEPS)
    assert len(TOUR_STEPS) <= 8
    assert len(set(NAMES)) == len(NAMES)
    for step, following in pairwise(TOUR_STEPS):
        assert step.page == following.page or step.page not in {
            later.page for later in TOUR_STEPS[TOUR_STEPS.index(following) :]
        }


@cases("step", TOUR_STEPS)
def test_a_step_keeps_the_sentence_and_model_of_the_reader_and_fits_in_the_link(step) -> None:
    own = View(text="the cat sat", model="minilm", place="encoder.2.self", head=3)
    view = opened(step, own)
    assert from_link(to_link(view)) == (view, ())
    if step is not TOUR_STEPS[0]:
        assert (view.text, view.model, view.place) == (own.text, own.model, own.place)
        assert missing(step, view) in ("", None) or unfit(step, traced(view), view)


def test_a_model_that_cannot_do_a_step_is_told_in_a_sentence_and_no_other() -> None:
    encoder = View(text="the cat sat", model="minilm", place="encoder.0.self")
    refused = [step.name for step in TOUR_STEPS if unfit(step, traced(encoder), encoder)]
    assert refused == ["mask", "heads", "head", "stream"]
    one = View(text="a", model=MODEL)
    told = [step.name for step in TOUR_STEPS if unfit(step, traced(one), one)]
    assert told == [name for name in NAMES if name != "tokens"]


def test_every_step_has_something_to_read_off_or_to_predict() -> None:
    """Whoever only clicks what a step names has not done it."""
    reads = {"scores", "weights", "heads"}  # their act depends on the numbers of the picture
    assert {step.name for step in TOUR_STEPS if step.question} | reads == set(NAMES)
    assert all(step.question for step in TOUR_STEPS if step.reads_off)


@cases("number, under_way", product(range(len(TOUR_STEPS) + 1), [True, False]))
def test_the_link_reopens_the_step_and_says_whether_the_tour_was_left(number, under_way) -> None:
    known = TourState(number, under_way=under_way)
    assert read(known.link) == known
    assert read(known.link + "x") is None


def test_a_step_is_compared_with_its_beginning_and_begins_again_in_another_model() -> None:
    def page() -> None:
        from dataclasses import replace

        import streamlit as st

        from viz.state.link import View
        from viz.tour.progress import compared_with

        views = View(), replace(View(), head=1), replace(View(), model="minilm")
        st.session_state["beginnings"] = [compared_with(view) for view in views]

    app = AppTest.from_function(page, default_timeout=120).run()
    assert not app.exception
    other = replace(View(), model="minilm")
    assert app.session_state["beginnings"] == [View(), View(), other]
