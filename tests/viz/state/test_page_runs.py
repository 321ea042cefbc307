"""Runs of pages take turns: whose last turn is longest ago is next, and a long run is not waited for."""

import threading

import pytest

from model.system.fair_queue import ROUND
from viz.state.quota import PageRuns

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
    for number in range(ROUND):  # the pupil's turn is long ago
        with runs.turn(str(number)):
            pass
    assert order_of(runs, "newcomer", "pupil") == ["pupil", "newcomer"]


def test_who_waits_for_something_gives_up_the_turn():
    runs, waits, go_on = PageRuns(NEVER), threading.Event(), threading.Event()

    def draw() -> None:
        with runs.turn("waits"):
            runs.give_up()
            waits.set()
            go_on.wait()

    page = threading.Thread(target=draw, daemon=True)
    page.start()
    waits.wait()
    with runs.turn("another"):  # never, if the first one kept its turn
        assert page.is_alive()
    go_on.set()
    page.join()
    assert (runs._line._free, runs._wanted) == (1, 0)  # given back once
