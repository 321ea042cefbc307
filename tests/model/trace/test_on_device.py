"""The arrays of a pass on a device that is not the processor: they are copied when they are read, and are the
same. The device is the tests' own, and every crossing to the processor is counted."""

import gc
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, get_args
from weakref import ref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from model import Intervention, Model, Trace
from model.many import trace_all
from model.nn.recorder import Level, Recorder, recording
from model.trace import transfer
from model.trace.description import trace_file
from model.trace.lazy import Lazy, arrays_of
from model.trace.transfer import Room
from tests.cases import cases
from tests.model import hub_models
from tests.model.device import Crossings, device, moved
from tests.model.hub.test_identity import TEXT as HUB_TEXT
from tests.model.tiny import TINY, loaded, sentence, target

CHANGED = Intervention(hidden=frozenset({1}))


class Runs(NamedTuple):
    """A pass on the device, the same on the processor, and the model there with what has crossed since."""

    there: Trace
    here: Trace
    model: Model
    crossings: Crossings


def runs(name: str, intervention: Intervention = CHANGED) -> Runs:
    here, crossings = loaded(name), Crossings()
    text, words = sentence(here), target(here)
    model = moved(loaded.__wrapped__(name), crossings)
    expected = here.trace(text, words, intervention, record="full")
    with device(crossings):
        trace = model.trace(text, words, intervention, record="full")
    return Runs(trace, expected, model, crossings)


@cases("name", ["gpt", "llama", "bert", "translator", "all-stages"])
def test_a_trace_is_made_without_a_copy_and_has_the_numbers_of_the_processor(name) -> None:
    there, here, _, crossings = runs(name)
    assert here.nbytes <= there.nbytes < 1.1 * here.nbytes  # equal masks count until they are read
    assert [one.sizes for one in there.attention] == [one.sizes for one in here.attention]
    assert not crossings.all
    assert trace_file(replace(there, device=here.device)) == trace_file(here)
    assert crossings.copied
    assert there.nbytes == here.nbytes
    assert there.check() == here.check()
    for record in (*there.attention, *there.norms, *there.feed_forward):
        assert not any(array.flags.writeable for array in arrays_of(record))


class _Counted(TorchDispatchMode):
    """How many operations run within it."""

    count = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        self.count += 1
        return operation(*given, **(named or {}))


def operations(model: Model, level: Level) -> int:
    texts = filter(None, (sentence(model), target(model)))
    ids = [model.ids(model.tokens(text)) for text in texts]
    recorder = Recorder(level=level, source=model.config.source)
    with torch.inference_mode(), recording(recorder), _Counted() as counted:
        model.module(*ids)
    return counted.count


def test_to_record_a_pass_asks_the_device_for_nothing_more(subtests: pytest.Subtests) -> None:
    for name in TINY:
        with subtests.test(name=name):
            model = loaded(name)
            plain = operations(model, "nothing")
            assert operations(model, "full") == operations(model, "attention") == plain


def test_to_record_a_pass_of_the_librarys_waits_for_nothing_more(
    subtests: pytest.Subtests,
) -> None:
    for family in ["llama", "gemma3", "bart", "falcon, ALiBi", "deberta-v3"]:
        with subtests.test(family=family):
            crossings, found = Crossings(), dict[str, list[str]]()
            here = hub_models.loaded.__wrapped__(family)
            model = moved(here, crossings)
            seq2seq = model.config.shape == "encoder-decoder"
            texts = (HUB_TEXT, hub_models.TARGET) if seq2seq else (HUB_TEXT,)
            for level in get_args(Level):
                with device(crossings), torch.inference_mode():
                    ids = [model.ids(here.tokens(text)) for text in texts]
                    crossings.clear()
                    with recording(Recorder(level=level, source=model.config.source)):
                        model.module(*ids)
                found[level] = crossings.all
            assert found["full"] == found["attention"] == found["nothing"]
            assert not crossings.copied
            assert (
                len(crossings.waited) <= 2
            )  # the library asks whether texts are packed, once for each mask


def test_what_is_read_crosses_once_and_the_rest_stays() -> None:
    there, here, _, crossings = runs("gpt")
    one, norm = there.attention[1], there.norms[2]
    for _ in range(2):
        np.testing.assert_array_equal(one.scores(2), here.attention[1].scores(2))
        assert len(crossings.copied) == 3  # queries, keys and values
    assert norm.input is there.residual["decoder"][2]
    assert len(crossings.copied) == 4
    assert there.residual["decoder"][2:4][0] is norm.input
    assert len(crossings.copied) == 5


@cases("name", ["gpt", "llama", "bert", "translator", "all-stages"])
def test_all_of_a_pass_leaves_in_one_copy(name, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here, _, crossings = runs(name)
    there.fetch()
    assert len(crossings.copied) == 1
    assert trace_file(replace(there, device=here.device)) == trace_file(here)
    assert there.prediction is None or there.prediction.all.size
    assert len(crossings.copied) == 1, "something was copied on its own"
    there.fetch()
    assert len(crossings.copied) == 1

    again, *_, crossings = runs(name)
    assert trace_file(replace(again, device=here.device)) == trace_file(here)
    assert len(crossings.copied) <= 2  # a file has no logits but those that are asked for
    part, *_, crossings = runs(name)
    monkeypatch.setattr(transfer, "LARGEST_COPY", 1_000)
    part.fetch()
    assert len(crossings.copied) > 1
    assert trace_file(replace(part, device=here.device)) == trace_file(here)


def test_equal_masks_are_kept_once() -> None:
    """Each layer makes a mask of its own where an intervention changes it."""
    there, *_ = runs("gpt")
    masks = [one.own_mask for one in there.attention]
    assert masks[0] is not None
    assert all(one is masks[0] for one in masks)


@cases("name", ["gpt", "llama", "bert", "translator", "all-stages"])
def test_the_check_of_attention_runs_there(name) -> None:
    there, _, _, crossings = runs(name)
    with device(crossings):
        gaps = [one.check() for one in there.attention]
    assert not crossings.copied
    assert len(crossings.waited) == len(gaps)
    assert max(gaps) < 1e-5
    with torch.inference_mode():
        vars(there.attention[0])["output"].source.behind[0, 1, 2] += 0.5
    with device(crossings):
        assert there.attention[0].check() == pytest.approx(0.5, abs=1e-4)
    assert not crossings.copied
    there.attention[0].weights(0)
    # Here, with what was read.
    assert there.attention[0].check() == pytest.approx(0.5, abs=1e-4)
    assert crossings.copied


@cases("name", ["gpt", "llama", "bert", "translator", "all-stages"])
def test_so_does_that_of_the_norms(name) -> None:
    there, here, _, crossings = runs(name)
    with device(crossings):
        gaps = [one.check() for one in there.norms]
    assert not crossings.copied
    assert len(crossings.waited) == len(gaps)
    np.testing.assert_allclose(gaps, [one.check() for one in here.norms], atol=1e-6)
    for field, at in (("recorded", (0, 1, 2)), ("inverse_deviation", (0, 1))):
        record = there.norms[0 if field == "recorded" else 1]
        with torch.inference_mode():
            vars(record)[field].source.behind[at] += 0.5
        with device(crossings):
            wrong = record.check()
        assert not crossings.copied
        assert wrong > 0.1
    assert there.norms[0].input.size
    # Here, with what was read.
    assert there.norms[0].check() == pytest.approx(0.5, abs=1e-4)
    assert crossings.copied


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
def test_a_tensor_is_let_go_when_it_is_read_and_all_are_with_their_trace() -> None:
    there, *_ = runs("gpt")
    output, other = (vars(there.attention[at])["output"] for at in (0, 1))
    assert isinstance(output, Lazy)
    (tensor,), (unread,) = ([ref(one.source)] for one in (output, other))
    del output, other
    assert there.attention[0].output.size
    assert tensor() is None
    assert unread() is not None
    del there
    assert unread() is None


def test_beyond_the_bound_the_oldest_passes_are_copied() -> None:
    copied: list[int] = []

    def lazy(number: int) -> Lazy[int]:
        def make() -> int:
            copied.append(number)
            return number

        return Lazy(make, nbytes=10)

    room, first = Room(), [lazy(number) for number in (0, 1)]
    second, third = [lazy(2)], [lazy(3), lazy(4), lazy(5)]
    room.add(first, 40)
    room.add(second, 40)
    assert not copied
    room.add(third, 40)
    assert copied == [0, 1]
    del second[:]  # nobody reads it any more
    room.add([lazy(6)], 30)
    assert copied == [0, 1, 3, 4, 5]
    assert [one.get() for one in (*first, *third)] == [0, 1, 3, 4, 5]
    assert len(copied) == 5


def test_a_model_keeps_as_much_there_as_recent_traces_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTENTION_TRACE_MB", "1")
    there, _, model, crossings = runs("house-gpt")
    text = there.text
    with device(crossings):
        more = [model.trace(text, record="full") for _ in range(-(-1_000_000 // there.nbytes) + 1)]
    assert crossings.copied
    assert not any(not one.is_read for one in lazy_arrays(there))
    assert any(not one.is_read for one in lazy_arrays(more[-1]))


def lazy_arrays(trace: Trace) -> list[Lazy[object]]:
    return [
        value
        for record in trace.attention
        for value in vars(record).values()
        if isinstance(value, Lazy) and not value.shapes  # of one array
    ]


def test_it_travels_as_its_arrays() -> None:
    there, here, *_ = runs("translator")
    for ours, theirs in zip(there.attention, here.attention, strict=True):
        for one, other in zip(
            arrays_of(pickle.loads(pickle.dumps(ours))), arrays_of(theirs), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    states = pickle.loads(pickle.dumps(there.residual["encoder"]))
    assert type(states) is tuple
    np.testing.assert_array_equal(states, here.residual["encoder"])
    assert type(pickle.loads(pickle.dumps(there.summands["encoder"]))) is dict


def test_a_batch_waits_for_nothing_until_it_is_read() -> None:
    here, crossings = loaded("gpt"), Crossings()
    model = moved(loaded.__wrapped__("gpt"), crossings)
    texts = [sentence(here)] * 2
    expected = [*trace_all(here, texts, batch=2)]
    with device(crossings):
        traces = [*trace_all(model, texts, batch=2)]
    assert not crossings.all
    for ours, theirs in zip(traces, expected, strict=True):
        assert trace_file(replace(ours, device=theirs.device)) == trace_file(theirs)
