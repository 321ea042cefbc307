"""Two slips of a decoder example: a sum where a product belongs, and padding nobody asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Step, Values, given, numbered, token_ids, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_DECODER = INTRODUCTION.at("Decoder in transformers")
_TOKENS = numbered("token", 3, start=1)
_DIMENSIONS = numbered("dim", 3)


@worked(
    "projection-is-a-product",
    "§5",
    "A query is a product, not a sum",
    "The embedding is multiplied by W_Q; a plus sign gives something else altogether.",
    given(
        "embedding",
        "Embeddings (chosen here)",
        [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
        _TOKENS,
        _DIMENSIONS,
    ),
    given(
        "q_matrix",
        "W_Q (chosen here)",
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]],
        _DIMENSIONS,
        _DIMENSIONS,
    ),
)
def _product(values: Values) -> tuple[Step, ...]:
    embedding, matrix = values["embedding"], values["q_matrix"]
    query = steps.project(embedding, matrix, "Q", _TOKENS, "E")
    added = embedding + matrix
    return (
        replace(query, comment="A projection is a product of matrices."),
        Step(
            "What a plus sign would give",
            r"E + W_Q",
            added,
            rf"{latex.row(embedding[0])} + {latex.row(matrix[0])} = {latex.row(added[0])}",
            _TOKENS,
            _DIMENSIONS,
            comment="A sum needs as many tokens as dimensions, and would add row i of W_Q to token i "
            f"alone. ({_DECODER} has the plus sign.)",
        ),
        steps.difference(query.result, added, "Product minus sum", _TOKENS, _DIMENSIONS),
    )


@worked(
    "padding-to-the-source",
    "§5",
    "Padding the target to the source",
    "A target may be filled up with zeros to the length of its source. "
    "Cross-attention works without it.",
    token_ids("target", "Target ids", [1, 2, 3]),
    token_ids("source", "Source ids", [4, 5, 6, 7]),
)
def _padded(values: Values) -> tuple[Step, ...]:
    target, source = values["target"], values["source"]
    padded = np.concatenate([target, np.zeros(max(len(source) - len(target), 0))])
    positions = numbered("token", len(padded))
    sizes = np.array([[len(target), len(source)], [len(padded), len(source)]], dtype=np.float64)
    return (
        Step(
            "The target filled up to the source's length",
            r"y \to [y,\ 0,\ \ldots]",
            padded,
            rf"{latex.row(target)} \to {latex.row(padded)}",
            columns=positions,
            notes=Printed("1 2 3 0", _DECODER, "[1 2 3 0]"),
            comment="Padding makes the sequences of one batch equally long; "
            "source and target need not be.",
        ),
        Step(
            "Its padding mask",
            r"m_j = 1\ \text{where token } j \ne 0",
            attention.padding_mask(padded),
            rf"{latex.row(padded)} \to {latex.row(attention.padding_mask(padded))}",
            columns=positions,
            blocked=padded == 0,
        ),
        Step(
            "Size of the cross-attention table",
            r"(\text{target tokens}) \times (\text{source tokens})",
            sizes,
            rf"{latex.shape([len(target), len(source)])}\ \text{{and}}\ "
            rf"{latex.shape([len(padded), len(source)])}",
            ("not padded", "padded"),
            ("queries", "keys"),
            comment="Queries and keys may differ in number, so the padding is not needed here.",
        ),
        Step(
            "The source",
            r"x",
            source,
            rf"x = {latex.row(source)}",
            columns=numbered("token", len(source)),
            notes=Printed("4 5 6 7", _DECODER, "[4 5 6 7]"),
        ),
    )
