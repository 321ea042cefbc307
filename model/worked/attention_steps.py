"""The steps of every attention example, each with its formula and one row or cell spelled out.

Axes: rows are queries, columns are keys. Change a step's title, notes or comment with `replace`.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Quantity, Step, numbered

Labels = tuple[str, ...]
_PROJECTIONS: dict[str, tuple[str, Quantity]] = {
    "Q": ("Queries", "query"),
    "K": ("Keys", "key"),
    "V": ("Values", "value"),
}


def project(
    vectors: Array, matrix: Array, letter: Literal["Q", "K", "V"], tokens: Labels, source: str = "X"
) -> Step:
    """Each token's vector times W_Q, W_K or W_V."""
    title, quantity = _PROJECTIONS[letter]
    result = vectors @ matrix
    small = letter.lower()
    return Step(
        title,
        rf"{letter} = {source}\,W_{letter}",
        result,
        numbers=(
            rf"{small}_{{{latex.word(tokens[0])}}} = {latex.row(vectors[0])}\,W_{letter} "
            rf"= {latex.row(result[0])}"
        ),
        rows=tokens,
        columns=numbered("dim", result.shape[1]),
        quantity=quantity,
    )


def score(
    query: Array, key: Array, queries: Labels, keys: Labels, *, cell: tuple[int, int] = (0, -1)
) -> Step:
    """Every query times every key, with one cell spelled out."""
    result = attention.dot_products(query, key)
    i, j = cell
    return Step(
        "Scores",
        r"S = Q K^\top,\quad s_{ij} = q_i \cdot k_j",
        result,
        numbers=(
            rf"s_{{{latex.word(queries[i])},\,{latex.word(keys[j])}}} = "
            rf"{latex.dot(query[i], key[j])} = {latex.number(result[i, j])}"
        ),
        rows=queries,
        columns=keys,
        quantity="score",
    )


def scale(
    scores: Array, width: int, queries: Labels, keys: Labels, *, cell: tuple[int, int] = (0, -1)
) -> Step:
    """Every score divided by √d_k, with one cell spelled out."""
    result = scores / math.sqrt(width)
    i, j = cell
    return Step(
        "Scaled scores",
        r"\frac{Q K^\top}{\sqrt{d_k}}",
        result,
        numbers=(
            rf"\text{{({queries[i]}, {keys[j]}): }} \frac{{{latex.number(scores[i, j])}}}"
            rf"{{\sqrt{{{width}}}}} = {latex.number(result[i, j])}"
        ),
        rows=queries,
        columns=keys,
        quantity="score",
    )


def hide(scores: Array, allowed: Array, fill: float, queries: Labels, keys: Labels) -> Step:
    """The scores with a large negative number in the cells the mask forbids."""
    result = attention.masked(scores, allowed, fill)
    return Step(
        "Masked scores",
        r"\tilde s_{ij} = s_{ij}\ \text{where } M_{ij} = 1,\quad \text{the fill where } M_{ij} = 0",
        result,
        numbers=rf"\tilde s_{{{latex.word(queries[0])}}} = {latex.row(result[0])}",
        rows=queries,
        columns=keys,
        quantity="score",
        blocked=allowed == 0,
    )


def weigh(
    scores: Array, queries: Labels, keys: Labels, *, row: int = 0, allowed: Array | None = None
) -> Step:
    """The softmax of each row of scores, with one row spelled out.

    With `allowed`, the cells it forbids count as blocked where they really got no weight.
    """
    result = attention.softmax(scores)
    return Step(
        "Weights",
        r"a_{ij} = \frac{e^{s_{ij}}}{\sum_m e^{s_{im}}}",
        result,
        numbers=rf"a_{{{latex.word(queries[row])}}} = {latex.softmax(scores[row], result[row])}",
        rows=queries,
        columns=keys,
        quantity="weight",
        blocked=None if allowed is None else (allowed == 0) & (result == 0),
    )


def sum_up(weights: Array, value: Array, queries: Labels, *, row: int = 0) -> Step:
    """For each query the sum of the values, each times its weight, with one row spelled out."""
    result = weights @ value
    terms = (
        rf"{latex.factor(weight)}\,{latex.row(vector)}"
        for weight, vector in zip(weights[row], value, strict=True)
    )
    name = latex.word(queries[row])
    return Step(
        "Output",
        r"z_i = \sum_j a_{ij}\,v_j,\quad Z = A V",
        result,
        numbers=rf"z_{{{name}}} = {' + '.join(terms)} = {latex.row(result[row])}",
        rows=queries,
        columns=numbered("dim", result.shape[1]),
        quantity="output",
    )


def difference(
    first: Array,
    second: Array,
    title: str,
    rows: Labels,
    columns: Labels,
    *,
    comment: str | None = None,
) -> Step:
    """One result minus another: all zeros where two ways agree (up to the rounding of float64)."""
    result = first - second
    return Step(
        title,
        r"\text{first} - \text{second}",
        result,
        numbers=rf"\max |\text{{difference}}| = {latex.number(np.abs(result).max())}",
        rows=rows,
        columns=columns,
        comment=comment,
    )
