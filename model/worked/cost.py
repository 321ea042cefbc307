"""What attention costs: parameters, memory and operations, and how they grow."""

from __future__ import annotations

import numpy as np

from model.arithmetic import sizes
from model.worked import latex
from model.worked.example import Step, Values, given, whole, worked
from model.worked.printed import Printed
from model.worked.shapes import size_inputs
from model.worked.source import TWO_LAYERS


@worked(
    "projection-parameters",
    "§7",
    "Parameters of the four projections",
    "W_Q, W_K, W_V and W_O are square, so their size grows with the square of the width.",
    whole("width", "Width d_model", 512, 1, 16_384),
)
def _projections(values: Values) -> tuple[Step, ...]:
    width = int(values["width"])
    widths = (width, 2 * width, 4 * width)
    counts = np.array([sizes.projection_parameters(size) for size in widths])
    return (
        Step(
            "Parameters of each projection",
            r"d_{\text{model}} \times d_{\text{model}}",
            np.full(4, width * width),
            rf"{width} \times {width} = {latex.number(width * width)}",
            columns=("W_Q", "W_K", "W_V", "W_O"),
        ),
        Step(
            "All four together",
            r"4\, d_{\text{model}}^2",
            counts[0],
            rf"4 \cdot {width}^2 = {latex.number(counts[0])}",
            comment="Biases, where there are any, add 4·d_model.",
        ),
        Step(
            "At once, twice and four times the width",
            r"4\, d_{\text{model}}^2",
            counts,
            latex.row(counts),
            columns=tuple(f"width {size}" for size in widths),
            comment="Quadratic: twice the width takes four times the parameters.",
        ),
    )


@worked(
    "words-and-tokens",
    "§7",
    "Words and tokens",
    "Cost grows with tokens, not words. A token is roughly three quarters of an English word.",
    whole("tokens", "Tokens", 1024, 1, 1_000_000),
    given("rate", "Words for one token", 0.75, lowest=0, highest=2),
)
def _words(values: Values) -> tuple[Step, ...]:
    tokens, rate = values["tokens"], float(values["rate"])
    return (
        Step(
            "Words for one token",
            r"r",
            np.array(rate),
            rf"r = {latex.number(rate)}",
            notes=Printed("0.75", TWO_LAYERS.at("seq_len"), "roughly 0.75 of word"),
            comment="A rough figure for English; other languages and code need more tokens.",
        ),
        Step(
            "Words that fit",
            r"\text{tokens} \cdot r",
            tokens * rate,
            rf"{latex.number(tokens)} \cdot {latex.number(rate)} = {latex.number(tokens * rate)}",
        ),
    )


@worked(
    "memory-and-operations",
    "§7",
    "Memory and operations, stage by stage",
    "Scores and weights hold a number for every pair of tokens: "
    "twice the length, four times as much.",
    *size_inputs(32, 16, 512, 8),
    whole("bytes", "Bytes for one number", 4, 1, 8),
)
def _memory(values: Values) -> tuple[Step, ...]:
    size = tuple(int(values[name]) for name in ("batch", "length", "width", "heads"))
    batch, length, width, heads = size
    costs = sizes.attention_costs(batch, length, width, heads)
    twice = sizes.attention_costs(batch, 2 * length, width, heads)
    names = tuple(cost.name for cost in costs)
    numbers = np.array([cost.numbers for cost in costs], dtype=np.float64)
    flops = np.array([cost.flops for cost in costs], dtype=np.float64)
    mebibytes = numbers * float(values["bytes"]) / 2**20
    growth = np.array(
        [[b.numbers / a.numbers, b.flops / a.flops] for a, b in zip(costs, twice, strict=True)]
    )
    return (
        Step("Numbers each stage leaves", r"\text{batch} \cdot h \cdot n^2\ \text{for scores}",
             numbers, rf"{batch} \cdot {heads} \cdot {length}^2 = {latex.number(numbers[1])}",
             columns=names),
        Step("Memory of each stage, in MiB",
             r"\frac{\text{numbers} \cdot \text{bytes}}{2^{20}}", mebibytes,
             rf"\text{{scores: }} {latex.number(mebibytes[1])}", columns=names,
             comment="A fused kernel never keeps scores and weights; "
             "these are the costs of keeping every stage."),
        Step("Operations of each stage",
             r"2 \cdot \text{batch} \cdot n^2 \cdot d_{\text{model}}\ \text{for scores}", flops,
             rf"2 \cdot {batch} \cdot {length}^2 \cdot {width} = {latex.number(flops[1])}",
             columns=names, comment="A product and its addition count as two operations."),
        Step("Operations altogether", r"\sum", flops.sum(), latex.number(flops.sum())),
        Step("Growth when the length doubles", r"\frac{\text{cost}(2n)}{\text{cost}(n)}", growth,
             rf"\text{{scores: }} {latex.number(growth[1, 1])}", names, ("numbers", "operations"),
             comment="Scores and weights grow with n², the projections with n."),
    )  # fmt: skip
