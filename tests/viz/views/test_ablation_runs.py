"""Runs of all heads: one for each request, kept going by those who look at it."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from model.analysis.heads import contributions
from model.analysis.heads.contributions import Ablations
from model.run import passes as batches
from model.run.passes import ForwardPass
from model.serving.engine import Engine, Request
from model.system.jobs import UNEXPECTED
from viz.shell import background
from viz.shell.background import Passes, PassesOf
from viz.views.all_heads import ablation

REQUEST = Request("stories", "the cat")


def part(done: int) -> Ablations:
    heads = tuple(("decoder.0.self", head) for head in range(done))
    return Ablations(heads, 3, (), {}, {})


class Steps:
    """Work that goes on by one head whenever the test says so."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.begun = 0

    def __call__(self, run: Passes[Ablations]) -> Iterator[Ablations]:
        self.begun += 1
        for done in (1, 2, 3):
            assert self.go.acquire(timeout=120)
            yield part(done)


def test_two_visitors_share_one_run_and_its_result_is_kept() -> None:
    runs, steps = PassesOf[Request, Ablations](), Steps()
    one, other = runs.started(REQUEST, steps), runs.started(REQUEST, steps)
    assert one is other
    steps.go.release(3)
    assert one.ended.wait(120)
    assert one.complete
    assert runs.started(REQUEST, steps) is one
    assert steps.begun == 1


def test_a_run_that_nobody_looks_at_ends_with_what_it_found_and_may_start_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, steps = PassesOf[Request, Ablations](), Steps()
    run = runs.started(REQUEST, steps)
    wait_for(lambda: steps.begun == 1)
    monkeypatch.setattr(Passes, "patience", -1.0)
    steps.go.release(1)
    assert run.ended.wait(120)
    assert not run.complete
    assert len(run.found.heads) == 1
    monkeypatch.undo()
    again = runs.started(REQUEST, steps)
    assert again is not run
    steps.go.release(3)
    assert again.ended.wait(120)
    assert again.complete


def test_another_request_has_a_run_of_its_own() -> None:
    runs, steps = PassesOf[Request, Ablations](), Steps()
    steps.go.release(6)
    one, other = runs.started(REQUEST, steps), runs.started(Request("stories", "a dog"), steps)
    assert one is not other
    assert one.ended.wait(120)
    assert other.ended.wait(120)


def test_with_eight_runs_under_way_a_sentence_waits_for_one_pass_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(visitor=lambda: "a ninth")
    monkeypatch.setattr(background, "engine", lambda: engine)
    go, passes, real = threading.Semaphore(0), list[object](), contributions.forward

    def held(*asked: Any, **how: Any) -> ForwardPass:
        passes.append(asked)
        assert go.acquire(timeout=60)
        return real(*asked, **how)

    monkeypatch.setattr(contributions, "forward", held)
    monkeypatch.setattr(batches, "MOST_ROWS", 2)
    model = engine.model("stories", lambda sentence, share: None)
    runs, eight = (
        PassesOf[Request, Ablations](),
        [Request("stories", f"{number} cats") for number in range(8)],
    )
    traces = [engine.trace(request, lambda place: None) for request in eight]
    begun = [
        runs.started(request, partial(ablation._work, model, trace), visitor=request)
        for request, trace in zip(eight, traces, strict=True)
    ]
    for done in range(12):  # each has had a turn or two
        wait_for(lambda: engine.holdings.waiting == 7 and len(passes) == done + 1)
        if done < 11:
            go.release()
    asked = threading.Thread(target=engine.trace, args=(REQUEST, lambda place: None))
    asked.start()
    wait_for(lambda: engine.holdings.waiting == 8)
    go.release()  # one pass of theirs, and no more
    asked.join(60)
    assert not asked.is_alive()
    go.release(1_000)
    for run in begun:
        assert run.ended.wait(60)
        assert run.complete


def wait_for(state: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not state():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_run_that_nobody_looks_at_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    monkeypatch.setattr(background, "engine", lambda: engine)
    model = engine.model("stories", lambda sentence, share: None)
    trace = engine.trace(REQUEST, lambda place: None)
    with engine.turn(lambda place: None):
        run = PassesOf[Request, Ablations]().started(REQUEST, partial(ablation._work, model, trace))
        wait_for(lambda: engine.holdings.waiting == 1)
        monkeypatch.setattr(Passes, "patience", -1.0)
        assert run.ended.wait(60)
    assert run.state == "gone"
    assert run.refusal is None
    assert engine.holdings.waiting == 0


def test_a_mistake_ends_the_run_and_is_known() -> None:
    def work(run: Passes[Ablations]) -> Iterator[Ablations]:
        raise RuntimeError("planted")

    run = PassesOf[Request, Ablations]().started(REQUEST, work)
    assert run.ended.wait(120)
    assert run.refusal == UNEXPECTED
