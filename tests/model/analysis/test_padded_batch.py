"""Two sentences as one padded batch: with the padding mask each gives what it gives alone."""

import numpy as np
import pytest

from model import Model
from model.analysis.padded_batch import padded_batch
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import SHAPES, loaded, of_shape, sentence

EXACT = 1e-4
FAMILIES = ("gpt2", "bert", "llama", "gpt_neox", "opt")


def assert_each_is_as_alone(model: Model, first: str, second: str) -> None:
    pair = padded_batch(model, first, second)
    counts = [one.count for one in pair]
    assert counts[0] > counts[1]
    for one, text in zip(pair, (first, second), strict=True):
        trace = model.trace(text)
        size = max(1.0, float(np.abs(trace.residual[trace.source]).max()))
        assert one.apart <= EXACT * size
        assert one.weights_apart() <= EXACT
        for attention in trace.attention:
            batched, head = one.masked[attention.name], attention.heads - 1
            inside = batched.weights(head)[: one.count, : one.count]
            assert inside == pytest.approx(attention.weights(head), abs=EXACT)
            assert not batched.weights(head)[:, ~one.padding].any()
            look_ahead = np.tri(len(one.tokens), dtype=bool)
            combined = one.padding & (look_ahead if attention.kind == "causal" else True)
            square = (len(one.tokens), len(one.tokens))
            mask = np.ones(square, bool) if batched.mask is None else batched.mask
            assert np.array_equal(mask, np.broadcast_to(combined, square))


@cases("name", [*of_shape("decoder", "encoder"), "notes-einsum"])
def test_each_sentence_of_the_batch_gives_what_it_gives_alone(name) -> None:
    model = loaded(name)
    text = sentence(model)
    assert_each_is_as_alone(model, text, " ".join(text.split()[:3]))


@cases("family", FAMILIES)
def test_so_it_does_in_the_families_of_the_hub(family) -> None:
    assert_each_is_as_alone(hub_models.loaded(family), hub_models.TEXT, "the cat saw")


@cases("name", ["bert", "minilm"])
def test_without_its_mask_padding_takes_weight_in_an_encoder(name) -> None:
    model = loaded(name)
    text = sentence(model)
    long, short = padded_batch(model, text, " ".join(text.split()[:3]))
    place = next(iter(short.open))
    assert short.taken(place, 0).min() > 0
    assert not long.taken(place, 0).any()
    assert short.apart_open > 100 * max(short.apart, 1e-7)
    assert long.apart_open <= EXACT


@cases("name", ["gpt", "llama", "stories"])
def test_a_look_ahead_mask_hides_padding_at_the_end_by_itself(name) -> None:
    model = loaded(name)
    text = sentence(model)
    _, short = padded_batch(model, text, " ".join(text.split()[:3]))
    place = next(iter(short.open))
    assert not short.taken(place, 0).any()
    assert short.apart_open <= EXACT
    rows_of_padding = short.open[place].weights(0)[short.count :, short.count :]
    assert rows_of_padding.any()


def test_an_encoder_decoder_is_refused_in_a_sentence() -> None:
    assert SHAPES["translator"] == "encoder-decoder"
    with pytest.raises(ValueError, match="reads a source and a target"):
        padded_batch(loaded("translator"), "the cat", "the")
