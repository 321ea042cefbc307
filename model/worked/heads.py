"""How one product is cut into heads, and how wide a head is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention, sizes
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Step, Values, numbered, whole, worked
from model.worked.ladder import TOKENS, square_matrices, vectors
from model.worked.printed import Printed
from model.worked.source import TWO_LAYERS


@worked(
    "one-matrix-then-split",
    "§7",
    "One large matrix, then a split",
    "The queries of all heads come from one product; each head takes its own columns.",
    vectors(),
    *square_matrices("q"),
    whole("heads", "Heads", 2, 1, 4),
)
def _one_product(values: Values) -> tuple[Step, ...]:
    x, matrix, heads = values["x"], values["q_matrix"], int(values["heads"])
    width = sizes.head_width(matrix.shape[1], heads)
    query = steps.project(x, matrix, "Q", TOKENS)
    cut = attention.split_heads(query.result, heads)
    small = np.stack([x @ matrix[:, head * width : (head + 1) * width] for head in range(heads)])
    columns = numbered("dim", matrix.shape[1])
    return (
        replace(query, title="One large product"),
        *(
            Step(
                f"Head {head}: columns {head * width} to {(head + 1) * width - 1} of it",
                r"Q^{(h)} = Q_{:,\ h d_k : (h+1) d_k}",
                cut[head],
                rf"\text{{token 0: }} {latex.row(cut[head][0])}",
                TOKENS,
                columns[head * width : (head + 1) * width],
                "query",
            )
            for head in range(heads)
        ),
        steps.difference(
            query.result,
            attention.merge_heads(small),
            "Large product minus the small ones side by side",
            TOKENS,
            columns,
            comment="h small matrices or one large one: the same products, done in one go.",
        ),
    )


@worked(
    "head-widths",
    "§7",
    "How wide is a head?",
    "The heads share the width of the model equally.",
    whole("widths", "Widths of two models", [512, 256], 1, 16_384, ("first model", "second model")),
    whole("heads", "Heads of each", [8, 8], 1, 128, ("first model", "second model")),
)
def _head_widths(values: Values) -> tuple[Step, ...]:
    widths, heads = values["widths"], values["heads"]
    each = np.array(
        [
            sizes.head_width(int(width), int(count))
            for width, count in zip(widths, heads, strict=True)
        ]
    )
    first = np.stack([np.zeros(2), each - 1], axis=1)
    models = tuple(f"width {int(width)}" for width in widths)
    starts = np.arange(int(heads[1])) * each[1]
    table = np.stack([starts, starts + each[1] - 1], axis=1)
    last, first_column, last_column = len(table) - 1, int(table[-1, 0]), int(table[-1, 1])
    return (
        Step(
            "Width of each head",
            r"d_k = \frac{d_{\text{model}}}{h}",
            each,
            rf"\frac{{{int(widths[0])}}}{{{int(heads[0])}}} = {int(each[0])}",
            columns=models,
            notes=Printed(
                "64 32",
                TWO_LAYERS.at("num_heads / d_k, and Q, K, V, O"),
                "d_model = 256, heads = 8 -> 32",
            ),
        ),
        Step(
            "Columns of the first head",
            r"0\ \text{to}\ d_k - 1",
            first[1],
            rf"0\ \text{{to}}\ {int(each[1])} - 1 = {int(first[1, 1])}",
            columns=("first column", "last column"),
            notes=Printed("0 31", TWO_LAYERS.at("num_heads / d_k"), "Head 1: 0-31"),
            comment="The notes count it as head 1; on these pages heads are numbered from 0.",
        ),
        Step(
            f"Columns of every head at width {int(widths[1])}",
            r"h\,d_k\ \text{to}\ (h+1)\,d_k - 1",
            table,
            rf"\text{{head }} {last}: {first_column}\ \text{{to}}\ {last_column}",
            numbered("head", len(table)),
            ("first column", "last column"),
        ),
    )
