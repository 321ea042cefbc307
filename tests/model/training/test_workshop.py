"""Training on demand: one run at a time, a line, a stop, and nothing left behind."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch

from model.system.fair_queue import FairQueue
from model.system.threads import one_thread
from model.training import trainer
from model.training.checkpoints import Archive
from model.training.induction import short_recipe
from model.training.recipe import Recipe
from model.training.workshop import KEPT, PATIENCE, QUEUE_AT_MOST, Report, Workshop
from tests.cases import cases


def tiny(steps: int = 6, seed: int = 1) -> Recipe:
    recipe = short_recipe(seed, 50)
    config = replace(recipe.config, d_model=8, heads=2)
    return replace(
        recipe, config=config, steps=steps, checkpoints=(0, 2, steps), measure_every=steps
    )


ENDLESS = tiny(steps=100_000)
LONG = 60.0  # seconds: no test waits for so long but where something hangs


@pytest.fixture(autouse=True)
def nobody_seems_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience with a visitor who does not look ends only where a test moves this clock."""
    monkeypatch.setattr("model.system.jobs.monotonic", lambda: 0.0)


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    """A workshop whose runs are over at the end of the test."""
    made = Workshop()
    yield made
    for ticket in range(1, 100):
        made.stop(ticket)
    made.wait(LONG)


def when(workshop: Workshop, ticket: int, holds: Callable[[Report], bool]) -> Report:
    """The report of a run as soon as something holds of it."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        report = workshop.look(ticket)
        if holds(report):
            return report
        time.sleep(0.005)
    raise AssertionError(f"It never came to hold; the run is {report.state}.")


def test_a_run_here_gives_the_weights_and_scores_of_the_trainer(workshop: Workshop) -> None:
    recipe = tiny()
    report = when(workshop, workshop.ask(recipe), lambda report: report.over)
    with one_thread():  # sums of two threads are rounded in another order
        run = trainer.begin(recipe)
        losses = [progress.loss for progress in trainer.train(run)]
    assert (report.state, report.step, report.seconds_left) == ("done", 6, 0)
    assert report.losses == ((6, pytest.approx(sum(losses) / 6)),)
    assert report.training_run.steps == (0, 2, 6)
    assert [dict(record) for record in report.training_run.history] == run.history
    for name, weight in report.training_run.model(6).module.state_dict().items():
        assert weight.equal(run.checkpoints[6][name].float())
    traces = Archive().traces(report.training_run, "a b a b")
    assert traces.weights("decoder.1.self", 0).shape == (3, 4, 4)


def test_one_trains_at_a_time_and_the_others_know_their_place(workshop: Workshop) -> None:
    first, second, third = (workshop.ask(recipe) for recipe in (ENDLESS, ENDLESS, tiny()))
    report = when(workshop, first, lambda report: report.step > 2)
    assert report.state == "training"
    assert report.seconds_left > 0
    assert [workshop.look(ticket).place for ticket in (first, second, third)] == [0, 1, 2]
    workshop.stop(second)
    assert workshop.look(third).place == 1
    workshop.stop(first)
    assert when(workshop, third, lambda report: report.over).state == "done"


def test_a_stopped_run_keeps_what_it_reached_and_does_no_further_step(workshop: Workshop) -> None:
    ticket = workshop.ask(ENDLESS)
    when(workshop, ticket, lambda report: report.step > 3)
    workshop.stop(ticket)
    workshop.wait(LONG)
    report = workshop.look(ticket)
    assert report.state == "stopped"
    assert report.training_run.steps == (0, 2)
    assert report.step < ENDLESS.steps


def test_a_run_ends_when_its_visitor_is_gone_and_the_next_one_begins(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("model.system.jobs.monotonic", lambda: now[0])
    gone = workshop.ask(ENDLESS)
    when(workshop, gone, lambda report: report.step > 2)
    waiting_and_gone = workshop.ask(ENDLESS)
    now[0] = PATIENCE - 1
    stays = workshop.ask(tiny())
    now[0] = PATIENCE + 1
    assert when(workshop, stays, lambda report: report.over).state == "done"
    assert workshop.look(gone).state == "gone"
    assert workshop.look(waiting_and_gone).state == "gone"
    assert workshop.look(waiting_and_gone).step == 0


def test_each_step_takes_its_turn_so_that_others_come_in_between() -> None:
    """The steps before each turn: none is done between two of them, and a visitor's pass may be."""
    before: list[tuple[Hashable, int]] = []

    @contextmanager
    def turn(visitor: Hashable) -> Iterator[None]:
        before.append((visitor, workshop.look(1).step))
        yield

    workshop = Workshop(turn=turn)
    ticket = workshop.ask(tiny(), "Anna")
    assert when(workshop, ticket, lambda report: report.over).state == "done"
    workshop.wait(LONG)
    assert before == [("Anna", step) for step in range(7)]


def test_the_queue_and_what_is_kept_are_bounded(workshop: Workshop) -> None:
    first = workshop.ask(ENDLESS)
    when(workshop, first, lambda report: report.state == "training")
    waiting = [workshop.ask(tiny()) for _ in range(QUEUE_AT_MOST)]
    with pytest.raises(ValueError, match="Too many"):
        workshop.ask(tiny())
    for ticket in (*waiting, first):
        workshop.stop(ticket)
    workshop.wait(LONG)
    last = workshop.ask(tiny(steps=2))
    kept = [ticket for ticket in (first, *waiting, last) if workshop.look(ticket) is not None]
    assert len(kept) <= KEPT
    assert last in kept
    assert workshop.look(12345) is None


def test_after_an_error_the_next_run_begins(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = workshop.ask(replace(tiny(), config=None))
    workshop.wait(LONG)
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert workshop.look(ticket).state == "stopped"
    assert when(workshop, workshop.ask(tiny()), lambda report: report.over).state == "done"


def test_the_number_of_threads_is_given_back_and_nothing_is_written(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    when(workshop, workshop.ask(tiny()), lambda report: report.over)
    workshop.wait(LONG)
    assert torch.get_num_threads() == before
    assert list(tmp_path.iterdir()) == []


def test_gates_that_a_short_run_misses_are_said(workshop: Workshop) -> None:
    report = when(workshop, workshop.ask(tiny()), lambda report: report.over)
    assert any(sentence.startswith("induction is 0.") for sentence in report.missed)


@cases("seed, steps", [(-1, 100), (0, 49), (0, 1001)])
def test_a_recipe_out_of_bounds_is_refused(seed, steps) -> None:
    with pytest.raises(ValueError, match=r"must be|requested"):
        short_recipe(seed, steps)


def test_a_short_recipe_is_the_shipped_one_with_more_checkpoints() -> None:
    recipe = short_recipe(3, 400)
    assert (recipe.seed, recipe.steps) == (3, 400)
    assert recipe.checkpoints == (0, 50, 100, 150, 200, 250, 300, 350, 400)
    assert short_recipe(1, 1000).config == recipe.config


PUPILS = 30


@pytest.mark.slow
def test_thirty_pupils_are_each_told_when_and_each_one_is_trained(workshop: Workshop) -> None:
    first = workshop.ask(ENDLESS, "first")
    when(workshop, first, lambda report: report.step > 3)
    pupils = [workshop.ask(tiny(), f"pupil {number}") for number in range(PUPILS)]
    reports = [workshop.look(ticket) for ticket in pupils]
    assert [report.place for report in reports] == list(range(1, PUPILS + 1))
    waits = [report.wait for report in reports]
    assert all(wait is not None and wait > 0 for wait in waits)
    workshop.stop(pupils[3])  # who leaves lets the others move up
    assert workshop.look(pupils[4]).place == 4
    workshop.stop(first)
    reports = [when(workshop, ticket, lambda report: report.over) for ticket in pupils]
    assert [report.state for report in reports].count("done") == PUPILS - 1
    assert [report.step for report in reports].count(6) == PUPILS - 1
    assert all(report.wait is None for report in reports)


def test_the_wait_is_the_steps_that_stand_before_at_the_pace_of_the_latest_run() -> None:
    begun, go = threading.Event(), threading.Event()
    now = [0.0]

    @contextmanager
    def turn(visitor: Hashable) -> Iterator[None]:
        if visitor == "first" and (report := workshop.look(1)) and report.step == 2:
            begun.set()
            assert go.wait(LONG)
        now[0] += 0.5
        yield

    workshop = Workshop(turn=turn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.training.workshop.monotonic", lambda: now[0])
        first, second, third = (
            workshop.ask(tiny(steps), name)
            for steps, name in ((8, "first"), (6, "second"), (4, "third"))
        )
        assert begun.wait(LONG)
        # Two steps took 0.5 seconds each: six are left of the first run, six of the second.
        assert workshop.look(second).wait == 3.0
        assert workshop.look(third).wait == 6.0
        go.set()
        for ticket in (first, second, third):
            assert when(workshop, ticket, lambda report: report.over).state == "done"


def test_a_place_is_kept_for_who_reads_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    now, present = [0.0], {"reads on"}
    monkeypatch.setattr("model.system.jobs.monotonic", lambda: now[0])
    workshop = Workshop(present=lambda visitor: visitor in present)
    first = workshop.ask(ENDLESS, "first")
    when(workshop, first, lambda report: report.step > 2)
    kept, gone = workshop.ask(tiny(), "reads on"), workshop.ask(ENDLESS, "has left")
    now[0] = 3 * PATIENCE  # nobody has looked at the queue for so long; the first run ends
    workshop.wait(LONG)
    assert workshop.look(kept).state == "done"
    assert workshop.look(gone).state == "gone"


def test_thirty_who_wait_do_not_delay_a_sentences_pass() -> None:
    """A pass that is asked for while a class trains waits for the step that runs, not for the queue."""
    passes, steps = FairQueue(1), count()
    asked, ran_at = threading.Event(), []

    @contextmanager
    def turn(visitor: Hashable) -> Iterator[None]:
        with passes.place(lambda place: None, visitor=visitor, however_long=True):
            if next(steps) == 5:
                asked.set()
                until = time.monotonic() + LONG
                while not passes.waiting and time.monotonic() < until:
                    time.sleep(0.001)  # the pass joins while this step runs
            yield

    workshop = Workshop(turn=turn)
    tickets = [workshop.ask(ENDLESS, f"pupil {number}") for number in range(PUPILS)]
    assert asked.wait(LONG)
    with passes.place(lambda place: None, visitor="reader"):
        ran_at.append(next(steps))
    for ticket in tickets:
        workshop.stop(ticket)
    workshop.wait(LONG)
    assert ran_at == [6]  # the very next turn after the step that ran
