"""Each step of the tour is not done when it opens, and done once its reader has acted."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from model import Intervention, Model, Trace, load_model
from viz.menu import PAGES
from viz.questions.question import Scene
from viz.tour.progress import Progress, read
from viz.tour.steps import MODEL, NAMES, STEPS, TEXT, UNFINISHED, Moment, Step, opened, unfit
from viz.view import View, from_link, to_link

ACTS = {  # what the reader does, as fields of the view
    "tokens": {"text": TEXT},
    "positions": {"show": "Added to the tokens"},
    "scores": {"stage": "scores", "key": 1},
    "scaling": {"change": Intervention(scale=1.0)},
    "mask": {"change": Intervention(mask="none")},
    "weights": {"stage": "output", "key": 1},
    "heads": {"head": 5},
    "feed-forward": {"show": "Contributions"},
    "prediction": {"show": "Token by token"},
    "laboratory": {"change": Intervention(positions=False)},
}
NOT_ENOUGH = {  # what is near, and not it
    "positions": {"show": "The table"},
    "scores": {"stage": "scores"},
    "scaling": {"change": Intervention(mask="none")},
    "weights": {"stage": "output", "key": 0},
    "prediction": {"show": "Layer by layer"},
    "laboratory": {"change": Intervention(scale=1.0)},
}


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def traced(view: View) -> Trace:
    return loaded(view.model).trace(view.text, intervention=view.change)


def walked(step: Step) -> View:
    """The view a step opens on for a reader who did all that comes before."""
    view = View()
    for before in STEPS[: STEPS.index(step)]:
        view = replace(opened(before, view), **ACTS[before.name])
    return opened(step, view)


def is_done(step: Step, before: View, **act: object) -> bool:
    view = replace(before, **act)
    return step.done(Moment(view, before, traced(view)))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_open_at_first_and_done_by_its_act_alone(step: Step) -> None:
    before = walked(step)
    assert before.text == (UNFINISHED if step is STEPS[0] else TEXT)
    assert unfit(step, traced(before), before) is None
    assert not is_done(step, before)
    assert not is_done(step, before, **NOT_ENOUGH.get(step.name, {}))
    assert is_done(step, before, **ACTS[step.name])


@pytest.mark.parametrize(
    "step", [step for step in STEPS if step.question], ids=lambda step: step.name
)
def test_a_question_of_the_tour_has_a_clear_answer_on_its_sentence(step: Step) -> None:
    view = walked(step)
    run = cache(lambda change: traced(replace(view, change=change)))
    ground = Scene(run, loaded(view.model).tokenizer.named, view.place, view.head)
    assert step.question is not None
    assert step.question(ground, 0) is not None


def test_the_tour_goes_the_way_of_a_sentence_over_pages_that_there_are() -> None:
    files = [page.file for page in PAGES]
    assert all(step.page in files for step in STEPS)
    assert 8 <= len(STEPS) <= 10
    assert len(set(NAMES)) == len(NAMES)
    for step, following in pairwise(STEPS):
        assert step.page == following.page or step.page not in {
            later.page for later in STEPS[STEPS.index(following) :]
        }


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_keeps_the_sentence_and_model_of_the_reader_and_fits_in_the_link(step: Step) -> None:
    own = View(text="the cat sat", model="minilm", place="encoder.2.self", head=3)
    view = opened(step, own)
    assert from_link(to_link(view)) == (view, ())
    if step is not STEPS[0]:
        assert (view.text, view.model, view.place) == (own.text, own.model, own.place)
        assert not is_done(step, view)


def test_a_model_that_cannot_do_a_step_is_told_in_a_sentence_and_no_other() -> None:
    encoder = View(text="the cat sat", model="minilm", place="encoder.0.self")
    refused = [step.name for step in STEPS if unfit(step, traced(encoder), encoder)]
    assert refused == ["mask", "prediction", "laboratory"]
    one = View(text="a", model=MODEL)
    told = [step.name for step in STEPS if unfit(step, traced(one), one)]
    assert told == [name for name in NAMES if name != "tokens"]


@pytest.mark.parametrize("number", range(len(STEPS) + 1))
@pytest.mark.parametrize("under_way", [True, False])
def test_the_link_reopens_the_step_and_says_whether_the_tour_was_left(
    number: int, under_way: bool
) -> None:
    known = Progress(number, under_way=under_way)
    assert read(known.link) == known
    assert read(known.link + "x") is None
