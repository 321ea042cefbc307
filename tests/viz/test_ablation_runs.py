"""Runs of all heads: one for each request, kept going by those who look at it."""

import threading
from collections.abc import Iterator

import pytest

from model.ablation_map import Ablations
from model.engine import Request
from viz.all_heads import runs as ablation_runs
from viz.all_heads.runs import Run, Runs

REQUEST = Request("stories", "the cat")


def part(done: int) -> Ablations:
    heads = tuple(("decoder.0.self", head) for head in range(done))
    return Ablations(heads, 3, (), {}, {})


class Steps:
    """Work that goes on by one head whenever the test says so."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.begun = 0

    def __call__(self, run: Run) -> Iterator[Ablations]:
        self.begun += 1
        for done in (1, 2, 3):
            assert self.go.acquire(timeout=20)
            yield part(done)


def test_two_visitors_share_one_run_and_its_result_is_kept() -> None:
    runs, steps = Runs(), Steps()
    one, other = runs.started(REQUEST, steps), runs.started(REQUEST, steps)
    assert one is other
    steps.go.release(3)
    assert one.ended.wait(20)
    assert one.complete
    assert runs.started(REQUEST, steps) is one
    assert steps.begun == 1


def test_a_run_that_nobody_looks_at_ends_with_what_it_found_and_may_start_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, steps = Runs(), Steps()
    run = runs.started(REQUEST, steps)
    monkeypatch.setattr(ablation_runs, "PATIENCE", -1.0)
    steps.go.release(1)
    assert run.ended.wait(20)
    assert not run.complete
    assert run.found is not None
    assert len(run.found.heads) == 1
    monkeypatch.undo()
    again = runs.started(REQUEST, steps)
    assert again is not run
    steps.go.release(3)
    assert again.ended.wait(20)
    assert again.complete


def test_another_request_has_a_run_of_its_own() -> None:
    runs, steps = Runs(), Steps()
    steps.go.release(6)
    one, other = runs.started(REQUEST, steps), runs.started(Request("stories", "a dog"), steps)
    assert one is not other
    assert one.ended.wait(20)
    assert other.ended.wait(20)


def test_a_mistake_ends_the_run_and_is_known() -> None:
    def work(run: Run) -> Iterator[Ablations]:
        raise RuntimeError("planted")

    run = Runs().started(REQUEST, work)
    assert run.ended.wait(20)
    assert run.failed
