"""Logits and summands that are made when they are asked for: the same numbers, no more than is read."""

import gc
import weakref

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.run_comparison import losses
from model.nn.intervention import Intervention
from model.serving.engine import Engine, Request, model_size
from tests.model.tiny import TINY, build, loaded, quiet, sentence, target

PREDICTING = [name for name in TINY if build(name).config.shape != "encoder"]
FIRST, SECOND = "stories", "translate-en-fr"
LONG = "the king said to the queen that " * 30  # beyond 2^20 logits of house-gpt


def are_made(trace: Trace) -> bool:
    return "all" in vars(trace.prediction)


def summand_bytes(trace: Trace) -> int:
    """Bytes of what the embedding added up, but for a summand that is the stream's first state itself."""
    states = {states[0].__array_interface__["data"] for states in trace.states.values()}
    arrays = [array for parts in trace.summands.values() for array in parts.values()]
    kept = {array.__array_interface__["data"]: array.nbytes for array in arrays}
    return sum(count for place, count in kept.items() if place not in states)


def early_and_late(model: Model, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    early = model.trace(sentence(model), target(model), record="full")
    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    return early, model.trace(sentence(model), target(model), record="full")


@pytest.mark.parametrize("name", PREDICTING)
def test_they_are_those_that_the_pass_would_have_ended_with(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = early_and_late(build(name), monkeypatch)
    ours, theirs = early.prediction, late.prediction
    assert ours is not None
    assert theirs is not None
    assert ours.shape == theirs.shape == ours.all.shape
    for position in (0, -1):
        np.testing.assert_allclose(theirs.after(position), ours.all[position], atol=1e-5)
    np.testing.assert_allclose(theirs.rows(1, 3), ours.all[1:3], atol=1e-5)
    assert not are_made(late)
    assert late.nbytes == early.nbytes - summand_bytes(early)
    np.testing.assert_array_equal(late.logits, early.logits)
    np.testing.assert_array_equal(losses(late), losses(early))
    assert are_made(late)
    np.testing.assert_array_equal(theirs.after(-1), ours.all[-1])
    assert not theirs.all.flags.writeable
    for position in (len(theirs.all), -len(theirs.all) - 1):
        with pytest.raises(IndexError):
            theirs.after(position)


def test_what_else_is_recorded_does_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = early_and_late(build("gpt"), monkeypatch)
    assert [norm.name for norm in early.norms] == [norm.name for norm in late.norms]
    for ours, theirs in zip(early.states["decoder"], late.states["decoder"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert late.check() < 1e-5


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("name", TINY)
def test_the_summands_are_read_from_the_tables(
    name: str, positions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, change = build(name), Intervention(positions=positions)
    early = model.trace(sentence(model), target(model), change)
    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    late = model.trace(sentence(model), target(model), change)
    assert early.summands.keys() == late.summands.keys()
    for stack, parts in early.summands.items():
        assert list(parts) == list(late.summands[stack])
        for summand in parts:
            np.testing.assert_array_equal(late.summands[stack][summand], parts[summand])
            assert not late.summands[stack][summand].flags.writeable


def test_of_a_long_text_they_are_made_when_they_are_read() -> None:
    model = loaded("house-gpt")
    trace = model.trace(model.kept(LONG))
    assert trace.prediction is not None
    assert trace.prediction.nbytes >= 4 * 2**20
    assert not are_made(trace)
    np.testing.assert_allclose(
        trace.prediction.rows(3, 9), model.unembed(trace.states["decoder"][-1])[3:9], atol=1e-4
    )
    assert not are_made(trace)
    assert trace.logits is not None
    assert are_made(trace)


def test_weights_that_were_changed_meanwhile_give_no_logits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build("gpt")
    early, late = early_and_late(model, monkeypatch)
    before = np.array(early.logits)
    model.module.embedding.tokens.weight.add_(1.0)
    assert late.prediction is not None
    with pytest.raises(ValueError, match="run it again"):
        late.prediction.after(-1)
    with pytest.raises(ValueError, match="run it again"):
        late.embeddings.sum()
    np.testing.assert_array_equal(early.logits, before)


def test_a_trace_does_not_keep_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt")
    early, late = early_and_late(model, monkeypatch)
    module, expected = weakref.ref(model.module), np.array(early.logits)
    del model
    gc.collect()
    assert module() is None
    np.testing.assert_array_equal(late.logits, expected)


def test_the_traces_of_a_model_go_with_it() -> None:
    engine = Engine(model_bytes=max(model_size(loaded(name)) for name in (FIRST, SECOND)))
    engine.trace(Request(FIRST, "The cat sat"), quiet)
    engine.trace(Request(FIRST, "The dog sat"), quiet)
    assert engine.holdings.traces == 2
    kept = engine.trace(Request(SECOND, "the cat sleeps"), quiet)
    assert engine.holdings.models == (SECOND,)
    assert engine.holdings.traces == 1
    assert engine.trace(Request(SECOND, "the cat sleeps"), quiet) is kept
