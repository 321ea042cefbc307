"""Sliding windows with their shifted targets, and the embedding as a look-up."""

from __future__ import annotations

import numpy as np

from model.arithmetic import learning
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Step, Values, given, numbered, token_ids, whole, worked

_VOCABULARY = numbered("id", 6)
_DIMENSIONS = numbered("dim", 3)


@worked(
    "sliding-windows",
    "§11",
    "Windows, stride and the next token",
    "Training data are windows of text. The targets are the same windows moved on by one token.",
    token_ids(
        "ids",
        "Token ids (chosen here)",
        [40, 367, 2885, 1464, 1807, 3619, 402, 271, 10899],
    ),
    whole("length", "Window length", 4, 1, 8),
    whole("stride", "Stride", 2, 1, 8),
)
def _windows(values: Values) -> tuple[Step, ...]:
    ids, length, stride = values["ids"], int(values["length"]), int(values["stride"])
    if length >= len(ids):
        raise ValueError(
            f"A window of {length} tokens and its next token need more than {len(ids)} ids."
        )
    inputs = learning.windows(ids, length, stride)
    targets = learning.windows(ids, length, stride, offset=1)
    rows = numbered("window", len(inputs))
    columns = numbered("position", length)
    return (
        Step("Inputs", r"x_k = [t_{sk},\ \ldots,\ t_{sk+n-1}]", inputs,
             rf"\text{{window 0: }} {latex.row(inputs[0])}", rows, columns),
        Step("Targets: the inputs moved on by one", r"y_k = [t_{sk+1},\ \ldots,\ t_{sk+n}]",
             targets, rf"\text{{window 0: }} {latex.row(targets[0])}", rows, columns,
             comment="The offset of +1 makes every position predict its next token; "
             "the stride is another thing, the step between windows."),
        Step("Where each window starts", r"s \cdot k", stride * np.arange(len(inputs), dtype=np.float64),
             rf"s = {stride}", columns=rows),
        Step("Tokens two neighbouring windows share", r"\max(n - s,\ 0)", np.array(max(length - stride, 0)),
             rf"\max({length} - {stride},\ 0) = {max(length - stride, 0)}",
             comment="Windows overlap where the stride is smaller than the length."),
    )  # fmt: skip


@worked(
    "look-up-is-one-hot",
    "§11",
    "An embedding is a look-up",
    "Multiplying a one-hot vector with the embedding matrix picks one of its rows.",
    whole("ids", "Token ids", [2, 0, 5, 2], 0, 5, "token"),
    given(
        "matrix",
        "Embedding matrix E (chosen here)",
        [
            [0.3, -0.2, 0.1],
            [0.9, 0.4, -0.5],
            [1.2, -0.7, 0.6],
            [-0.4, 0.8, 0.2],
            [0.1, 0.5, -1.1],
            [-0.6, 0.3, 0.7],
        ],
        _VOCABULARY,
        _DIMENSIONS,
    ),
)
def _look_up(values: Values) -> tuple[Step, ...]:
    ids, matrix = values["ids"], values["matrix"]
    hot = learning.one_hot(ids, len(matrix))
    product = hot @ matrix
    rows = tuple(f"token {index} (id {int(token)})" for index, token in enumerate(ids))
    picked = matrix[ids.astype(np.int64)]
    return (
        Step("One-hot vectors", r"h_{t,v} = 1\ \text{where } v = \mathrm{id}_t", hot,
             rf"{int(ids[0])} \to {latex.row(hot[0])}", rows, _VOCABULARY),
        Step("One-hot times matrix", r"h\, E", product,
             rf"{latex.row(hot[0])}\,E = {latex.row(product[0])}", rows, _DIMENSIONS),
        Step("Rows looked up", r"E_{\mathrm{id}_t}", picked,
             rf"E_{{{int(ids[0])}}} = {latex.row(picked[0])}", rows, _DIMENSIONS),
        steps.difference(product, picked, "Product minus look-up", rows, _DIMENSIONS,
                         comment="All other rows are multiplied by 0, so the product is the row."),
    )  # fmt: skip
