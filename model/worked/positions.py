"""Positions: the sinusoidal table by hand, sums with embeddings, and learned positions."""

from __future__ import annotations

import numpy as np

from model.arithmetic import positions
from model.worked import latex
from model.worked.example import Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_POSITIONS = INTRODUCTION.at("Positional Encoding")
_TOKENS = ("The", "Cat", "Sat")
_DIMENSIONS = numbered("dim", 4)
_EMBEDDING = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1, 1.1, 1.2]]


@worked(
    "sinusoidal-table",
    "§8",
    "The sinusoidal table",
    "Each pair of dimensions is a clock hand: its sine and cosine at this position. "
    "Later pairs turn more slowly.",
    whole("positions", "Positions", [0, 1, 2], 0, 100_000, "row"),
    whole("width", "Width d_model", 4, 2, 64),
    given("base", "Base", 10_000, lowest=1, highest=1_000_000),
)
def _table(values: Values) -> tuple[Step, ...]:
    where, width, base = values["positions"], int(values["width"]), float(values["base"])
    rows, columns = tuple(f"pos {p:g}" for p in where), numbered("dim", width)
    powers = positions.exponents(width)
    angles = positions.angles(where, width, base)
    table = positions.sinusoidal(where, width, base)
    exponents = Printed(
        "0/4 2/4 2/4 0/4",
        _POSITIONS,
        "cos(1 / 10000 ^ 2/4 = 0.5403",
        "The exponents of PE(1,1) and PE(1,3) are swapped as they are written out; "
        "i counts pairs of dimensions, so both members of a pair share one exponent.",
    )
    figures = Printed(
        "0 1 0 1; 0.8415 0.5403 0.01 0.9995; _ _ _ _",
        _POSITIONS,
        "[0.8415 0.5403 0.01 0.9995]",
        "PE(1,3) is cos(0.01) = .99995. Position 2 is not written out there.",
    )
    return (
        Step(
            "Exponent of each dimension",
            r"\frac{2i}{d_{\text{model}}}",
            powers,
            latex.row(powers),
            columns=columns,
            notes=exponents,
        ),
        Step(
            "Angles",
            r"\frac{\text{pos}}{10000^{2i/d_{\text{model}}}}",
            angles,
            rf"\frac{{{latex.number(where[-1])}}}{{{latex.number(base)}^{{{latex.number(powers[-1])}}}}}"
            rf" = {latex.number(angles[-1, -1])}",
            rows,
            columns,
        ),
        Step(
            "Positional encoding",
            r"PE_{(\text{pos}, 2i)} = \sin(\text{angle}),\quad "
            r"PE_{(\text{pos}, 2i+1)} = \cos(\text{angle})",
            table,
            rf"\text{{{rows[-1]}: }} {latex.row(table[-1])}",
            rows,
            columns,
            notes=figures,
            comment="Every value lies between -1 and 1.",
        ),
    )


@worked(
    "embedding-plus-position",
    "§8",
    "Embedding plus position",
    "What enters the first layer is the token's embedding plus the encoding of its position.",
    given("embedding", "Embeddings", _EMBEDDING, _TOKENS, _DIMENSIONS),
    given("base", "Base", 10_000, lowest=1, highest=1_000_000),
)
def _sums(values: Values) -> tuple[Step, ...]:
    embedding = values["embedding"]
    table = positions.sinusoidal(np.arange(3.0), 4, float(values["base"]))
    result = embedding + table
    return (
        Step(
            "Positional encoding of positions 0, 1, 2",
            r"PE",
            table,
            rf"\text{{pos 1: }} {latex.row(table[1])}",
            _TOKENS,
            _DIMENSIONS,
        ),
        Step(
            "Embedding plus position",
            r"E + PE",
            result,
            rf"{latex.row(embedding[1])} + {latex.row(table[1])} = {latex.row(result[1])}",
            _TOKENS,
            _DIMENSIONS,
            comment="The same word at another position enters the model as another vector.",
        ),
    )


@worked(
    "learned-positions",
    "§8",
    "Learned positions",
    "GPT-2 learns one vector for each position instead of computing it.",
    given("embedding", "Embeddings", _EMBEDDING, _TOKENS, _DIMENSIONS),
    given(
        "table",
        "Learned table (chosen here)",
        [[0.02, -0.1, 0.05, 0], [0.1, 0.03, -0.04, 0.2], [-0.06, 0.1, 0.15, -0.1]],
        _TOKENS,
        _DIMENSIONS,
    ),
    whole("context", "Context length", 1024, 1, 1_000_000),
    whole("width", "Width", 768, 1, 16_384),
)
def _learned(values: Values) -> tuple[Step, ...]:
    embedding, table = values["embedding"], values["table"]
    context, width = float(values["context"]), float(values["width"])
    counts = np.array([0.0, context * width])
    return (
        Step(
            "Embedding plus learned position",
            r"E + P",
            embedding + table,
            rf"{latex.row(embedding[0])} + {latex.row(table[0])} = "
            rf"{latex.row((embedding + table)[0])}",
            _TOKENS,
            _DIMENSIONS,
            comment="Row p of the learned table is simply added to the token at position p.",
        ),
        Step(
            "Parameters of the two kinds",
            r"0 \quad \text{and} \quad \text{context} \cdot d_{\text{model}}",
            counts,
            rf"{latex.number(context)} \cdot {latex.number(width)} = {latex.number(counts[1])}",
            columns=("sinusoidal", "learned"),
            comment="A learned table ends at its context length; the sinusoidal one has no end.",
        ),
    )
