"""One engine serves everybody: each thing is made once, in turn, within its bounds."""

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from model import Intervention, load_trace
from model.exchange import read as read_theirs
from model.exchange import write
from model.loading.shipped import ASSETS
from model.run.protocols import check_record
from model.serving import engine
from model.serving.engine import (
    QUIET_SECONDS,
    UNREAD_SECONDS,
    CacheLookup,
    Engine,
    Event,
    Passed,
    Request,
    bytes_of,
    model_size,
)
from model.system.deadline import PassTooLongError
from model.system.memory import AllReadError, OutOfMemoryError
from model.trace.description import trace_file
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.hub_models import saved
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
        assert told.count(CacheLookup("stories", hit=False)) == asked
    assert shared.holdings.traces == 0


def test_a_trace_within_the_bound_is_passed_once() -> None:
    told: list[Event] = []
    shared, request = Engine(tell=told.append), Request("stories", "The cat sat")
    assert shared.can_keep(shared.trace(request, quiet))
    shared.trace(request, quiet)
    assert len([event for event in told if isinstance(event, Passed)]) == 1
    assert (
        told.count(CacheLookup("stories", hit=True))
        == told.count(CacheLookup("stories", hit=False))
        == 1
    )


def test_a_pass_does_not_count_again_the_bytes_of_all_traces_that_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared, counted = Engine(), []
    first = shared.trace(Request("stories", "The cat sat"), quiet)
    count = Trace.nbytes.fget
    monkeypatch.setattr(Trace, "nbytes", property(lambda one: counted.append(one) or count(one)))
    second = shared.trace(Request("stories", "The dog sat"), quiet)
    assert second in counted
    assert first not in counted
    assert shared.holdings.trace_bytes == first.nbytes + second.nbytes


def test_models_are_dropped_when_their_bytes_are_over_the_bound() -> None:
    size = model_size(Engine().model("stories", quiet))
    shared = Engine(model_bytes=size + 1)
    shared.model("stories", quiet)
    shared.model("minilm", quiet)
    assert not shared.has("minilm")
    assert shared.has("stories")


def test_weights_that_share_memory_count_once() -> None:
    embedding, output = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5)
    output.weight = embedding.weight
    tied = torch.nn.ModuleList([embedding, output])
    numbers = sum(weight.numel() for weight in tied.parameters())  # PyTorch names each once
    assert bytes_of(tied.state_dict().values()) == 4 * numbers


def test_what_is_reported_is_all_that_is_in_memory_kept_or_not() -> None:
    sizes = [model_size(Engine().model(name, quiet)) for name in ("stories", "translate-en-fr")]
    narrow = Engine(model_bytes=max(sizes), trace_bytes=10)
    read = narrow.model("stories", quiet), narrow.trace(Request("stories", "The cat sat"), quiet)
    narrow.model("translate-en-fr", quiet)
    now = narrow.holdings
    assert now.models == ("translate-en-fr",)
    assert (now.models_in_memory, now.model_bytes) == (2, sum(sizes))
    assert (now.traces, now.trace_bytes) == (0, read[1].nbytes)
    del read
    narrow.give_back()
    now = narrow.holdings
    assert (now.models_in_memory, now.model_bytes, now.trace_bytes) == (1, sizes[1], 0)


def test_a_trace_that_nobody_asks_for_is_dropped_in_time_and_made_anew() -> None:
    now = [0.0]
    shared = Engine(clock=lambda: now[0])
    read, left = (Request("stories", f"The {one} sat") for one in ("cat", "dog"))
    kept, dropped = (shared.trace(request, quiet) for request in (read, left))
    now[0] = UNREAD_SECONDS
    assert shared.trace(read, quiet) is kept
    shared.loads()  # who looks the traces over asks for none
    now[0] += 1
    shared.give_back()
    assert shared.holdings.traces == 1
    assert shared.trace(read, quiet) is kept
    again = shared.trace(left, quiet)
    assert again is not dropped
    assert np.array_equal(again.logits, dropped.logits)


def test_what_pages_read_has_a_bound_and_who_reads_one_run_gets_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "LARGEST_RECORD", 0)
    visitor = "one"
    one = Engine().trace(Request("stories", "The cat sat"), quiet)
    shared = Engine(trace_bytes=one.nbytes - 1, visitor=lambda: visitor)
    read = [shared.trace(Request("stories", "The cat sat"), quiet)]
    changed = Request("stories", "The cat sat", intervention=Intervention(scale=1.0))
    visitor = "another"
    read.append(shared.trace(changed, quiet))
    visitor = "one more"
    with pytest.raises(AllReadError):
        shared.trace(Request("stories", "The dog sat"), quiet)
    visitor = "another"
    read.append(shared.trace(Request("stories", "The dog sat"), quiet))
    visitor = "one more"
    del read[:2]
    assert shared.trace(Request("stories", "The fox sat"), quiet).check() < 1e-4


def test_the_run_of_a_dropped_file_is_kept_however_long() -> None:
    now = [0.0]
    shared = Engine(clock=lambda: now[0])
    content = trace_file(Engine().trace(Request("stories", "The cat sat"), quiet))
    name = shared.keep_file(BytesIO(content), len(content))
    now[0] = 2 * UNREAD_SECONDS
    shared.give_back()
    assert shared.has(name)


def test_freed_memory_is_kept_only_as_long_as_passes_are_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, given = [0.0], list[float]()
    monkeypatch.setattr(engine.allocator, "give_back", lambda: given.append(now[0]))
    shared = Engine(clock=lambda: now[0])
    for second in range(3):
        now[0] = QUIET_SECONDS * second / 2
        shared.give_back()
        shared.trace(Request("stories", f"The cat sat {'there ' * second}"), quiet)
    for second in range(8):
        now[0] = QUIET_SECONDS * (1 + second / 2)
        shared.give_back()
    assert given == [QUIET_SECONDS * 2]


def test_who_looks_the_engine_over_does_not_change_what_goes_first() -> None:
    one = Engine().trace(Request("stories", "The cat sat"), quiet)
    shared = Engine(trace_bytes=int(2.5 * one.nbytes))
    cat, dog, fox = (Request("stories", f"The {word} sat") for word in ("cat", "dog", "fox"))
    first = shared.trace(cat, quiet)
    shared.trace(dog, quiet)
    shared.trace(cat, quiet)
    shared.loads()
    shared.trace(fox, quiet)
    assert shared.trace(cat, quiet) is first


def test_a_model_is_prepared_only_where_no_other_must_go_for_it() -> None:
    roomy = Engine()
    roomy.prepare("stories")
    roomy.prepare("stories")
    assert roomy.holdings.models == ("stories",)
    narrow = Engine(model_bytes=model_size(roomy.model("stories", quiet)) + 1)
    narrow.model("stories", quiet)
    narrow.prepare("minilm")
    assert narrow.holdings.models == ("stories",)
    assert narrow.evictions == ()


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
    assert narrow.evictions == (engine.ModelUnloaded("stories", "translate-en-fr"),)


def test_the_traces_of_a_model_are_dropped_with_it_and_those_of_others_stay() -> None:
    names = ("stories", "translate-en-fr", "induction")
    sizes = [model_size(Engine().model(name, quiet)) for name in names]
    narrow = Engine(model_bytes=max(sizes) + sizes[-1])
    requests = Request("stories", "The cat sat"), Request("induction", "a b a b")
    for request in requests:
        narrow.trace(request, quiet)
    narrow.model("translate-en-fr", quiet)
    assert narrow.evictions == (engine.ModelUnloaded("stories", "translate-en-fr"),)
    assert set(narrow._traces) == {requests[1]}


def test_the_run_of_a_trace_file_is_one_object_until_the_file_changes(tmp_path: Path) -> None:
    shared, path = Engine(), tmp_path / "run.safetensors"
    shared.trace(Request("stories", "The cat sat"), quiet).save(path)
    asked = Request(str(path), "The cat sat")
    found = shared.trace(asked, quiet)
    found.check()
    assert shared.trace(asked, quiet) is found  # so it is checked once
    content = path.read_bytes()
    name = shared.keep_file(BytesIO(content), len(content))
    dropped = replace(asked, model=name)
    assert shared.trace(dropped, quiet) is shared.trace(dropped, quiet)
    before = replace(asked, changed=path.stat().st_mtime_ns)
    assert shared.trace(before, quiet) is found
    os.utime(path, ns=(1, 1))
    assert shared.trace(asked, quiet) is not found
    assert shared.model(str(path), quiet).changed == 1
    assert shared.trace(before, quiet) is found  # a part of a page that was drawn before


def test_a_trace_file_that_is_written_anew_is_never_taken_for_the_one_before(
    tmp_path: Path,
) -> None:
    shared, path = Engine(), tmp_path / "run.safetensors"
    shared.trace(Request("stories", "The cat sat"), quiet).save(path)
    before = Request(str(path), "The cat sat", changed=path.stat().st_mtime_ns - 1)
    with pytest.raises(ValueError, match=r"run.safetensors has just been written anew"):
        shared.trace(before, quiet)


def read(shared: Engine, path: Path, way: str) -> object:
    content = path.read_bytes()
    if way == "dropped":
        return shared.keep_file(BytesIO(content), len(content))
    return shared.model(str(path), quiet)


@cases("way", ["by its path", "dropped"])
def test_a_trace_file_for_which_there_is_no_memory_is_refused(
    way, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared, path = Engine(), tmp_path / "run.safetensors"
    shared.trace(Request("stories", "The cat sat"), quiet).save(path)

    def read_array(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("model.trace.array_file.read_array", read_array)
    with pytest.raises(OutOfMemoryError, match=r"not enough memory for th.* trace file"):
        read(shared, path, way)
    monkeypatch.undo()
    assert shared.model(str(path), quiet).trace("The cat sat").check() < 1e-4


def test_a_file_is_read_in_a_turn_of_the_queue_and_within_the_time_of_a_pass(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """So that visitors who bring files at once take the memory of one, and none holds the others up."""
    path, theirs = tmp_path / "run.safetensors", tmp_path / "theirs.npz"
    Engine().trace(Request("stories", "The cat sat"), quiet).save(path)
    write(load_trace(path), theirs, "huggingface")
    ways: dict[str, Callable[[Engine], object]] = {
        "dropped": lambda shared: read(shared, path, "dropped"),
        "named": lambda shared: read(shared, path, "named"),
        "of another program": lambda shared: shared.run_in("a", lambda: read_theirs(theirs)),
    }
    for way, reads in ways.items():
        with subtests.test(way=way):
            shared = Engine()
            shared._seconds = -1
            with pytest.raises(PassTooLongError):
                reads(shared)
            busy = Engine(wanted=lambda: 1 / 0)  # it is asked while it waits
            with busy.turn(quiet), pytest.raises(ZeroDivisionError):
                reads(busy)


def test_the_file_of_another_program_is_read_once(tmp_path: Path) -> None:
    shared, file = Engine(), tmp_path / "theirs.npz"
    trace = shared.trace(Request("stories", "The cat sat"), quiet)
    write(trace, file, "huggingface")
    first = shared.run_in("a", lambda: read_theirs(file))
    assert shared.run_in("a", lambda: pytest.fail("read again")) is first
    assert shared.holdings.trace_bytes >= trace.nbytes + first.nbytes


def test_a_folder_with_the_ending_of_a_trace_file_is_a_model(tmp_path: Path) -> None:
    shared, folder = Engine(), tmp_path / "stories.safetensors"
    shutil.copytree(ASSETS / "stories", folder)
    assert shared.model(str(folder), quiet).runs
    assert shared.has(str(folder))
    assert shared.trace(Request(str(folder), "The cat sat"), quiet).check() < 1e-4


def test_a_trace_file_of_more_tokens_than_a_page_shows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, path = Engine(), tmp_path / "run.safetensors"
    shared.trace(Request("stories", "The cat sat"), quiet).save(path)  # 3 tokens
    monkeypatch.setattr("model.run.protocols.LONGEST", 2)
    for way in ("dropped", "named"):
        with pytest.raises(ValueError, match="The text has 3 tokens; a page shows at most 2"):
            read(shared, path, way)
    with pytest.raises(ValueError, match="The text has 3 tokens; a page shows at most 2"):
        shared.trace(Request("house-gpt", "The cat sat"), quiet)
    assert len(load_trace(path).tokens) == 3  # outside of pages nothing is bounded


@pytest.mark.slow
def test_a_pass_that_would_record_more_than_a_page_holds_is_refused_before_it_runs(
    subtests: pytest.Subtests,
) -> None:
    for name, (full, dropout) in product(
        ["stories", "llama"], [(False, False), (True, False), (False, True)]
    ):
        with (
            subtests.test(name=name, full=full, dropout=dropout),
            pytest.MonkeyPatch.context() as monkeypatch,
        ):
            shared = Engine()
            name = str(saved(name)) if name == "llama" else name
            model = shared.model(name, quiet)
            change = Intervention(dropout=0.5 * dropout)
            asked = Request(name, "the cat sat", intervention=change, full=full)
            trace = shared.trace(asked, quiet)
            recorded = trace.nbytes - trace.logits.nbytes
            config, layers = model.config, len(model.attention_names)
            monkeypatch.setattr("model.run.protocols.LARGEST_RECORD", recorded)
            given = {"full": full, "dropout": dropout}
            length = len(model.tokens("the cat sat"))
            check_record(config, length, layers, **given)  # it counts no more than is recorded
            monkeypatch.setattr("model.run.protocols.LARGEST_RECORD", 0.7 * recorded)
            with pytest.raises(ValueError, match="tokens would record"):
                check_record(config, length, layers, **given)
            monkeypatch.setattr(
                "model.run.protocols.LARGEST_RECORD", 4 * 3 * config.d_model
            )  # one state
            with pytest.raises(ValueError, match="A pass over 3 tokens would record"):
                Engine().trace(asked, quiet)
