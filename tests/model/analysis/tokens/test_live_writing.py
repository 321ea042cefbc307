"""Live writing: its texts are those of passes over the whole text; and what shorter caches do."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch

from model import Model, load_model
from model.analysis.tokens import live_writing as live
from model.analysis.tokens.live_writing import (
    Choice,
    Writing,
    live_writing,
    log_probabilities_of,
    shorter_caches,
    written,
)
from model.analysis.tokens.prediction import Sampling, log_probabilities
from model.nn.key_value_cache import Eviction
from model.trace.arrays import Array, Wide
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, of_shape, sentence

GREEDY = Choice(Sampling())
DRAWN = Choice(Sampling(temperature=1.3, top_k=9), seed=3)
STEPS = 5


def opened(name: str) -> tuple[Model, str]:
    if name in hub_models.FAMILIES:
        return hub_models.loaded(name), hub_models.TEXT
    return loaded(name), sentence(loaded(name))


def last(model: Model, text: str, choice: Choice = GREEDY, **more: object) -> Writing:
    made = live_writing(model, model.tokens(text), choice, steps=STEPS, **more)  # type: ignore[arg-type]
    *_, found = made
    return found


def step_by_step(model: Model, text: str, choice: Choice) -> tuple[int, ...]:
    """The same text, a whole pass for each token."""
    target = "" if model.config.shape == "encoder-decoder" else None

    def choose(ids: tuple[int, ...]) -> int:
        trace = model.trace(text, target, continued=ids)
        return choice.of(trace.require_prediction().after(-1), len(ids))

    return written(choose, steps=STEPS, end=model.tokenizer.end)


@cases("name", [*of_shape("decoder", "encoder-decoder"), "llama", "mistral", "bart"])
def test_the_text_is_that_of_whole_passes(name) -> None:
    model, text = opened(name)
    target = "" if model.config.shape == "encoder-decoder" else None
    for choice in (GREEDY, DRAWN):
        ids = step_by_step(model, text, choice)
        states = live_writing(model, model.tokens(text), choice, steps=STEPS)
        for known, found in enumerate(states, 1):
            assert found.ids == ids[: len(found.ids)]
            if found.done == found.total:
                break
            trace = model.trace(text, target, continued=ids[: known - 1])
            prediction = trace.require_prediction().after(-1)
            own = log_probabilities(prediction[None])[0, ids[known - 1]]
            assert found.steps[-1].log_probability == pytest.approx(own, abs=1e-4)
            assert found.steps[-1].read == len(trace.tokens_of("decoder"))
        assert found.ids == ids


def test_a_compared_step_runs_the_whole_text_and_gives_the_same_logits() -> None:
    model, text = opened("gpt")
    turns = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append(1)
        yield

    found = last(model, text, compared=True, turn=turn)
    assert len(turns) == 2 * len(found.steps)
    for step in found.steps:
        assert (step.apart or 0.0) < 1e-4
        assert min(step.seconds, step.without or 0.0) > 0
    assert [step.new for step in found.steps] == [len(model.tokens(text)), *[1] * (STEPS - 1)]
    assert all(step.without is None for step in last(model, text).steps)


def test_a_bias_of_the_logits_counts() -> None:
    model = load_model("notes-two-layers")
    text = "the cat sat"
    bias = model.module.logits_bias  # type: ignore[attr-defined]
    with torch.no_grad():
        bias[11] = 30.0
    found = last(model, text)
    assert found.ids == step_by_step(model, text, GREEDY) == (11,) * STEPS
    at_once = log_probabilities_of(model, model.tokens(text), found.ids)
    np.testing.assert_allclose(at_once, [step.log_probability for step in found.steps], atol=1e-4)


@cases("name", ["gpt", "translator", "llama", "mistral"])
def test_what_is_kept_is_counted_in_bytes_of_the_tensors(name) -> None:
    model, text = opened(name)
    config = model.config
    eviction = Eviction(3, first=1)
    for step in last(model, text, eviction=eviction).steps:
        for sublayer, kept in step.kept.items():
            numbers = kept.tokens * config.key_head_count * config.head_width
            assert kept.nbytes == 2 * 4 * numbers
            if not sublayer.endswith("cross"):
                assert kept.tokens <= 3


@cases("name", ["gpt", "llama", "translator", "bart"])
def test_a_text_read_at_once_under_an_eviction_is_as_probable_as_token_by_token(name) -> None:
    model, text = opened(name)
    for eviction in (Eviction(), Eviction(3), Eviction(2, first=1)):
        found = last(model, text, eviction=eviction)
        step_by_step = [step.log_probability for step in found.steps]
        at_once = log_probabilities_of(model, model.tokens(text), found.ids, eviction)
        np.testing.assert_allclose(at_once, step_by_step, atol=1e-4)


def test_only_the_rows_of_written_tokens_become_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of a long text would take gigabytes."""
    model, text = opened("llama")
    seen = []

    def counted(logits: Array) -> Wide:
        seen.append(logits.shape)
        return log_probabilities(logits)

    monkeypatch.setattr(live, "log_probabilities", counted)
    found = log_probabilities_of(model, model.tokens(text), (3, 5))
    trace = model.trace(text, continued=(3, 5))
    rows = log_probabilities(trace.require_prediction().rows(0, len(trace.tokens)))
    np.testing.assert_allclose(found, [rows[-3, 3], rows[-2, 5]], atol=1e-5)
    assert seen == [(2, rows.shape[1])]


def test_three_caches_are_compared_on_the_text_that_the_first_one_wrote() -> None:
    model, text = opened("gpt")
    compare = partial(shorter_caches, model, model.tokens(text), GREEDY, steps=STEPS)
    *states, found = compare(window=3, first=1)
    assert all(state.done < state.total for state in states)
    assert found.done == found.total == 3 * STEPS
    whole, window, both = found.found
    assert [one.eviction for one in found.found] == [Eviction(), Eviction(3), Eviction(3, first=1)]
    for one in found.found:
        assert one.writing.ids == last(model, text, eviction=one.eviction).ids
        read = log_probabilities_of(model, model.tokens(text), whole.writing.ids, one.eviction)
        np.testing.assert_array_equal(one.of_whole, read)
    np.testing.assert_array_equal(whole.of_whole, whole.of_own)
    assert not np.array_equal(window.of_whole, both.of_whole)
    *_, wide = compare(window=500, first=1)  # drops nothing
    np.testing.assert_allclose(wide.found[1].of_whole, whole.of_whole, atol=1e-5)


def test_an_encoder_and_more_tokens_than_the_context_holds_are_refused() -> None:
    encoder, text = opened("bert")
    with pytest.raises(ValueError, match="does not continue it"):
        last(encoder, text)
    model, text = opened("gpt")
    with pytest.raises(ValueError, match="tokens"):
        list(live_writing(model, model.tokens(text), GREEDY, steps=99))
