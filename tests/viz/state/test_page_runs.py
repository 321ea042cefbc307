"""Runs of pages take turns: whose last turn is longest ago is next, and a long run is not waited for."""

import threading
import time
from collections.abc import Callable

import pytest

from model.system.fair_queue import waited_for
from viz.state.page_runs import LATER, SLICE, PageRuns

NEVER = 3600.0


class Waiting:
    """A visitor in a thread of its own, who notes that its turn came."""

    def __init__(self, runs: PageRuns, name: str, order: list[str], go_on: threading.Event) -> None:
        self.come, self.order, self.go_on = threading.Event(), order, go_on
        self.thread = threading.Thread(target=self.run, args=(runs, name), daemon=True)
        self.thread.start()

    def run(self, runs: PageRuns, name: str) -> None:
        with runs.turn(name):
            self.order.append(name)
            self.come.set()
            self.go_on.wait()


def until_waiting(runs: PageRuns, count: int) -> None:
    while runs._line.waiting < count:
        threading.Event().wait(0.001)


def order_of(runs: PageRuns, *names: str) -> list[str]:
    """The order of the turns of visitors who ask one after another while `busy` has one."""
    order, go_on, asking = list[str](), threading.Event(), list[Waiting]()
    with runs.turn("busy"):
        for count, name in enumerate(names, 1):
            asking.append(Waiting(runs, name, order, go_on))
            until_waiting(runs, count)
        go_on.set()
    for one in asking:
        one.thread.join()
    return order


def test_who_had_a_turn_lets_others_go_first():
    runs = PageRuns(NEVER)
    with runs.turn("other"):
        pass
    assert order_of(runs, "busy", "other") == ["other", "busy"]


def test_one_page_is_drawn_at_a_time():
    runs, order, go_on = PageRuns(NEVER), list[str](), threading.Event()
    first = Waiting(runs, "first", order, go_on)
    first.come.wait()
    second = Waiting(runs, "second", order, go_on)
    until_waiting(runs, 1)
    assert order == ["first"]
    go_on.set()
    second.thread.join()
    assert order == ["first", "second"]


def test_a_long_run_is_not_waited_for():
    runs, order, go_on = PageRuns(0.01), list[str](), threading.Event()
    first = Waiting(runs, "loads a model", order, go_on)
    first.come.wait()
    with runs.turn("second"):
        assert first.thread.is_alive()
    go_on.set()
    first.thread.join()
    assert runs._line._free == 1  # given back once, by the clock


def test_a_page_that_breaks_gives_its_turn_back():
    runs = PageRuns(NEVER)
    with pytest.raises(ZeroDivisionError), runs.turn("one"):
        _ = 1 / 0
    with runs.turn("another"):
        pass


def test_work_in_the_background_lets_pages_pass():
    runs, order, go_on = PageRuns(NEVER), list[str](), threading.Event()
    page = Waiting(runs, "page", order, go_on)
    page.come.wait()

    def work() -> None:
        runs.let_pass()
        order.append("background")

    background = threading.Thread(target=work)
    background.start()
    background.join(0.05)
    assert background.is_alive()
    go_on.set()
    background.join()
    assert order == ["page", "background"]


def test_newcomers_come_after_those_who_are_there():
    runs = PageRuns(NEVER)
    with runs.turn("pupil"):
        pass
    for number in range(LATER):  # the pupil's turn is long ago
        with runs.turn(str(number)):
            pass
    assert order_of(runs, "newcomer", "pupil") == ["pupil", "newcomer"]


def compute() -> None:
    """Uses this thread's core for more than a slice."""
    until = time.thread_time() + 2 * SLICE
    while time.thread_time() < until:
        pass


def while_it_is_drawn(
    runs: PageRuns, visitor: str, other: str, between: Callable[[], None]
) -> list[str]:
    """Who had had a turn when the page of `visitor` goes on after an element, while another one waits."""
    order, go_on = list[str](), threading.Event()
    go_on.set()
    with runs.turn(visitor):
        waiting = Waiting(runs, other, order, go_on)
        until_waiting(runs, 1)
        between()
        runs.let_others_go_first()
        seen = list(order)
    waiting.thread.join()
    return seen


def have_drawn(runs: PageRuns, *visitors: str) -> None:
    for visitor in visitors:
        with runs.turn(visitor):
            pass


def test_a_page_that_takes_long_lets_another_go_first_between_two_elements():
    runs = PageRuns(NEVER)
    have_drawn(runs, "one", "other")
    assert while_it_is_drawn(runs, "one", "other", compute) == ["other"]


def test_a_page_that_has_just_begun_goes_on():
    runs = PageRuns(NEVER)
    have_drawn(runs, "one", "other")
    assert while_it_is_drawn(runs, "one", "other", lambda: None) == []


def test_a_page_does_not_stop_for_a_newcomer():
    runs = PageRuns(NEVER)
    have_drawn(runs, "one")
    assert while_it_is_drawn(runs, "one", "newcomer", compute) == []


def test_a_newcomer_stops_for_those_who_are_there():
    runs = PageRuns(NEVER)
    have_drawn(runs, "other")
    assert while_it_is_drawn(runs, "newcomer", "other", compute) == ["other"]


def test_who_has_used_much_stops_for_those_who_have_not(monkeypatch: pytest.MonkeyPatch):
    runs = PageRuns(NEVER)
    have_drawn(runs, "one", "other")
    monkeypatch.setattr(runs._shares, "used_much", lambda visitor: visitor == "other")
    assert while_it_is_drawn(runs, "one", "other", compute) == []
    monkeypatch.setattr(runs._shares, "used_much", lambda visitor: visitor == "one")
    assert while_it_is_drawn(runs, "one", "other", compute) == ["other"]


def test_a_page_for_which_others_wait_goes_on():
    runs = PageRuns(NEVER)
    have_drawn(runs, "one", "other")
    with waited_for():
        assert while_it_is_drawn(runs, "one", "other", compute) == []


def test_a_page_whose_turn_is_over_goes_on_in_its_next_one():
    runs = PageRuns(0.01)
    with runs.turn("one"):
        while runs._line._free == 0:
            time.sleep(0.001)
        runs.let_others_go_first()
        runs._thread.turn._clock.cancel()
        assert (runs._line._free, runs._wanted) == (0, 1)
    assert (runs._line._free, runs._wanted) == (1, 0)
