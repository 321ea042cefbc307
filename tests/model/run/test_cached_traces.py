"""A generation with its key–value cache, as one trace."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.nn.key_value_cache import KeyValueCache
from model.nn.steering import Steering
from model.trace.trace_file import read_trace, trace_file
from tests.model import hub_models
from tests.model.tiny import loaded

CLOSE = 1e-4
OWN = ("house-gpt", "gpt", "translator", "all-stages", "distance-buckets")
HUB = (
    *("gpt2", "mistral", "gemma3", "phi3", "bloom", "gpt_neo", "mixtral", "gpt_oss"),
    *("t5", "bart", "marian"),
)


def both(model: Model, text: Any, written: Any, **more: Any) -> tuple[Trace, Trace]:
    """The trace with a cache, and that of one whole pass."""
    more = {"continued": written, "record": "full", **more}
    return model.trace(text, cached=True, **more), model.trace(text, **more)


def assert_same_pass(joined: Trace, whole: Trace) -> None:
    assert joined.tokens == whole.tokens
    assert joined.target_tokens == whole.target_tokens
    assert joined.check() < CLOSE
    for own, other in zip(joined.attention, whole.attention, strict=True):
        assert (own.place, own.sizes, own.ablated) == (other.place, other.sizes, other.ablated)
        np.testing.assert_allclose(own.weights(), other.weights(), atol=1e-5)
        assert (own.mask is None) == (other.mask is None)
        assert own.mask is None or np.array_equal(own.mask, other.mask)
        assert [token.text for token in joined.keys_of(own)] == [
            token.text for token in whole.keys_of(other)
        ]
    pairs = [
        *((one.output, other.output) for one, other in zip(joined.norms, whole.norms, strict=True)),
        *(
            (one.hidden, other.hidden)
            for one, other in zip(joined.feed_forward, whole.feed_forward, strict=True)
        ),
        *(
            (one, other)
            for stack in whole.residual
            for one, other in zip(joined.residual[stack], whole.residual[stack], strict=True)
        ),
        *((joined.summands[stack]["tokens"], whole.summands[stack]["tokens"]) for stack in whole.summands),
    ]  # fmt: skip
    for one, other in [*pairs, (joined.logits, whole.logits)]:
        np.testing.assert_allclose(one, other, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("name", OWN)
def test_its_rows_are_those_of_one_whole_pass(name: str) -> None:
    model = loaded(name)
    text = "Tom Hill saw a red ball" if name == "house-gpt" else "the cat saw the mat"
    written = model.generate(text, limit=5)
    joined, whole = both(model, text, written)
    assert_same_pass(joined, whole)
    assert joined.nbytes < 1.1 * whole.nbytes  # a norm's input is a state of the stream, once
    again = read_trace(trace_file(joined))
    assert again.check() == joined.check()
    last = joined.target_tokens or joined.tokens
    assert [one.id for one in last[-len(written) :]] == [one.id for one in written]
    # Each written token is the likeliest after those before it.
    ids = joined.require_prediction().all[-len(written) - 1 : -1].argmax(-1)
    assert ids.tolist() == [one.id for one in written]


@pytest.mark.parametrize("family", HUB)
def test_so_are_those_of_the_librarys_models(family: str) -> None:
    model = hub_models.loaded(family)
    text = [token.id for token in hub_models.traced(model).tokens]
    assert_same_pass(*both(model, text, [3, 5, 2, 7]))


def test_a_changed_run_is_read_with_its_change(subtests: pytest.Subtests) -> None:
    model = loaded("house-gpt")
    width = np.linspace(-1, 1, model.config.d_model, dtype=np.float32)
    text = "Tom Hill saw a red ball"
    for change in (
        Intervention(ablated={("decoder.1.self", 7)}),
        Intervention(scale=0.1, positions=False),
        Intervention(scale=0.1, only={"decoder.2.self"}),
        Steering(width, "decoder.1.self", 2.0),
    ):
        with subtests.test(change=change):
            written = model.generate(text, limit=4, intervention=change)
            joined, whole = both(model, text, written, intervention=change)
            assert_same_pass(joined, whole)
            assert joined.intervention == whole.intervention != Intervention()


def test_a_read_target_is_one_pass_and_the_rest_goes_token_by_token() -> None:
    model = loaded("translator")
    joined, whole = both(model, "the cat saw the mat", [4, 6], target="le chat")
    assert_same_pass(joined, whole)
    assert (
        len(joined.target_tokens) == len(model.trace("the cat", target="le chat").target_tokens) + 2
    )
    own, alone = both(model, "the cat saw the mat", ())
    assert_same_pass(own, alone)  # the model's own translation


def test_what_is_not_read_with_a_cache_is_refused(subtests: pytest.Subtests) -> None:
    house, encoder = loaded("house-gpt"), loaded("minilm")
    for model, asked in (
        (house, {"intervention": Intervention(mask="none")}),
        (house, {"intervention": Intervention(hidden={1})}),
        (house, {"intervention": Intervention(fill=-1e4)}),
        (house, {"intervention": Intervention(dropout=0.1)}),
        (house, {"intervention": Intervention(stream={("decoder.1.self", 0, 1, 0.0)})}),
        (house, {"explicit": True}),
        (encoder, {}),
    ):
        with (
            subtests.test(model=model.name, **asked),
            pytest.raises(ValueError, match=r"cache|contin"),
        ):
            model.trace("Tom saw", cached=True, **asked)


def test_keys_that_are_not_those_of_the_passes_before_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As beams that change places would."""
    model, kept = loaded("house-gpt"), KeyValueCache.advance

    def other_beam(cache: KeyValueCache, tokens: int) -> None:
        kept(cache, tokens)
        for name, one in cache.kept.items():
            cache._kept[name] = replace(one, key=torch.roll(one.key, 1, -2))

    monkeypatch.setattr(KeyValueCache, "advance", other_beam)
    with pytest.raises(ValueError, match="one pass"):
        model.trace("Tom Hill saw", continued=[5, 6], cached=True)
