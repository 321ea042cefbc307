"""Two errata of a decoder example: a sum where a product belongs, and padding that is not needed."""

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, token_ids, worked
from model.worked.source import INTRODUCTION

_DECODER = INTRODUCTION.at("Decoder in transformers")
_TOKENS = numbered("token", 3, start=1)
_EMBEDDING = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]
_Q_MATRIX = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]


@worked(
    "§5",
    "A query is a product, not a sum",
    "The embedding is multiplied by W_Q; adding W_Q gives something quite different.",
    given("embedding", "Embeddings (chosen here)", _EMBEDDING, _TOKENS, "dim"),
    given("q_matrix", "W_Q (chosen here)", _Q_MATRIX, "dim", "dim"),
)
def projection_is_a_product(sheet: Sheet, embedding: Array, q_matrix: Array) -> None:
    query = sheet.project(embedding, q_matrix, "Q", _TOKENS, "E")
    sheet.remark("A projection is a product of matrices.")
    added = embedding + q_matrix
    sheet.step("What a plus sign would give", r"E + W_Q", added, _TOKENS, "dim")
    sheet.numbers("@ + @ = @", embedding[0], q_matrix[0], added[0])
    sheet.remark(
        "A sum needs as many tokens as dimensions, and would add row i of W_Q to token i "
        f"alone. ({_DECODER} has the plus sign.)"
    )
    sheet.difference(query, added, "Product minus sum", _TOKENS, "dim")


@worked(
    "§5",
    "Padding the target to the source",
    "A target may be padded with zeros to the length of its source. "
    "Cross-attention works without that padding.",
    token_ids("target", "Target ids", [1, 2, 3]),
    token_ids("source", "Source ids", [4, 5, 6, 7]),
)
def padding_to_the_source(sheet: Sheet, target: Array, source: Array) -> None:
    padded = np.concatenate([target, np.zeros(max(len(source) - len(target), 0))])
    title, formula = "The target filled up to the source's length", r"y \to [y,\ 0,\ \ldots]"
    sheet.step(title, formula, padded, "token")
    sheet.numbers(r"@ \to @", target, padded)
    sheet.remark(
        "Padding makes the sequences of one batch equally long; source and target need not be."
    )
    mask, formula = attention.padding_mask(padded), r"m_j = 1\ \text{where token } j \ne 0"
    sheet.step("Its padding mask", formula, mask, "token", blocked=padded == 0)
    sheet.numbers(r"@ \to @", padded, mask)
    tables = [(len(target), len(source)), (len(padded), len(source))]
    title = "Size of the cross-attention table"
    formula = r"(\text{target tokens}) \times (\text{source tokens})"
    sheet.step(title, formula, tables, ("not padded", "padded"), ("queries", "keys"))
    sheet.numbers(r"@\ \text{and}\ @", *map(latex.shape, tables))
    sheet.remark("Queries and keys may differ in number, so the padding is not needed here.")
    sheet.step("The source", "x", source, "token")
    sheet.numbers("x = @", source)
