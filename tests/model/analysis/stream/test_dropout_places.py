"""Dropout at each place changes the stream as a pass does in which PyTorch drops the same values there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model import Model
from model.analysis.stream import feed_forward
from model.analysis.stream.feed_forward import Effect, dropped
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.tiny import build, loaded, sentence

RATE, SEED, LAYER = 0.3, 5, 0
MODELS = ("gpt-bytes", "stories", "minilm")  # pre-norm twice, post-norm


def traced(model: Model) -> Trace:
    return model.trace(sentence(model), record="full")


@contextmanager
def hooked(handle: torch.utils.hooks.RemovableHandle) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()


def put(values: np.ndarray) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)[None]


def instead_of_what_is_read(module: nn.Module, values: np.ndarray) -> Iterator[None]:
    return hooked(module.register_forward_pre_hook(lambda *_: (put(values),)))


def instead_of_what_is_given(module: nn.Module, values: np.ndarray) -> Iterator[None]:
    return hooked(module.register_forward_hook(lambda *_: put(values)))


def embedding(model: Model, trace: Trace) -> tuple[Effect, object]:
    states = trace.residual[trace.source][0]
    found = dropped(states, RATE, SEED)
    hook = instead_of_what_is_given(model.module.embedding, found.values)
    return feed_forward.of_embedding(states, found), hook


def output(model: Model, trace: Trace) -> tuple[Effect, object]:
    part = feed_forward.part_named(model, trace, f"{trace.source}.{LAYER}.self")
    found = dropped(part.added, RATE, SEED)
    hook = instead_of_what_is_given(model.layer(part.name).output, found.values)
    return feed_forward.of_output(part, found), hook


def neurons(model: Model, trace: Trace) -> tuple[Effect, object]:
    record = trace.feed_forward[LAYER]
    part = feed_forward.part_named(model, trace, record.name)
    found = dropped(record.hidden, RATE, SEED)
    hook = instead_of_what_is_read(model.module.w_out(record.name), found.values)
    return feed_forward.of_neurons(model, part, record.hidden, found), hook


def weights(model: Model, trace: Trace) -> tuple[Effect, object]:
    attention = trace.attention[LAYER]
    part = feed_forward.part_named(model, trace, attention.name)
    heads = range(attention.heads)
    drawn = [feed_forward.head_dropped(attention, head, RATE, SEED).values for head in heads]
    context = np.concatenate([drawn[head] @ attention.value[head] for head in heads], -1)
    hook = instead_of_what_is_read(model.layer(attention.name).output, context)
    return feed_forward.of_weights(model, attention, part, RATE, SEED), hook


PLACES: dict[str, tuple[Callable[[Model, Trace], tuple[Effect, object]], int]] = {
    "embedding": (embedding, 0),
    "weights": (weights, 1),
    "output": (output, 1),
    "neurons": (neurons, 2),
}  # with the number of the state that it changes first


@cases("name, place", product(MODELS, PLACES))
def test_the_stream_moves_as_in_a_pass_with_these_values(name, place) -> None:
    model = build(name) if name == "gpt-bytes" else loaded(name)
    trace = traced(model)
    of_place, state = PLACES[place]
    effect, hook = of_place(model, trace)
    with hook:
        changed = traced(model)

    def total(one: Trace) -> np.ndarray:
        """The state after the sum; in post-norm it is what the norm after it reads."""
        if model.config.norm_place == "pre" or state == 0:
            return one.residual[one.source][state]
        return [norm for norm in one.norms if "embedding" not in norm.name][state - 1].input

    np.testing.assert_allclose(effect.after, total(trace), atol=1e-4)
    np.testing.assert_allclose(effect.change, total(changed) - total(trace), atol=2e-4)
    assert effect.shares.mean() > 0.01


def test_each_head_has_a_draw_of_its_own() -> None:
    attention = traced(loaded("stories")).attention[0]
    first, second = (feed_forward.head_dropped(attention, head, 0.5, 0).kept for head in (0, 1))
    assert (first != second).any()


def test_a_pass_in_training_mode_moves_a_model_with_dropout_and_leaves_the_shared_one_alone() -> (
    None
):
    model = build("gpt-bytes", dropout=0.2, attention_dropout=0.1)
    trace = traced(model)
    before = torch.random.get_rng_state()
    first, again, other = (feed_forward.training_pass(model, trace, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(first.change, again.change)
    assert (first.change != other.change).any()
    assert first.shares.mean() > 0.01
    assert not model.module.training
    for state, same in zip(
        trace.residual["decoder"], traced(model).residual["decoder"], strict=True
    ):
        np.testing.assert_array_equal(state, same)


def test_a_model_without_dropout_or_too_large_has_no_such_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = loaded("stories")
    with pytest.raises(ValueError, match="no dropout of its own"):
        feed_forward.training_pass(model, traced(model), 0)
    monkeypatch.setattr(feed_forward, "LARGEST", 10)
    dropping = build("gpt-bytes", dropout=0.2)
    with pytest.raises(ValueError, match="too large to be copied"):
        feed_forward.training_pass(dropping, traced(dropping), 0)
