"""Work in the background: one job for a key, in turn, until it is done, is stopped, or nobody looks at it."""

import threading

import pytest

from model.system.fair_queue import FairQueue, QueueFullError
from model.system.jobs import UNEXPECTED, Job, Jobs

SECONDS = 60  # until a state counts as never reached


class Steps:
    """Work that goes on by one step whenever the test says so, up to three."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)
        self.done = 0

    def __call__(self, job: Job) -> None:
        self.begun.release()
        for _ in range(3):
            assert self.go.acquire(timeout=SECONDS)
            self.done += 1
            job.still_wanted()


def test_two_who_ask_for_the_same_share_one_job_and_its_result_is_kept() -> None:
    jobs, steps = Jobs[str, Job](kept=2), Steps()
    one, other = jobs.start("a", Job(), steps), jobs.start("a", Job(), steps)
    assert one is other
    steps.go.release(3)
    assert one.ended.wait(SECONDS)
    assert one.state == "done"
    assert jobs.start("a", Job(), steps) is one
    assert jobs.start("a", Job(), steps, again=True) is not one
    steps.go.release(3)


def test_a_job_that_is_stopped_ends_at_its_next_step_and_may_begin_anew() -> None:
    jobs, steps = Jobs[str, Job](kept=2), Steps()
    job = jobs.start("a", Job(), steps)
    assert steps.begun.acquire(timeout=SECONDS)
    jobs.stop("a")
    steps.go.release(3)
    assert job.ended.wait(SECONDS)
    assert (job.state, steps.done) == ("stopped", 1)
    again = jobs.start("a", Job(), Steps())
    assert again is not job
    jobs.stop("a")


def test_a_job_that_nobody_looks_at_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("model.system.jobs.monotonic", lambda: now[0])
    monkeypatch.setattr(Job, "patience", 10.0)
    jobs, looked_at, left = Jobs[str, Job](kept=2), Steps(), Steps()
    stays, goes = jobs.start("a", Job(), looked_at), jobs.start("b", Job(), left)
    now[0] = 9.0
    assert jobs.looked_at("a") is stays
    assert jobs.known("b") is goes
    now[0] = 11.0
    looked_at.go.release(3)
    left.go.release(3)
    jobs.wait(SECONDS)
    assert (stays.state, goes.state) == ("done", "gone")


def test_jobs_in_a_line_run_one_after_another_and_the_queue_is_bounded() -> None:
    jobs, steps = Jobs[int, Job](kept=9, line=FairQueue(1, longest=2)), [Steps() for _ in range(3)]
    first = jobs.start(0, Job("a"), steps[0])
    assert steps[0].begun.acquire(timeout=SECONDS)
    second, third = (jobs.start(key, Job("b"), steps[key]) for key in (1, 2))
    with pytest.raises(QueueFullError):
        jobs.start(3, Job("b"), steps[0])
    assert [jobs.place(job) for job in (first, second, third)] == [0, 1, 2]
    jobs.stop(1)
    assert (second.state, jobs.place(third)) == ("stopped", 1)
    steps[0].go.release(3)
    steps[2].go.release(3)
    jobs.wait(SECONDS)
    assert [job.state for job in (first, second, third)] == ["done", "stopped", "done"]
    assert steps[1].done == 0


def test_a_visitor_with_many_jobs_lets_others_go_first() -> None:
    jobs, steps = Jobs[str, Job](kept=9, line=FairQueue(1)), Steps()
    order: list[str] = []

    def noted(job: Job) -> None:
        order.append(str(job.visitor))

    jobs.start("first", Job("many"), steps)
    assert steps.begun.acquire(timeout=SECONDS)
    for key in ("second", "third"):
        jobs.start(key, Job("many"), noted)
    jobs.start("only", Job("one"), noted)
    steps.go.release(3)
    jobs.wait(SECONDS)
    assert order == ["one", "many", "many"]


def test_a_refusal_is_told_and_a_fault_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(job: Job) -> None:
        raise ValueError("No such model.")

    def break_off(job: Job) -> None:
        raise RuntimeError("planted")

    jobs = Jobs[str, Job](kept=2)
    refused, broken = jobs.start("a", Job(), refuse), jobs.start("b", Job(), break_off)
    jobs.wait(SECONDS)
    assert (refused.state, refused.refusal) == ("stopped", "No such model.")
    assert (broken.state, broken.refusal) == ("stopped", UNEXPECTED)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_what_ended_is_kept_up_to_a_bound_and_the_longest_unseen_goes_first() -> None:
    jobs = Jobs[int, Job](kept=2)
    for key in (0, 1, 2):
        jobs.start(key, Job(), lambda job: None)
        jobs.wait(SECONDS)
        jobs.looked_at(0)
    assert [key for key in (0, 1, 2) if jobs.known(key) is not None] == [0, 2]


def test_one_visitors_results_do_not_put_out_those_of_others() -> None:
    jobs = Jobs[int, Job](kept=3)
    for key, visitor in enumerate(["one", *["many"] * 9]):
        jobs.start(key, Job(visitor), lambda job: None)
        jobs.wait(SECONDS)
    assert [key for key in range(10) if jobs.known(key) is not None] == [0, 8, 9]
