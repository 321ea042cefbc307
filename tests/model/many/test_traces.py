"""Many texts give the traces that they give one by one, whatever their lengths, and hold no memory."""

import gc
import weakref
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
import pytest
import torch

from model import Intervention, Model, TextTooLongError, Trace
from model.many import trace_all
from model.nn.patches import Patch
from model.trace.lazy import arrays_of
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, sentence

CLOSE = 1e-5  # of the largest number of an array
FAMILIES = ("gpt2", "llama", "opt", "mistral", "gpt_oss", "mixtral", "bert")
PADDING_READ = ("mpt", "mobilebert")  # by the length of the batch, and by a token's neighbour


def texts_of(whole: str) -> list[str]:
    """Of several lengths, more than one batch of three."""
    words = whole.split()
    return [" ".join(words[:count]) for count in (len(words), 3, 1, 5, 3, len(words) - 1, 2)]


def assert_alike(batched: Trace, alone: Trace) -> None:
    assert (batched.text, batched.tokens) == (alone.text, alone.tokens)
    assert batched.target_tokens == alone.target_tokens
    assert batched.intervention == alone.intervention
    for ours, theirs in zip(batched.attention, alone.attention, strict=True):
        assert (ours.name, ours.sizes) == (theirs.name, theirs.sizes)
        assert np.array_equal(allowed(ours.mask, ours.sizes), allowed(theirs.mask, theirs.sizes))
        assert_close(ours.weights(), theirs.weights())
        assert_arrays(ours, theirs)
    for name in ("norms", "feed_forward", "experts"):
        if name not in batched.unproven:
            for ours, theirs in zip(getattr(batched, name), getattr(alone, name), strict=True):
                assert ours.name == theirs.name
                assert_arrays(ours, theirs)
    for stack in () if "stream" in batched.unproven else alone.residual:
        for ours, theirs in zip(batched.residual[stack], alone.residual[stack], strict=True):
            assert_close(ours, theirs)
    for stack in () if "embedding" in batched.unproven else alone.summands:
        for part, theirs in alone.summands[stack].items():
            assert_close(batched.summands[stack][part], theirs)
    if alone.prediction is not None and "logits" not in alone.unproven:
        assert batched.logits is not None
        assert_close(batched.logits, alone.prediction.all)


def allowed(mask: np.ndarray | None, sizes: tuple[int, int, int]) -> np.ndarray:
    return np.broadcast_to(True if mask is None else mask, sizes)


def assert_arrays(ours: object, theirs: object) -> None:
    """Masks apart: of a short text alone a sliding window hides nothing, so the kernel makes its mask."""
    numbers = ([one for one in arrays_of(of) if one.dtype.kind == "f"] for of in (ours, theirs))
    for one, other in zip(*numbers, strict=True):
        assert_close(one, other)


def assert_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    assert not ours.flags.writeable
    assert ours == pytest.approx(theirs, abs=CLOSE * max(1.0, float(np.abs(theirs).max())))


@pytest.mark.slow
def test_each_text_gives_what_it_gives_alone(model: Model) -> None:
    texts = texts_of(sentence(model))
    batched = list(trace_all(model, texts, batch=3, record="full"))
    for text, trace in zip(texts, batched, strict=True):
        assert_alike(trace, model.trace(text, record="full"))


@pytest.mark.slow
@cases("family", (*FAMILIES, *PADDING_READ))
def test_so_it_does_in_the_families_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    texts = texts_of(hub_models.TEXT)
    for text, trace in zip(texts, trace_all(model, texts, batch=4, record="full"), strict=True):
        assert_alike(trace, model.trace(text, record="full"))


FIRST = "decoder.0.self"


@cases(
    "intervention",
    [
        Intervention(ablated=frozenset({(FIRST, 1)})),
        Intervention(hidden=frozenset({0})),
        Intervention(window=2),
        Intervention(scale=0.3),
        Intervention(positions=False),
        Intervention(weights=frozenset({(FIRST, 1, 0, 0, 0.25)})),
        Intervention(stream=frozenset({(FIRST, 0, 2, 3.0)})),
        # These let padding be read, or draw for one length:
        Intervention(mask="none"),
        Intervention(fill=0.0),
        Intervention(fill=-10.0),  # so little that a trial takes it for rounding
        Intervention(dropout=0.5),
    ],
)
def test_an_intervention_changes_each_text_as_it_does_alone(intervention) -> None:
    model = loaded("gpt")
    texts = texts_of(sentence(model))
    changed = list(trace_all(model, texts, intervention=intervention, batch=3))
    for text, trace in zip(texts, changed, strict=True):
        assert_alike(trace, model.trace(text, intervention=intervention))
    plain = model.trace(texts[0])
    assert any(
        not np.array_equal(one.weights(), other.weights())
        for one, other in zip(changed[0].attention, plain.attention, strict=True)
    )


def test_parts_of_another_text_are_put_into_each() -> None:
    model = loaded("gpt")
    patch = Patch(model.name, "a dog saw", frozenset({("head", FIRST, 1)}))
    texts = ["the cat saw", "the lion kills"]
    change = Intervention(patch=patch)
    for text, trace in zip(texts, trace_all(model, texts, intervention=change), strict=True):
        assert_alike(trace, model.trace(text, intervention=change))


@cases("name", ["gpt", "bert"])
def test_one_at_a_time_gives_the_same_bits(name) -> None:
    model = loaded(name)
    texts = texts_of(sentence(model))
    for text, trace in zip(texts, trace_all(model, texts, batch=1), strict=True):
        alone = model.trace(text)
        for ours, theirs in zip(trace.attention, alone.attention, strict=True):
            assert np.array_equal(ours.output, theirs.output)


@cases("name", ["gpt", "bert", "translator"])
def test_texts_are_read_as_they_are_needed_and_traces_are_not_kept(name) -> None:
    model = loaded(name)
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for text in cycle(texts_of(sentence(model))):
            read += 1
            yield text

    alive: list[weakref.ref[Trace]] = []
    most: list[int] = []
    passes = trace_all(model, endless(), batch=4)
    assert read == 0
    for trace in islice(passes, 40):
        alive = [one for one in alive if one() is not None] + [weakref.ref(trace)]
        most.append(len(alive))
    assert max(most) <= 2  # the last one, while the next is made
    assert read <= 40 + 4 + 1
    passes.close()  # type: ignore[attr-defined]
    del trace
    gc.collect()
    assert all(one() is None for one in alive)


def test_a_trace_holds_its_own_text_alone() -> None:
    model = loaded("gpt")
    texts = texts_of(sentence(model))
    for trace, text in zip(trace_all(model, texts, batch=7), texts, strict=True):
        assert trace.nbytes == model.trace(text).nbytes
        for array in (*trace.residual["decoder"], *arrays_of(trace.attention[0])):
            held: Any = array
            while isinstance(held, np.ndarray) and held.base is not None:
                held = held.base
            assert isinstance(held, torch.Tensor)
            assert held.untyped_storage().nbytes() == array.nbytes


def test_a_text_that_cannot_be_run_is_named() -> None:
    model = loaded("gpt")
    for texts, kind, number in (
        (["the cat", " "], ValueError, 1),
        (["the cat", "the dog", "the " * 30], TextTooLongError, 2),
    ):
        for batch in (1, 4):
            with pytest.raises(kind) as refusal:
                list(trace_all(model, texts, batch=batch))
            assert f"text {number}" in refusal.value.__notes__[0]
    with pytest.raises(ValueError, match="Position 3 cannot be hidden"):
        list(trace_all(model, ["the cat"], intervention=Intervention(hidden=frozenset({3}))))
    with pytest.raises(ValueError, match="batch is 0"):
        trace_all(model, [], batch=0)


def test_no_text_gives_no_trace() -> None:
    assert list(trace_all(loaded("gpt"), [])) == []
