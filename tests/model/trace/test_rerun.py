"""Attention of a long text is not kept: a sub-layer that is read is run once more, with the same bits."""

import gc
import pickle
import weakref
from itertools import product
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis.run_comparison import rounding_of_weights
from model.nn import attention
from model.nn.recorder import Recorder, recording
from model.system.threads import one_thread, threads
from model.trace.description import trace_file
from model.trace.lazy import Lazy, arrays_of
from tests.cases import cases
from tests.model import hub_models as families
from tests.model.hub.test_identity import TEXT as HUB_TEXT
from tests.model.tiny import TINY, build, sentence, target

HUB = [f"hub {family}" for family in (*families.FAMILIES, *families.PARTLY)]
# Whose layers share their weights, norm the stream twice, or read what is neither a norm's nor the stream.
KEPT = {"hub albert", "hub falcon", "hub falcon_h1", "hub deberta-v3"}
CHANGES = {
    "none": Intervention(),
    "hidden": Intervention(hidden=frozenset({1}), scale=0.5),
    "no positions": Intervention(positions=False),
    "a mask value": Intervention(fill=-1e9, hidden=frozenset({2})),
}


def model_of(name: str) -> Model:
    return families.loaded(name.removeprefix("hub ")) if name.startswith("hub ") else build(name)


def both_ways(
    model: Model, monkeypatch: pytest.MonkeyPatch, change: Intervention = CHANGES["none"]
) -> tuple[Trace, Trace]:
    """The trace that keeps all, and the one that runs its attention again."""
    hub = "body" in vars(model.module)["_modules"]
    text, words = (HUB_TEXT, families.TARGET) if hub else (sentence(model), target(model))
    words = words if model.config.shape == "encoder-decoder" else None
    kept = model.trace(text, words, change, record="full")
    with monkeypatch.context() as patch:
        patch.setattr("model.run.model.RERUN_FROM", 0)
        return kept, model.trace(text, words, change, record="full")


def waits(trace: Trace) -> list[bool]:
    """Whether each sub-layer is run again when it is read."""
    found = [vars(one)["vectors"] for one in trace.attention]
    return [isinstance(one, Lazy) and not one.is_read for one in found]


@cases("change, name", product(CHANGES, TINY))
def test_its_bits_are_those_of_the_pass(change, name, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, again = both_ways(build(name), monkeypatch, CHANGES[change])
    assert not any(waits(kept))
    assert all(waits(again))
    assert [one.sizes for one in again.attention] == [one.sizes for one in kept.attention]
    assert all(waits(again))
    assert again.nbytes == kept.nbytes
    assert trace_file(again) == trace_file(kept)
    assert not any(waits(again))
    assert again.nbytes == kept.nbytes


def test_how_exact_a_run_is_is_known_without_running_its_sub_layers_again(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*TINY, "hub llama", "hub gpt2"):
        with subtests.test(name=name):
            kept, again = both_ways(model_of(name), monkeypatch)
            assert rounding_of_weights(again) == pytest.approx(rounding_of_weights(kept), rel=1e-6)
            for ours, theirs in zip(again.attention, kept.attention, strict=True):
                np.testing.assert_allclose(ours.longest, theirs.longest, rtol=1e-6)
            assert all(waits(again))


@pytest.mark.slow
@pytest.mark.parametrize("name", HUB)
def test_so_are_those_of_the_librarys_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, again = both_ways(model_of(name), monkeypatch)
    assert all(waits(again)) is (name not in KEPT)
    for ours, theirs in zip(again.attention, kept.attention, strict=True):
        for one, other in zip(arrays_of(ours), arrays_of(theirs), strict=True):
            np.testing.assert_array_equal(one, other)


def kept_bytes(trace: Trace) -> int:
    """Bytes of vectors and outputs, unread ones left out."""
    values = [vars(one)[name] for one in trace.attention for name in ("vectors", "output")]
    arrays = [one for value in values if not isinstance(value, Lazy) for one in [*value]]
    return sum(array.nbytes for array in arrays)


@cases("name", ["gpt", "hub gpt2", "hub llama", "hub phi3"])
def test_what_a_sub_layer_read_is_let_go_with_its_vectors(
    name, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(name)
    read: list[weakref.ref[torch.Tensor]] = []
    norms = [one for one in model.module.modules() if "Norm" in type(one).__name__]
    hooks = [
        one.register_forward_hook(lambda module, given, gave: read.append(weakref.ref(gave)))
        for one in norms
    ]
    monkeypatch.setattr("model.run.model.RERUN_FROM", 0)
    text = HUB_TEXT if name.startswith("hub") else sentence(model)
    trace = model.trace(text)
    for hook in hooks:
        hook.remove()
    gc.collect()
    assert len(read) > len(trace.attention)
    assert sum(one() is not None for one in read) <= 1  # the last one is a state too


@cases("name", ["gpt", "translator", "hub gpt2", "hub phi3"])
def test_one_that_is_read_is_kept_and_the_others_are_not(
    name, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, again = both_ways(model_of(name), monkeypatch)
    assert kept_bytes(again) == 0 < kept_bytes(kept)
    first, second, *others = again.attention
    assert first.query is first.query
    assert waits(again) == [False, *[True] * (len(others) + 1)]
    read = first.output
    assert read is first.output
    gap = second.check()
    assert gap == kept.attention[1].check()
    assert waits(again)[1]  # a check keeps nothing
    assert again.check() == kept.check()
    assert waits(again)[1:] == [True] * (len(others) + 1)


def test_a_check_notices_an_output_that_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _, again = both_ways(build("gpt"), monkeypatch)
    one = again.attention[1]
    (query, key, value), output = vars(one)["vectors"].source.once()
    wrong = output.copy()
    wrong[0, 1, 2] += 0.5
    vars(one)["vectors"].source._make = lambda: ((query, key, value), wrong)
    assert one.check() == pytest.approx(0.5, abs=1e-4)


def test_weights_that_were_changed_or_moved_give_no_vectors(subtests: pytest.Subtests) -> None:
    for change in [
        lambda model: model.module.decoder.blocks[1].self_attention.key.weight.add_(1.0),
        lambda model: model.module.decoder.blocks[1].self_norm.beta.add_(1.0),
        lambda model: model.on(torch.device("meta")),
    ]:
        with subtests.test(change=change), pytest.MonkeyPatch.context() as monkeypatch:
            model = build("gpt")
            _, again = both_ways(model, monkeypatch)
            change(model)
            for read in (lambda: again.attention[1].scores(0), again.check):
                with pytest.raises(ValueError, match="run it again"):
                    read()


def test_a_trace_holds_sub_layers_and_not_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt")
    kept, again = both_ways(model, monkeypatch)
    block = model.module.decoder.blocks[0]
    module, hidden = weakref.ref(model.module), weakref.ref(block.feed_forward)
    del model, block
    gc.collect()
    assert module() is hidden() is None
    np.testing.assert_array_equal(again.attention[0].output, kept.attention[0].output)


def test_another_thread_and_another_pass_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt")
    kept, again = both_ways(model, monkeypatch, CHANGES["hidden"])
    read: list[np.ndarray] = []
    thread = Thread(target=lambda: read.append(again.attention[0].weights(1)))
    thread.start()
    thread.join()
    other = Recorder(Intervention(scale=3.0), "attention")
    with recording(other):
        read.append(again.attention[1].weights(1))
    assert not other.attention
    for found, expected in zip(read, kept.attention, strict=False):
        np.testing.assert_array_equal(found, expected.weights(1))


def test_it_runs_on_as_many_threads_as_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of two threads are rounded in another order."""
    model, used = build("gpt"), list[int]()
    with threads(2):
        _, again = both_ways(model, monkeypatch)
    fused = attention.fused

    def noted(*given: Any) -> torch.Tensor:
        used.append(torch.get_num_threads())
        return fused(*given)

    monkeypatch.setattr(attention, "fused", noted)
    with one_thread():
        assert again.attention[0].output.size
        assert torch.get_num_threads() == 1
    assert used == [2]


def test_it_travels_as_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, again = both_ways(build("translator"), monkeypatch)
    for ours, theirs in zip(again.attention, kept.attention, strict=True):
        for one, other in zip(
            arrays_of(pickle.loads(pickle.dumps(ours))), arrays_of(theirs), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@cases("what", [
    {"explicit": True},
    {"intervention": Intervention(dropout=0.3)},
    {"intervention": Intervention(weights=frozenset({("decoder.0.self", 0, 3, 1, 0.25)}))},
])  # fmt: skip
def test_steps_and_draws_are_those_of_the_pass(what, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt")
    expected = model.trace(sentence(model), **what)
    monkeypatch.setattr("model.run.model.RERUN_FROM", 0)
    found = model.trace(sentence(model), **what)
    draws = "weights" not in repr(what) or what.get("explicit")
    assert any(waits(found)) is not draws
    assert trace_file(found) == trace_file(expected)
