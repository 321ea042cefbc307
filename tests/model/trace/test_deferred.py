"""Deferred logits and summands: the same numbers, computed when they are read."""

import gc
import weakref
from itertools import product

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.run_comparison import losses
from model.nn.intervention import Intervention
from model.serving.engine import Engine, Request, model_size
from tests.cases import cases
from tests.model.tiny import TINY, build, loaded, quiet, sentence, target

PREDICTING = [name for name in TINY if build(name).config.shape != "encoder"]
FIRST, SECOND = "stories", "translate-en-fr"
LONG = "the king said to the queen that " * 30  # beyond 2^20 logits of house-gpt


def are_computed(trace: Trace) -> bool:
    return "all" in vars(trace.prediction)


def summand_bytes(trace: Trace) -> int:
    """Bytes of what the embedding added up, but for a summand that is the stream's first state itself."""
    states = {states[0].__array_interface__["data"] for states in trace.residual.values()}
    arrays = [array for parts in trace.summands.values() for array in parts.values()]
    kept = {array.__array_interface__["data"]: array.nbytes for array in arrays}
    return sum(count for place, count in kept.items() if place not in states)


def both_ways(model: Model, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    kept = model.trace(sentence(model), target(model), record="full")
    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    return kept, model.trace(sentence(model), target(model), record="full")


@cases("name", PREDICTING)
def test_they_are_those_that_the_pass_would_have_ended_with(
    name, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, deferred = both_ways(build(name), monkeypatch)
    ours, theirs = kept.prediction, deferred.prediction
    assert ours.shape == theirs.shape == ours.all.shape
    for position in (0, -1):
        np.testing.assert_allclose(theirs.after(position), ours.all[position], atol=1e-5)
    np.testing.assert_allclose(theirs.rows(1, 3), ours.all[1:3], atol=1e-5)
    assert not are_computed(deferred)
    assert deferred.nbytes == kept.nbytes - summand_bytes(kept)
    np.testing.assert_array_equal(deferred.logits, kept.logits)
    np.testing.assert_array_equal(losses(deferred), losses(kept))
    assert are_computed(deferred)
    np.testing.assert_array_equal(theirs.after(-1), ours.all[-1])
    assert not theirs.all.flags.writeable
    for position in (len(theirs.all), -len(theirs.all) - 1):
        with pytest.raises(ValueError, match="has positions"):
            theirs.after(position)


def test_what_else_is_recorded_does_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, deferred = both_ways(build("gpt"), monkeypatch)
    assert [norm.name for norm in kept.norms] == [norm.name for norm in deferred.norms]
    for ours, theirs in zip(kept.residual["decoder"], deferred.residual["decoder"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert deferred.check() < 1e-5


@cases("positions, name", product([True, False], TINY))
def test_the_summands_are_read_from_the_tables(
    positions, name, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, intervention = build(name), Intervention(positions=positions)
    kept = model.trace(sentence(model), target(model), intervention)
    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    deferred = model.trace(sentence(model), target(model), intervention)
    assert kept.summands.keys() == deferred.summands.keys()
    for stack, parts in kept.summands.items():
        assert list(parts) == list(deferred.summands[stack])
        for summand in parts:
            np.testing.assert_array_equal(deferred.summands[stack][summand], parts[summand])
            assert not deferred.summands[stack][summand].flags.writeable


def test_of_a_long_text_they_are_computed_when_they_are_read() -> None:
    model = loaded("house-gpt")
    trace = model.trace(model.truncate(LONG))
    assert trace.prediction.nbytes >= 4 * 2**20
    assert not are_computed(trace)
    np.testing.assert_allclose(
        trace.prediction.rows(3, 9), model.unembed(trace.residual["decoder"][-1])[3:9], atol=1e-4
    )
    assert not are_computed(trace)
    assert trace.logits is not None
    assert are_computed(trace)


def test_weights_that_were_changed_meanwhile_give_no_logits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build("gpt")
    kept, deferred = both_ways(model, monkeypatch)
    before = np.array(kept.logits)
    model.module.embedding.tokens.weight.add_(1.0)
    with pytest.raises(ValueError, match="run it again"):
        deferred.prediction.after(-1)
    with pytest.raises(ValueError, match="run it again"):
        deferred.embeddings.sum()
    np.testing.assert_array_equal(kept.logits, before)


def test_a_trace_does_not_keep_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt")
    kept, deferred = both_ways(model, monkeypatch)
    module, expected = weakref.ref(model.module), np.array(kept.logits)
    del model
    gc.collect()
    assert module() is None
    np.testing.assert_array_equal(deferred.logits, expected)


def test_the_traces_of_a_model_go_with_it() -> None:
    engine = Engine(model_bytes=max(model_size(loaded(name)) for name in (FIRST, SECOND)))
    engine.trace(Request(FIRST, "The cat sat"), quiet)
    engine.trace(Request(FIRST, "The dog sat"), quiet)
    assert engine.holdings.traces == 2
    kept = engine.trace(Request(SECOND, "the cat sleeps"), quiet)
    assert engine.holdings.models == (SECOND,)
    assert engine.holdings.traces == 1
    assert engine.trace(Request(SECOND, "the cat sleeps"), quiet) is kept
