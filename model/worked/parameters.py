"""How many parameters two models have, part by part."""

import numpy as np

from model.arithmetic import sizes
from model.nn.config import TransformerConfig
from model.worked import latex
from model.worked.example import Sheet, given, whole, worked
from model.worked.source import INTRODUCTION, TWO_LAYERS

_LABELS = ("Vocabulary", "Context", "Width", "Heads", "Layers", "Dropout", "Biases on Q, K, V")


def _head_width(sheet: Sheet, width: int, heads: int) -> None:
    head = sizes.head_width(width, heads)
    sheet.step("Width of each head", r"\frac{d}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)


def _sum_of(sheet: Sheet, title: str, parts: dict[str, int]) -> None:
    total = sum(parts.values())
    sheet.step(title, r"\sum \text{parts}", total)
    sheet.numbers("@ = @", " + ".join(map(latex.number, parts.values())), total)


@worked(
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
def gpt_2_parameters(
    sheet: Sheet,
    vocabulary: int,
    context: int,
    width: int,
    heads: int,
    layers: int,
    dropout: float,
    qkv_bias: int,
) -> None:
    configuration = (vocabulary, context, width, heads, layers, dropout, qkv_bias)
    sheet.step("The configuration", r"V,\ n,\ d,\ h,\ L,\ p", configuration, _LABELS)
    sheet.numbers(r"V = @,\ n = @,\ d = @,\ h = @,\ L = @", *configuration[:5])
    _head_width(sheet, width, heads)
    sheet.remark("Neither the number of heads nor dropout adds a parameter.")
    parts = sizes.parameter_parts(
        TransformerConfig(
            "decoder", vocabulary, context, width, heads, decoder_layers=layers,
            d_mlp=4 * width, qkv_bias=bool(qkv_bias), tied=False,
        )
    )  # fmt: skip
    counts, names = np.array(list(parts.values())), tuple(parts)
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + d),\quad \ldots"
    sheet.step("Parameters of each part", formula, counts, names)
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark(
        "One layer has 4·d² + d in attention (W_O has a bias), "
        "8·d² + 5·d in the feed-forward and 4·d in two norms."
    )
    shares, formula = 100.0 * counts / counts.sum(), r"100 \cdot \frac{\text{part}}{\text{total}}"
    sheet.step("Share of each part, in percent", formula, shares, names)
    sheet.numbers(r"\text{token embedding: } @", shares[0])
    _sum_of(sheet, "With a separate output matrix", parts)
    del parts["Output matrix"]
    _sum_of(sheet, "With the output tied to the token embedding", parts)
    sheet.remark("Weight tying uses the token embedding again as the output matrix.")
    biases = {} if qkv_bias else {"Biases on Q, K, V": 3 * width * layers}
    _sum_of(sheet, "GPT-2 itself: tied, with biases on Q, K and V", parts | biases)
    sheet.remark("GPT-2 also has 3·d biases on Q, K and V in every layer.")


@worked(
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
def two_layer_decoder(
    sheet: Sheet, vocabulary: int, context: int, width: int, heads: int, hidden: int, layers: int
) -> None:
    _head_width(sheet, width, heads)
    parts = sizes.parameter_parts(
        TransformerConfig(
            "decoder", vocabulary, context, width, heads, decoder_layers=layers,
            d_mlp=hidden, norm_place="post", activation="relu", tied=False,
        )
    )  # fmt: skip
    parts["Output matrix and bias"] = parts.pop("Output matrix") + vocabulary
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + 4 d),\quad \ldots"
    counts = list(parts.values())
    sheet.step("Parameters of each part", formula, counts, tuple(parts))
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark("Post-LN has no norm after the last layer, and the output is not tied.")
    _sum_of(sheet, "All parameters", parts)
    outputs = {"attention": width, "feed-forward": hidden, "output": vocabulary}
    bounds = np.array([np.sqrt(6.0 / (width + size)) for size in outputs.values()])
    title = "Largest weight at the start (Xavier uniform)"
    formula = r"\sqrt{\frac{6}{\text{inputs} + \text{outputs}}}"
    sheet.step(title, formula, bounds, tuple(outputs))
    sheet.numbers(r"\sqrt{\frac{6}{@ + @}} = @", width, width, bounds[0])
    sheet.remark("Weights are drawn evenly between minus and plus this bound.")
