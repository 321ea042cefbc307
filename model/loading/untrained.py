"""Models with random weights: each class of the notes, and mechanisms of later models."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from model.arithmetic.sizes import parameter_parts
from model.download.entries import Entry
from model.download.hub_folder import FLOAT_BYTES
from model.nn.config import TransformerConfig
from model.system.words import Words
from model.worked.notes import GPT, MATRICES, PAPER, TWO_LAYERS, NotesPlace

say = Words("loading.untrained")

UNTRAINED_TITLE = "Untrained"  # how the title of each of them begins
Tokens = Literal["house", "house with ends", "gpt2"]
HOUSE_TOKENS = 8_192  # of GPT-2's tokens, those that House GPT knows
VOCABULARY: dict[Tokens, int] = {
    "house": HOUSE_TOKENS,
    "house with ends": HOUSE_TOKENS + 2,  # one that begins a target, one that ends it
    "gpt2": 50_257,
}


@dataclass(frozen=True)
class UntrainedModel:
    """A config as a model.

    keeps_heads: W_O is the identity, because the class has none. xavier: matrices start as the class asks
    (Glorot and Bengio 2010), and not as PyTorch's layers do by themselves.
    """

    entry: Entry
    config: TransformerConfig
    tokens: Tokens
    keeps_heads: bool = False
    xavier: bool = False


def _model(
    name: str,
    title: str,
    about: str,
    source: NotesPlace | None,
    *,
    tokens: Tokens = "house",
    keeps_heads: bool = False,
    xavier: bool = False,
    **choices: Any,
) -> UntrainedModel:
    """source: the class of the notes; None for what a paper describes. choices: of the config. Lengths are
    512 unless given."""
    config = TransformerConfig(**{"d_vocab": VOCABULARY[tokens], "n_ctx": 512, **choices})
    where = "" if source is None else f" From {source}."
    entry = Entry(name, f"{UNTRAINED_TITLE}: {title}", config.shape, about + where, untrained=True)
    return UntrainedModel(entry, config, tokens, keeps_heads, xavier)


_POST: dict[str, Any] = {"norm_place": "post"}
_ALONE: dict[str, Any] = {"d_mlp": 0, "tied": False}  # attention without a feed-forward
_ONE_HEAD: dict[str, Any] = {
    **_ALONE,
    "d_model": 64,
    "heads": 1,
    "positions": "none",
    "qkv_bias": False,
    "output_bias": False,
}
_LAYER: dict[str, Any] = {
    "d_model": 256,
    "heads": 4,
    "d_mlp": 1_024,
    "activation": "relu",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "xavier": True,
    **_POST,
}
OF_THE_NOTES = (
    _model(
        "notes-second-class",
        say("head_mask_1_layer"),
        say("scaled_dot_product"),
        GPT.at("class SelfAttention_v2"),
        shape="encoder",
        encoder_layers=1,
        keeps_heads=True,
        **_ONE_HEAD,
    ),
    _model(
        "notes-causal",
        say("causal_attention_dropout"),
        say("head_look_ahead"),
        GPT.at("Implementing causal attention"),
        shape="decoder",
        decoder_layers=1,
        keeps_heads=True,
        attention_dropout=0.1,
        **_ONE_HEAD,
    ),
    _model(
        "notes-einsum",
        say("einsum_block_encoder"),
        say("four_maps_without"),
        MATRICES.at("class SelfAttention and class TransformerBlock"),
        shape="encoder",
        d_model=512,
        heads=8,
        encoder_layers=1,
        d_mlp=2_048,
        positions="none",
        qkv_bias=False,
        output_bias=False,
        dropout=0.1,
        **_POST,
    ),
    _model(
        "notes-multi-head",
        say("paper_multi_head"),
        say("four_maps_biases"),
        PAPER.at("class MultiHeadAttention"),
        shape="encoder",
        d_model=512,
        heads=8,
        encoder_layers=1,
        positions="sinusoidal",
        **_ALONE,
    ),
    _model(
        "notes-post-norm",
        say("post_norm_layer"),
        say("attention_sum_norm"),
        TWO_LAYERS.at("class TransformerLayer"),
        shape="encoder",
        encoder_layers=1,
        **_LAYER,
    ),
    _model(
        "notes-two-layers",
        say("layers_decoder_2"),
        say("decoder_post_norm"),
        TWO_LAYERS.at("class TwoLayerTransformer"),
        shape="decoder",
        decoder_layers=2,
        tied=False,
        logits_bias=True,
        **_LAYER,
    ),
    _model(
        "notes-gpt-124m",
        say("124_m_configuration"),
        say("163_009_536_parameters"),
        GPT.at("GPT_CONFIG_124M and class GPTModel"),
        tokens="gpt2",
        shape="decoder",
        n_ctx=1_024,
        d_model=768,
        heads=12,
        decoder_layers=12,
        d_mlp=3_072,
        activation="gelu_tanh",
        qkv_bias=False,
        tied=False,
        dropout=0.1,
        attention_dropout=0.1,
    ),
    _model(
        "paper-base",
        say("paper_base_model"),
        say("width_512_eight"),
        None,
        tokens="house with ends",
        shape="encoder-decoder",
        n_ctx=32,
        d_model=512,
        heads=8,
        encoder_layers=6,
        decoder_layers=6,
        d_mlp=2_048,
        activation="relu",
        positions="sinusoidal",
        scaled_embedding=True,
        dropout=0.1,
        xavier=True,
        **_POST,
    ),
)
_OF_TODAY: dict[str, Any] = {
    "d_model": 128,
    "heads": 4,
    "norm": "rms",
    "qkv_bias": False,
    "output_bias": False,
    "hidden_bias": False,
    "xavier": True,
}
OF_TODAY = (
    _model(
        "all-stages",
        say("every_stage_attention"),
        say("scores_capped_gemma"),
        None,
        shape="decoder",
        decoder_layers=4,
        d_mlp=344,
        activation="swiglu",
        positions="alibi",
        cap=3.0,
        sinks=True,
        window=8,
        full_every=2,
        **_OF_TODAY,
    ),
    _model(
        "distance-buckets",
        say("5_buckets_distances"),
        say("stack_learned_number"),
        None,
        tokens="house with ends",
        shape="encoder-decoder",
        n_ctx=64,
        encoder_layers=2,
        decoder_layers=2,
        d_mlp=256,
        activation="geglu_tanh",
        positions="buckets",
        buckets=16,
        farthest=32,
        scaled_scores=False,
        tied=False,
        **_OF_TODAY,
    ),
)
UNTRAINED = (*OF_THE_NOTES, *OF_TODAY)
UNTRAINED_BY_NAME = {model.entry.name: model for model in UNTRAINED}


@cache
def untrained_bytes(name: str) -> int:
    """Bytes that the weights of a model take."""
    return sum(parameter_parts(UNTRAINED_BY_NAME[name].config).values()) * FLOAT_BYTES
