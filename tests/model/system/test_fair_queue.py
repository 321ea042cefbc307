"""Who waits, waits in order and not in vain; what nobody wants any more ends and leaves nothing."""

import itertools
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from model.nn.intervention import UNCHANGED, Intervention
from model.serving.engine import Engine, Event, Passed, Refused, Request
from model.system import deadline
from model.system.deadline import PassTooLongError
from model.system.fair_queue import SHORTER, FairQueue, QueueFullError, Ticket, first_to_go
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.tiny import quiet

REQUEST = Request("stories", "The cat sat on the mat")
TRANSLATION = Request("translate-en-fr", "the red car", target=None)


class Gone(BaseException):
    """What Streamlit raises where a run is to end is no Exception either."""


def test_the_queue_lets_one_in_at_a_time_and_tells_the_place() -> None:
    queue, inside, most, told = FairQueue(1), [], [], []

    def visit() -> None:
        with queue.place(told.append):
            inside.append(1)
            most.append(len(inside))
            while queue.waiting < 4 - len(most):  # until all who are to come stand in the queue
                threading.Event().wait(0.01)
            inside.pop()

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
    assert set(told) == {1, 2, 3}
    assert queue.waiting == 0


class Turns:
    """A line in which the test says when a turn ends, and the order in which visitors had theirs."""

    def __init__(self) -> None:
        self.queue, self.had = FairQueue(1), list[str]()
        self._end = threading.Semaphore(0)
        self._inside: int = 0  # the one whose turn it is
        self._left: list[int] = []  # turns of each one who came, with the one under way
        self._ended = 0
        self._threads: list[threading.Thread] = []

    def come(self, visitor: str, turns: int = 1) -> None:
        """Somebody who asks for one turn after another, and now stands in the queue or is in."""
        number = len(self._left)

        def visit() -> None:
            for _ in range(turns):
                with self.queue.place(quiet, visitor=visitor):
                    self._inside = number
                    self.had.append(visitor)
                    assert self._end.acquire(timeout=60)

        self._left.append(turns)
        self._threads.append(threading.Thread(target=visit))
        self._threads[-1].start()
        self._settle()

    def end(self, count: int = 1) -> None:
        """Ends turns one by one, each when the next has begun and who had one stands there again."""
        for _ in range(count):
            self._left[self._inside] -= 1
            self._ended += 1
            self._end.release()
            self._settle()

    def end_all(self) -> list[str]:
        self._end.release(1_000)
        for thread in self._threads:
            thread.join(60)
        return self.had

    def _settle(self) -> None:
        here, until = sum(left > 0 for left in self._left), time.monotonic() + 60
        while (len(self.had), self.queue.waiting) != (self._ended + (here > 0), max(here - 1, 0)):
            assert time.monotonic() < until
            threading.Event().wait(0.001)


def test_who_comes_to_eight_with_much_to_do_is_next_and_then_they_take_turns() -> None:
    turns, eight = Turns(), list("abcdefgh")
    for visitor in eight:
        turns.come(visitor, turns=20)
    turns.end(19)
    under_way = turns.had[-1]
    turns.come("new")
    turns.end(9)
    assert turns.had[20] == "new"
    later = turns.had[21:]
    assert sorted(later) == eight
    assert later[-1] == under_way
    assert turns.end_all().count("new") == 1


def test_one_with_many_things_waiting_gets_as_much_as_one_with_one() -> None:
    turns = Turns()
    for _ in range(10):
        turns.come("many")
    turns.come("one", turns=5)
    turns.end(9)
    assert turns.had == ["many", "one"] * 5
    turns.end_all()


def test_newcomers_do_not_put_anybody_off_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.system.fair_queue.ROUND", 3)
    turns = Turns()
    turns.come("regular", turns=2)
    for number in range(9):
        turns.come(f"new {number}")
        turns.end()
    assert "regular" in turns.had[1:7]
    turns.end_all()


def test_only_those_who_go_first_count_for_the_bound() -> None:
    queue, leave = FairQueue(1, longest=2), threading.Event()

    def occupy() -> None:
        with queue.place(quiet, visitor="many", however_long=True):
            leave.wait(60)

    threads = [threading.Thread(target=occupy) for _ in range(6)]
    for thread in threads:
        thread.start()
    while queue.waiting < 5:
        threading.Event().wait(0.01)
    with pytest.raises(QueueFullError), queue.place(quiet, visitor="many"):
        pytest.fail("the queue was full for this one")
    told: list[int] = []

    def come(place: int) -> None:
        told.append(place)
        leave.set()

    with queue.place(come, visitor="new"):
        assert told[0] == 1
    for thread in threads:
        thread.join()


def test_a_full_queue_says_so_at_once_and_takes_the_next_when_it_has_moved() -> None:
    queue, entered, leave = FairQueue(1, longest=2), threading.Event(), threading.Event()

    def occupy() -> None:
        with queue.place(quiet):
            entered.set()
            leave.wait(30)

    threads = [threading.Thread(target=occupy) for _ in range(3)]
    threads[0].start()
    entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    while queue.waiting < 2:
        threading.Event().wait(0.01)
    with pytest.raises(QueueFullError, match="2 others are waiting"), queue.place(quiet):
        pytest.fail("the queue was full")
    assert queue.waiting == 2
    leave.set()
    with queue.place(quiet, however_long=True):
        assert queue.waiting <= 2
    for thread in threads:
        thread.join()
    with queue.place(quiet):
        assert queue.waiting == 0


def test_one_visitor_fills_no_queue_for_all() -> None:
    """As many others as may wait stand in it beside the one, who has a part of the places."""
    queue = FairQueue(1, longest=40)
    for _ in range(10):
        queue.join("many")
    with pytest.raises(QueueFullError, match="10 texts"):
        queue.join("many")
    for other in range(39):
        queue.join(other)
    with pytest.raises(QueueFullError, match="40 others"):
        queue.join("one more")


def test_what_makes_room_is_of_the_visitor_who_has_the_most() -> None:
    assert first_to_go({1: "few", 2: "many", 3: "many", 4: None}) == 2
    assert first_to_go({1: "one", 2: "two", 3: None}) == 1
    assert first_to_go({1: None, 2: None, 3: "one"}) == 1


@cases("how", ["told the place", "asked whether it is wanted"])
def test_who_leaves_the_queue_does_not_hold_it_up(how) -> None:
    queue = FairQueue(1)

    def leave(*_: object) -> None:
        raise Gone

    ways = (leave, quiet) if how == "told the place" else (quiet, leave)
    with queue.place(quiet), pytest.raises(Gone), queue.place(*ways):
        pytest.fail("the place was taken")
    with queue.place(quiet):
        assert queue.waiting == 0


def test_a_long_turn_lets_much_shorter_ones_by_and_no_others() -> None:
    queue, had = FairQueue(1, clock=lambda: 0.0), list[str]()

    def visit(name: str, ticket: Ticket) -> None:
        with queue.turn(ticket, quiet, quiet) as turn:
            turn.let_by()  # who was let by lets nobody by
            had.append(name)

    works = {"not known": math.inf, "as long": 100.0, "short": 100 / SHORTER, "tiny": 1.0}
    with queue.place(quiet, work=100.0) as turn:
        threads = [
            threading.Thread(target=visit, args=(name, queue.join(name, work=work)))
            for name, work in works.items()
        ]
        for thread in threads:
            thread.start()
        for _ in works:
            turn.let_by()
        had.append("long")
    for thread in threads:
        thread.join(60)
    assert had == ["short", "tiny", "long", "as long", "not known"]


def test_those_who_are_let_by_get_half_of_the_time_and_it_does_not_count_for_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock goes on by a second with each sub-layer, and by ten with each pass that is let by."""
    seconds = [0.0]
    monkeypatch.setattr(deadline.time, "monotonic", lambda: seconds[0])
    queue, entered = FairQueue(1, clock=lambda: seconds[0]), list[float]()

    def visit(ticket: Ticket) -> None:
        with queue.turn(ticket, quiet, quiet):
            entered.append(seconds[0] - 10 * len(entered))
            seconds[0] += 10

    with queue.place(quiet, work=100.0) as turn, deadline.within(60.0, quiet, turn.let_by):
        threads = [
            threading.Thread(target=visit, args=(queue.join(n, work=1.0),)) for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for _ in range(61):
            deadline.look()
            seconds[0] += 1
        with pytest.raises(PassTooLongError):
            deadline.look()
        assert entered == [0, 10, 20, 30, 40, 50, 60]
    for thread in threads:
        thread.join(60)


def test_who_leaves_when_let_by_does_not_hold_up_the_longer_turn() -> None:
    queue = FairQueue(1)

    def leave(place: int) -> None:
        raise Gone

    def visit(ticket: Ticket) -> None:
        with pytest.raises(Gone), queue.turn(ticket, leave, leave):
            raise Gone

    with queue.place(quiet, work=100.0) as turn:
        threads = [
            threading.Thread(target=visit, args=(queue.join(n, work=1.0),)) for n in range(9)
        ]
        for thread in threads:
            thread.start()
        while queue.waiting:
            turn.let_by()
        for thread in threads:
            thread.join(60)
    with queue.place(quiet):
        assert queue.waiting == 0


@pytest.mark.parametrize("changed", [(), ("long",), ("short",)])
def test_a_short_pass_begins_before_the_long_ones_next_sub_layer_and_both_are_as_alone(
    changed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "SECONDS_BETWEEN_LOOKS", -1.0)
    change = Intervention(ablated=frozenset({("decoder.1.self", 2)}), positions=False)
    texts = {"long": f"{REQUEST.text} and " * 9 + REQUEST.text, "short": REQUEST.text}
    requests = {
        name: replace(REQUEST, text=text, intervention=change if name in changed else UNCHANGED)
        for name, text in texts.items()
    }
    alone = {name: Engine().trace(request, quiet) for name, request in requests.items()}
    heard: list[Event] = []
    found: dict[str, Trace] = {}
    waits = threading.Event()
    looks: list[
        threading.Thread
    ] = []  # whose, between sub-layers, from when the short one stands in the queue

    def ask_short() -> None:
        found["short"] = engine.trace(requests["short"], lambda place: waits.set())

    short = threading.Thread(target=ask_short)

    def wanted() -> None:
        """Between two sub-layers of the long pass the other visitor comes, and stands in the queue."""
        if short.ident is None:
            short.start()
            assert waits.wait(60)
        else:
            looks.append(threading.current_thread())

    engine = Engine(wanted=wanted, tell=heard.append)
    engine.model(REQUEST.model, quiet)
    found["long"] = engine.trace(requests["long"], quiet)
    short.join(60)
    tokens = [event.tokens for event in heard if isinstance(event, Passed)]
    assert tokens == [len(alone[name].tokens) for name in ("short", "long")]
    assert looks[0] is short
    for name, trace in found.items():
        for one, same in zip(trace.attention, alone[name].attention, strict=True):
            assert np.array_equal(one.output, same.output)
        assert trace.prediction is not None
        assert np.array_equal(trace.prediction.all, alone[name].require_prediction().all)


def test_what_is_timed_is_not_the_time_of_those_who_are_let_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(deadline.time, "perf_counter", lambda: seconds[0])

    def let_by() -> float:
        seconds[0] += 1000.0
        return 1000.0

    with deadline.within(60.0, quiet, let_by):
        began = deadline.own_time()
        seconds[0] += 3.0
        deadline.look()
        assert deadline.own_time() - began == 3.0


@cases("request_", [REQUEST, TRANSLATION])
def test_a_pass_ends_between_any_two_sub_layers_and_leaves_nothing(
    request_, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request has a greedy loop before its pass; it ends in there too."""
    monkeypatch.setattr(deadline, "SECONDS_BETWEEN_LOOKS", -1.0)
    left = iter(())

    def wanted() -> None:
        if next(left, None) == 0:
            raise Gone

    engine = Engine(wanted=wanted)
    engine.model(request_.model, quiet)
    ended = 0
    for looks in itertools.count():
        left = countdown(looks)
        try:
            trace = engine.trace(request_, quiet)
        except Gone:
            ended += 1
            assert engine.holdings.traces == 0
            assert engine.holdings.waiting == 0
        else:
            break
    model = engine.model(request_.model, quiet)
    sub_layers = len(model.attention_names)
    assert ended == looks >= 2 * sub_layers
    assert trace.check() < 1e-4
    assert len(trace.attention) == sub_layers
    assert engine.holdings.traces == 1


def countdown(start: int) -> Iterator[int]:
    return iter(range(start, -1, -1))


def test_a_pass_that_takes_too_long_is_refused_in_a_sentence_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[Event] = []
    engine = Engine(tell=heard.append)
    engine.model(REQUEST.model, quiet)
    clock = itertools.count(step=30.0)
    with monkeypatch.context() as slowly:
        slowly.setattr(deadline.time, "monotonic", lambda: next(clock))
        with pytest.raises(PassTooLongError, match="longer than 60 seconds"):
            engine.trace(REQUEST, quiet)
    assert heard[-1] == Refused("stories", "PassTooLongError")
    assert engine.holdings.traces == 0
    assert engine.trace(REQUEST, quiet).check() < 1e-4
    assert isinstance(heard[-1], Passed)
    assert heard[-1].tokens == 6


def test_limits_are_those_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "SECONDS_BETWEEN_LOOKS", -1.0)

    def gone() -> None:
        raise Gone

    passed = []
    other = threading.Thread(target=lambda: passed.append(deadline.look()))
    with deadline.within(60.0, gone):
        other.start()
        other.join()
        with pytest.raises(Gone):
            deadline.look()
    deadline.look()
    assert passed == [None]
