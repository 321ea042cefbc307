"""Models with random weights: each class of the notes, and mechanisms of later models."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from model.arithmetic.sizes import parameter_parts
from model.download.entries import Entry
from model.download.hub_folder import FLOAT_BYTES
from model.nn.config import TransformerConfig
from model.worked.notes import GPT, MATRICES, PAPER, TWO_LAYERS, NotesPlace

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
        "one head, no mask (1 layer × 1 head)",
        "Scaled dot-product attention with three maps, without biases. The class has no W_O, so W_O is the "
        "identity here; norm and shortcut around it are this app's.",
        GPT.at("class SelfAttention_v2"),
        shape="encoder",
        encoder_layers=1,
        keeps_heads=True,
        **_ONE_HEAD,
    ),
    _model(
        "notes-causal",
        "causal attention with dropout (1 layer × 1 head)",
        "One head with a look-ahead mask, which in training drops a tenth of its weights. W_O is the "
        "identity here; norm, shortcut and output matrix around it are this app's.",
        GPT.at("Implementing causal attention"),
        shape="decoder",
        decoder_layers=1,
        keeps_heads=True,
        attention_dropout=0.1,
        **_ONE_HEAD,
    ),
    _model(
        "notes-einsum",
        "einsum block (encoder, 1 layer × 8 heads)",
        "Four maps without biases, eight heads of 64; then the block around them: post-norm and a "
        "feed-forward with GELU, four times as wide.",
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
        "the paper's multi-head attention (1 layer × 8 heads)",
        "Four maps with biases, width 512, eight heads of 64. Norm and shortcut around them are this app's; "
        "the positions are the paper's sines and cosines.",
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
        "post-norm layer with ReLU (encoder, 1 layer × 4 heads)",
        "Attention, sum and norm, feed-forward with ReLU, sum and norm; without a mask, as the layer stands.",
        TWO_LAYERS.at("class TransformerLayer"),
        shape="encoder",
        encoder_layers=1,
        **_LAYER,
    ),
    _model(
        "notes-two-layers",
        "two layers (decoder, 2 layers × 4 heads)",
        "A decoder with post-norm and ReLU, learned positions, and an output matrix of its own with a bias.",
        TWO_LAYERS.at("class TwoLayerTransformer"),
        shape="decoder",
        decoder_layers=2,
        tied=False,
        logits_bias=True,
        **_LAYER,
    ),
    _model(
        "notes-gpt-124m",
        "the 124M configuration (decoder, 12 layers × 12 heads)",
        "163,009,536 parameters, because the output matrix is not shared with the token table: 652 MB. "
        "No biases in the maps of queries, keys and values.",
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
        "the paper's base model (encoder–decoder, 6 + 6 layers × 8 heads)",
        "Width 512, eight heads of 64, feed-forward 2,048, post-norm with ReLU, and one table for both texts "
        "and the output. It reads 32 tokens of each text here. From “Attention Is All You Need” (Vaswani et "
        "al. 2017), table 3.",
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
        "every stage of attention (decoder, 4 layers × 4 heads)",
        "Scores are capped (Gemma 2), get ALiBi's biases (Press et al. 2022), and each head has a sink "
        "(gpt-oss). Every other layer has a sliding window of 8 tokens (Mistral, Gemma 3). The cap of 3 is "
        "low, because random weights give small scores.",
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
        "T5's buckets of distances (encoder–decoder, 2 + 2 layers × 4 heads)",
        "Each stack has one learned number for each head and bucket of distances, added to the scores of all "
        "its layers; scores are not divided by √d_k. Layers as in T5 1.1 (Raffel et al. 2020). It reads 64 "
        "tokens of each text here.",
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
