"""Biases of positions in our own layers, T5's buckets and ALiBi's slopes; and every stage at once."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from model import Intervention, Model, load_model
from model.loading.random_weights import with_random_weights
from model.loading.untrained import UNTRAINED_BY_NAME
from model.nn.biases import alibi_slopes, distance_buckets
from model.nn.config import TransformerConfig
from tests.cases import cases

TEXT = "The cat sat on the mat, and the dog saw the cat on the mat"
TARGET = "the dog saw the cat"


def test_a_bucket_is_t5s_own(subtests: pytest.Subtests) -> None:
    for two_ways, (count, farthest) in product([True, False], [(32, 128), (16, 32), (8, 20)]):
        with subtests.test(two_ways=two_ways, count=count):
            distance = torch.arange(-300, 301)
            theirs = T5Attention._relative_position_bucket(distance, two_ways, count, farthest)
            ours = distance_buckets(distance, count, farthest, two_ways=two_ways)
            assert torch.equal(ours, theirs)


@cases("heads", [1, 4, 6, 8, 12, 20])
def test_slopes_are_those_of_bloom(heads) -> None:
    grown = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)
    np.testing.assert_allclose(alibi_slopes(heads), grown[:, 0, 1], rtol=1e-6)


@pytest.fixture(scope="module")
def buckets() -> Model:
    return load_model("distance-buckets", device="cpu")


@pytest.fixture(scope="module")
def stages() -> Model:
    return load_model("all-stages", device="cpu")


def as_t5(model: Model) -> T5ForConditionalGeneration:
    """The library's T5 with the weights of ours."""
    config, state = model.config, model.module.state_dict()
    theirs = T5ForConditionalGeneration(
        T5Config(
            vocab_size=config.d_vocab,
            d_model=config.d_model,
            d_kv=config.head_width,
            d_ff=config.d_mlp,
            num_layers=config.encoder_layers,
            num_decoder_layers=config.decoder_layers,
            num_heads=config.heads,
            relative_attention_num_buckets=config.buckets,
            relative_attention_max_distance=config.farthest,
            layer_norm_epsilon=config.epsilon,
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
            attn_implementation="eager",
        )
    )
    theirs.lm_head.weight = nn.Parameter(state["output.weight"])  # the library ties it else
    theirs.load_state_dict(dict(_t5s_names(state, config)))
    return theirs.eval()


def _t5s_names(state: dict[str, Tensor], config: TransformerConfig) -> Any:
    letters = {"query": "q", "key": "k", "value": "v", "output": "o"}
    for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens"):
        yield f"{name}.weight", state["embedding.tokens.weight"]
    yield "lm_head.weight", state["output.weight"]
    for stack, kinds in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        yield f"{stack}.final_layer_norm.weight", state[f"{stack}.final_norm.gamma"]
        yield (
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            state[f"{stack}.position_bias.table.weight"],
        )
        for layer in range(getattr(config, f"{stack}_layers")):
            ours = f"{stack}.blocks.{layer}"
            for at, kind in enumerate((*kinds, "feed_forward")):
                theirs = f"{stack}.block.{layer}.layer.{at}"
                norm = "feed_forward_norm" if kind == "feed_forward" else f"{kind}_norm"
                yield f"{theirs}.layer_norm.weight", state[f"{ours}.{norm}.gamma"]
                if kind == "feed_forward":
                    maps = {"gate": "wi_0", "w_in": "wi_1", "w_out": "wo"}
                    within, part = "feed_forward", "DenseReluDense"
                else:
                    maps, within = letters, f"{kind}_attention"
                    part = "SelfAttention" if kind == "self" else "EncDecAttention"
                for own, their in maps.items():
                    weight = state[f"{ours}.{within}.{own}.weight"]
                    yield f"{theirs}.{part}.{their}.weight", weight


def test_with_the_same_weights_it_is_hugging_faces_t5(buckets: Model) -> None:
    trace = buckets.trace(TEXT, TARGET, record="full")
    fed = {
        "input_ids": torch.tensor([[token.id for token in trace.tokens]]),
        "decoder_input_ids": torch.tensor([[token.id for token in trace.target_tokens]]),
    }
    with torch.inference_mode():
        theirs = as_t5(buckets)(**fed, output_attentions=True)
    expected = list(theirs.encoder_attentions)
    for pair in zip(theirs.decoder_attentions, theirs.cross_attentions, strict=True):
        expected += pair
    for attention, weights in zip(trace.attention, expected, strict=True):
        assert (attention.bias is None) == (attention.kind == "cross")
        assert attention.scale == 1.0
        for head in range(attention.heads):
            np.testing.assert_allclose(attention.weights(head), weights[0, head], atol=1e-5)
    np.testing.assert_allclose(trace.logits, theirs.logits[0], atol=1e-4)
    assert trace.check() < 1e-4


def by_hand(model: Model, trace: Any, layer: int, head: int, without: str) -> np.ndarray:
    """(query, key): a head's weights from its recorded queries and keys, each stage written out."""
    record, config = trace.attention[layer], model.config
    query, key = (x[head].astype(np.float64) for x in (record.query, record.key))
    scores = query @ key.T / math.sqrt(config.head_width)
    if without != "cap":
        scores = 3 * np.tanh(scores / 3)
    back = np.arange(len(scores))[:, None] - np.arange(len(scores))
    if without != "bias":
        scores -= back / 4 ** (head + 1)
    seen = (back >= 0) & ((back < 8) | (layer % 2 == 1))
    grown = np.exp(scores) * seen
    sink = model.module.state_dict()[f"decoder.blocks.{layer}.self_attention.sinks"][head]
    total = grown.sum(-1) + (0 if without == "sinks" else math.exp(sink))
    return grown / total[:, None]


@cases("without, explicit", product(["", "cap", "bias", "sinks"], [False, True]))
def test_every_stage_is_what_its_formula_says(without, explicit, stages: Model) -> None:
    """ALiBi's slopes of four heads are 1/4, 1/16, 1/64 and 1/256."""
    changed = Intervention(**{without: False}) if without else Intervention()
    trace = stages.trace(TEXT, intervention=changed, explicit=explicit)
    for record in trace.attention:
        for head in range(record.heads):
            expected = by_hand(stages, trace, record.layer, head, without)
            np.testing.assert_allclose(record.weights(head), expected, atol=1e-5)
        assert record.window == (8 if record.layer % 2 == 0 else None)
    assert trace.check() < 1e-4


def test_one_bias_is_recorded_once_for_all_layers(stages: Model) -> None:
    """A pass on another device would else copy it to the CPU for each layer."""
    first, *others = stages.trace(TEXT).attention
    assert first.bias is not None
    assert others
    assert all(other.bias is first.bias for other in others)


def test_padding_beside_a_text_changes_nothing(stages: Model) -> None:
    """A window and a bias count distances, so that padding in front moves nothing."""
    ids = torch.tensor([[token.id for token in stages.tokens(TEXT)]])
    padded = torch.cat([torch.zeros_like(ids[:, :3]), ids], 1)
    real = torch.arange(padded.shape[1])[None] >= 3
    with torch.inference_mode():
        alone, beside = stages.module(ids), stages.module(padded, padding=real)
    np.testing.assert_allclose(beside[:, 3:], alone, atol=1e-4)


def test_only_what_a_config_asks_for_is_built() -> None:
    plain = with_random_weights(UNTRAINED_BY_NAME["notes-causal"])
    assert not [name for name in plain.state_dict() if "bias" in name or "sinks" in name]
    for wrong in ({"positions": "buckets", "buckets": 3, "farthest": 9}, {"cap": -1.0}):
        with pytest.raises(ValueError, match=r"Buckets|cap"):
            TransformerConfig("decoder", 8, 8, 8, 2, decoder_layers=1, **wrong)
