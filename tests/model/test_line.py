"""Who waits, waits in order and not in vain; what nobody wants any more ends and leaves nothing."""

import itertools
import threading
from collections.abc import Iterator

import pytest

from model import limits
from model.engine import Engine, Request
from model.events import Event, Passed, Refused
from model.limits import PassTooLongError
from model.line import Line, LineFullError

REQUEST = Request("stories", "The cat sat on the mat")
TRANSLATION = Request("translate-en-fr", "the red car", target=None)


class Gone(BaseException):
    """What Streamlit raises where a run is to end is no Exception either."""


def quiet(*_: object) -> None:
    """Nobody watches."""


def test_the_line_lets_one_in_at_a_time_and_tells_the_place() -> None:
    line, inside, most, told = Line(1), [], [], []

    def visit() -> None:
        with line.place(told.append):
            inside.append(1)
            most.append(len(inside))
            while line.waiting < 4 - len(most):  # until all who are to come stand in the line
                threading.Event().wait(0.01)
            inside.pop()

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
    assert set(told) == {1, 2, 3}
    assert line.waiting == 0


def test_a_full_line_says_so_at_once_and_takes_the_next_when_it_has_moved() -> None:
    line, entered, leave = Line(1, longest=2), threading.Event(), threading.Event()

    def occupy() -> None:
        with line.place(quiet):
            entered.set()
            leave.wait(30)

    threads = [threading.Thread(target=occupy) for _ in range(3)]
    threads[0].start()
    entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    while line.waiting < 2:
        threading.Event().wait(0.01)
    with pytest.raises(LineFullError, match="2 others are waiting"), line.place(quiet):
        pytest.fail("the line was full")
    assert line.waiting == 2
    leave.set()
    with line.place(quiet, however_long=True):
        assert line.waiting <= 2
    for thread in threads:
        thread.join()
    with line.place(quiet):
        assert line.waiting == 0


@pytest.mark.parametrize("how", ["told the place", "asked whether it is wanted"])
def test_who_leaves_the_line_does_not_hold_it_up(how: str) -> None:
    line = Line(1)

    def leave(*_: object) -> None:
        raise Gone

    ways = (leave, quiet) if how == "told the place" else (quiet, leave)
    with line.place(quiet), pytest.raises(Gone), line.place(*ways):
        pytest.fail("the place was taken")
    with line.place(quiet):
        assert line.waiting == 0


@pytest.mark.parametrize("request_", [REQUEST, TRANSLATION], ids=lambda one: one.model)
def test_a_pass_ends_between_any_two_sub_layers_and_leaves_nothing(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request has a greedy loop before its pass; it ends in there too."""
    monkeypatch.setattr(limits, "SECONDS_BETWEEN_LOOKS", -1.0)
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
        slowly.setattr(limits.time, "monotonic", lambda: next(clock))
        with pytest.raises(PassTooLongError, match="longer than 60 seconds"):
            engine.trace(REQUEST, quiet)
    assert heard[-1] == Refused("stories", "PassTooLongError")
    assert engine.holdings.traces == 0
    assert engine.trace(REQUEST, quiet).check() < 1e-4
    assert isinstance(heard[-1], Passed)
    assert heard[-1].tokens == 6


def test_limits_are_those_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_BETWEEN_LOOKS", -1.0)

    def gone() -> None:
        raise Gone

    passed = []
    other = threading.Thread(target=lambda: passed.append(limits.look()))
    with limits.within(60.0, gone):
        other.start()
        other.join()
        with pytest.raises(Gone):
            limits.look()
    limits.look()
    assert passed == [None]
