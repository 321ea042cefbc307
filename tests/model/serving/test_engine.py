"""One engine serves everybody: each thing is made once, in turn, within its bounds."""

import threading
from collections.abc import Callable

import pytest

from model import Intervention
from model.serving import engine
from model.serving.engine import Engine, Request, model_size
from model.serving.events import Event, Found, Passed
from tests.model.tiny import quiet


def test_a_model_wanted_by_many_is_loaded_once_and_those_who_wait_hear_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not loaded before the other three have asked for it and were told."""
    real, loads, got, heard = engine.load_model, [], [], set()
    all_heard = threading.Event()

    def when_all_have_asked(
        name: str, *, progress: Callable[..., object], **options: object
    ) -> object:
        loads.append(name)
        progress("half way", 0.5)
        assert all_heard.wait(60)
        return real(name, progress=progress, **options)

    monkeypatch.setattr(engine, "load_model", when_all_have_asked)
    shared = Engine()

    def ask() -> None:
        def hear(*news: object) -> None:
            if news == ("half way", 0.5):
                heard.add(threading.current_thread())
            if len(heard) == 4:  # the one that loads it hears it too
                all_heard.set()

        got.append(shared.model("stories", hear))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == ["stories"]
    assert len({id(model) for model in got}) == 1
    assert len(got) == len(heard) == 4
    assert shared.has("stories")


def test_the_same_request_gives_the_same_trace_and_another_one_its_own() -> None:
    shared = Engine()
    request = Request("stories", "The cat sat on the mat")
    again = Request("stories", "The cat sat on the mat")
    changed = Request("stories", "The cat sat on the mat", intervention=Intervention(scale=1.0))
    assert shared.trace(request, quiet) is shared.trace(again, quiet)
    assert shared.trace(changed, quiet).intervention.scale == 1.0
    assert shared.trace(request, quiet).intervention.scale is None


def test_traces_are_dropped_when_their_bytes_are_over_the_bound() -> None:
    one = Engine().trace(Request("stories", "The cat sat"), quiet)
    shared = Engine(trace_bytes=int(2.5 * one.nbytes))
    first = shared.trace(Request("stories", "The cat sat"), quiet)
    for word in ("dog", "fox", "hat"):
        shared.trace(Request("stories", f"The {word} sat"), quiet)
    assert shared.trace(Request("stories", "The cat sat"), quiet) is not first


def test_a_trace_over_the_bound_is_still_answered_by_one_pass_each_time_and_not_kept() -> None:
    told: list[Event] = []
    shared, request = Engine(trace_bytes=10, tell=told.append), Request("stories", "The cat sat")
    for asked in (1, 2):
        trace = shared.trace(request, quiet)
        assert trace.check() < 1e-4
        assert not shared.can_keep(trace)
        assert len([event for event in told if isinstance(event, Passed)]) == asked
        assert told.count(Found("stories", hit=False)) == asked
    assert shared.holdings.traces == 0


def test_a_trace_within_the_bound_is_passed_once() -> None:
    told: list[Event] = []
    shared, request = Engine(tell=told.append), Request("stories", "The cat sat")
    assert shared.can_keep(shared.trace(request, quiet))
    shared.trace(request, quiet)
    assert len([event for event in told if isinstance(event, Passed)]) == 1
    assert told.count(Found("stories", hit=True)) == told.count(Found("stories", hit=False)) == 1


def test_models_are_dropped_when_their_bytes_are_over_the_bound() -> None:
    size = model_size(Engine().model("stories", quiet))
    shared = Engine(model_bytes=size + 1)
    shared.model("stories", quiet)
    shared.model("minilm", quiet)
    assert not shared.has("minilm")
    assert shared.has("stories")


def test_a_refusal_leaves_the_engine_working() -> None:
    shared = Engine()
    with pytest.raises(ValueError, match="no text"):
        shared.trace(Request("stories", "  "), quiet)
    assert shared.trace(Request("stories", "The cat sat"), quiet).tokens


def test_two_visitors_on_two_models_keep_both_while_memory_allows_and_hear_when_it_does_not() -> (
    None
):
    roomy = Engine()
    for name in ("stories", "translate-en-fr", "stories", "translate-en-fr"):
        roomy.model(name, quiet)
    assert roomy.has("stories")
    assert roomy.has("translate-en-fr")
    assert roomy.evictions == ()
    sizes = [model_size(roomy.model(name, quiet)) for name in ("stories", "translate-en-fr")]
    narrow = Engine(model_bytes=max(sizes))
    narrow.model("stories", quiet)
    narrow.model("translate-en-fr", quiet)
    assert not narrow.has("stories")
    assert narrow.evictions == (engine.Eviction("stories", "translate-en-fr"),)
