"""How many parameters two models have, part by part."""

from __future__ import annotations

import math

import numpy as np

from model.arithmetic import sizes
from model.nn.config import TransformerConfig
from model.worked import latex
from model.worked.example import Step, Values, given, whole, worked
from model.worked.printed import Printed
from model.worked.source import GPT, INTRODUCTION, TWO_LAYERS

_CONFIGURATION = (
    "vocabulary", "context", "width", "heads", "layers", "dropout", "qkv_bias",
)  # fmt: skip
_LABELS = ("Vocabulary", "Context", "Width", "Heads", "Layers", "Dropout", "Biases on Q, K, V")


def _sum_of(title: str, parts: dict[str, int], comment: str | None = None) -> Step:
    total = sum(parts.values())
    listed = " + ".join(latex.number(count) for count in parts.values())
    return Step(title, r"\sum \text{parts}", np.array(total), rf"{listed} = {latex.number(total)}",
                comment=comment)  # fmt: skip


@worked(
    "gpt-2-parameters",
    "§11",
    "Where the parameters of GPT-2 small are",
    "Most parameters lie in the feed-forward layers and in the token embedding. "
    "Tying the output to the embedding saves one of two large matrices.",
    whole("vocabulary", "Vocabulary", 50_257, 1, 1_000_000),
    whole("context", "Context length", 1024, 1, 1_000_000),
    whole("width", "Width", 768, 1, 16_384),
    whole("heads", "Heads", 12, 1, 128),
    whole("layers", "Layers", 12, 1, 200),
    given("dropout", "Dropout", 0.1, lowest=0, highest=0.9),
    whole("qkv_bias", "Biases on Q, K, V (0 or 1)", 0, 0, 1),
)
def _gpt_2(values: Values) -> tuple[Step, ...]:
    vocabulary, context, width, heads, layers = (int(values[name]) for name in _CONFIGURATION[:5])
    head = sizes.head_width(width, heads)
    parts = sizes.parameter_parts(
        TransformerConfig("decoder", vocabulary, context, width, heads, decoder_layers=layers,
                          hidden=4 * width, qkv_bias=bool(values["qkv_bias"]), tied=False)
    )  # fmt: skip
    biases = 3 * width * layers
    counts = np.array(list(parts.values()), dtype=np.float64)
    tied = {name: count for name, count in parts.items() if name != "Output matrix"}
    with_biases = dict(tied) if values["qkv_bias"] else tied | {"Biases on Q, K, V": biases}
    return (
        Step("The configuration", r"V,\ n,\ d,\ h,\ L,\ p",
             np.array([values[name] for name in _CONFIGURATION]),
             rf"V = {latex.number(vocabulary)},\ n = {latex.number(context)},\ d = {width},\ "
             rf"h = {heads},\ L = {layers}", columns=_LABELS,
             notes=Printed(
                 "50257 1024 768 12 12 0.1 False",
                 GPT.at("Chapter 4, Example input configuration"), 'emb_dim": 768')),
        Step("Width of each head", r"\frac{d}{h}", np.array(head), rf"\frac{{{width}}}{{{heads}}} = {head}",
             comment="Neither the number of heads nor dropout adds a parameter."),
        Step("Parameters of each part", r"V d,\quad n d,\quad L\,(4 d^2 + d),\quad \ldots", counts,
             rf"V d = {latex.number(vocabulary)} \cdot {width} = {latex.number(counts[0])}",
             columns=tuple(parts),
             comment="One layer has 4·d² + d in attention (W_O has a bias), "
             "8·d² + 5·d in the feed-forward and 4·d in two norms."),
        Step("Share of each part, in percent", r"100 \cdot \frac{\text{part}}{\text{total}}",
             100.0 * counts / counts.sum(), rf"\text{{token embedding: }} "
             rf"{latex.number(100.0 * counts[0] / counts.sum())}", columns=tuple(parts)),
        _sum_of("With a separate output matrix", parts),
        _sum_of("With the output tied to the token embedding", tied,
                "Weight tying uses the token embedding again as the output matrix."),
        _sum_of("GPT-2 itself: tied, with biases on Q, K and V", with_biases,
                "GPT-2 also has 3·d biases on Q, K and V in every layer."),
    )  # fmt: skip


@worked(
    "two-layer-decoder",
    "§12",
    "A two-layer decoder-only model",
    "Learned positions, post-LN, ReLU and an output matrix of its own. "
    f"The vocabulary is left open in “{TWO_LAYERS.title}”; 10,000 is that of "
    f"{INTRODUCTION.at('Final layer')}.",
    whole("vocabulary", "Vocabulary V", 10_000, 1, 1_000_000),
    whole("context", "Max length", 512, 1, 1_000_000),
    whole("width", "d_model", 256, 1, 16_384),
    whole("heads", "Heads", 4, 1, 128),
    whole("hidden", "d_ff", 1024, 1, 65_536),
    whole("layers", "Layers", 2, 1, 200),
)
def _two_layer(values: Values) -> tuple[Step, ...]:
    names = ("vocabulary", "context", "width", "heads", "hidden", "layers")
    vocabulary, context, width, heads, hidden, layers = (int(values[name]) for name in names)
    parts = sizes.parameter_parts(
        TransformerConfig("decoder", vocabulary, context, width, heads, decoder_layers=layers,
                          hidden=hidden, norm_place="post", activation="relu", tied=False)
    )  # fmt: skip
    parts["Output matrix and bias"] = parts.pop("Output matrix") + vocabulary
    counts = np.array(list(parts.values()), dtype=np.float64)
    fans = ((width, width), (width, hidden), (width, vocabulary))
    bounds = np.array([math.sqrt(6.0 / (one + other)) for one, other in fans])
    head = sizes.head_width(width, heads)
    return (
        Step("Width of each head", r"\frac{d}{h}", np.array(head), rf"\frac{{{width}}}{{{heads}}} = {head}"),
        Step("Parameters of each part", r"V d,\quad n d,\quad L\,(4 d^2 + 4 d),\quad \ldots",
             counts, rf"V d = {latex.number(vocabulary)} \cdot {width} = {latex.number(counts[0])}",
             columns=tuple(parts),
             comment="Post-LN has no norm after the last layer, and the output is not tied."),
        _sum_of("All parameters", parts),
        Step("Largest weight at the start (Xavier uniform)",
             r"\sqrt{\frac{6}{\text{inputs} + \text{outputs}}}", bounds,
             rf"\sqrt{{\frac{{6}}{{{width} + {width}}}}} = {latex.number(bounds[0])}",
             columns=("attention", "feed-forward", "output"),
             comment="Weights are drawn evenly between minus and plus this bound."),
    )  # fmt: skip
