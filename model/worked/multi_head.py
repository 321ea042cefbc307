"""The four multi-head classes of the notes, written as each writes it, and shown to agree."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from model.arithmetic import attention, sizes
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, whole, worked
from model.worked.ladder import TOKENS, square_matrices, vectors
from model.worked.source import GPT, MATRICES, PAPER, TWO_LAYERS


class Projections(NamedTuple):
    """Four matrices, each (d_model, d_model), and one bias used after each of them, (d_model,)."""

    query: Array
    key: Array
    value: Array
    output: Array
    bias: Array


def by_einsum(x: Array, weights: Projections, heads: int, allowed: Array) -> Array:
    """Class (a): einsum "nqhd,nkhd->nhqk", −1e20 written before the scaling, no biases."""
    length, width = x.shape
    split = (1, length, heads, width // heads)
    query, key, value = ((x @ matrix).reshape(split) for matrix in weights[:3])
    energy = np.einsum("nqhd,nkhd->nhqk", query, key)
    energy = np.where(allowed == 0, -1e20, energy)
    share = attention.softmax(energy / math.sqrt(width // heads))
    context = np.einsum("nhql,nlhd->nqhd", share, value).reshape(length, width)
    return context @ weights.output


def by_single_heads(x: Array, weights: Projections, heads: int, allowed: Array) -> Array:
    """Class (b): one small self-attention a head on its own columns, without biases, then W_O."""
    width = x.shape[1] // heads
    outputs = []
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        query, key, value = (x @ matrix[:, columns] for matrix in weights[:3])
        outputs.append(attention.attend(query, key, value, allowed=allowed).output)
    return np.concatenate(outputs, axis=1) @ weights.output


def by_batched_products(
    x: Array, weights: Projections, heads: int, allowed: Array, fill: float
) -> Array:
    """Classes (c) with −1e9 and (d) with −∞: heads as an axis, the fill after scaling, biases."""
    query, key, value = (
        attention.split_heads(x @ matrix + weights.bias, heads) for matrix in weights[:3]
    )
    run = attention.attend(query, key, value, allowed=allowed, fill=fill)
    return attention.merge_heads(run.output) @ weights.output + weights.bias


_CLASSES = (
    "(a) einsum, -1e20 before scaling, no biases",
    "(b) one small class a head",
    "(c) batched products, -1e9, biases",
    "(d) batched products, -∞, dropout off",
)
_SOURCES = (
    MATRICES.at("class SelfAttention"),
    GPT.at("class SelfAttention_v2"),
    PAPER.at("class MultiHeadAttention"),
    TWO_LAYERS.at("class MultiHeadAttention"),
)
_LETTERS = ("(a)", "(b)", "(c)", "(d)")


@worked(
    "four-classes-agree",
    "§6",
    "Four multi-head classes, one function",
    "Multi-head attention is written in many ways. "
    "Given the same weights four classes give the same numbers (here with a causal mask).",
    vectors(),
    *square_matrices(),
    given("bias", "One bias for all projections of (c) and (d)", np.zeros(4), "dim"),
    whole("heads", "Heads", 2, 1, 4),
)
def _classes(values: Values) -> tuple[Step, ...]:
    x, heads = values["x"], int(values["heads"])
    sizes.head_width(x.shape[1], heads)
    weights = Projections(
        values["q_matrix"],
        values["k_matrix"],
        values["v_matrix"],
        values["o_matrix"],
        values["bias"],
    )
    allowed = attention.causal_mask(len(x))
    outputs = (
        by_einsum(x, weights, heads, allowed),
        by_single_heads(x, weights, heads, allowed),
        by_batched_products(x, weights, heads, allowed, -1e9),
        by_batched_products(x, weights, heads, allowed, attention.HIDDEN),
    )
    between = np.array([[np.abs(one - other).max() for other in outputs] for one in outputs])
    columns = numbered("dim", x.shape[1])
    return (
        *(
            Step(
                f"Output of class {name}",
                r"\mathrm{concat}(z^{(0)}, \ldots)\, W_O",
                output,
                rf"\text{{token 0: }} {latex.row(output[0])}",
                TOKENS,
                columns,
                "output",
                comment=f"As in {source}.",
            )
            for name, output, source in zip(_CLASSES, outputs, _SOURCES, strict=True)
        ),
        Step(
            "Largest difference between any two",
            r"\max |z^{(\text{one})} - z^{(\text{other})}|",
            between,
            rf"\max = {latex.number(between.max())}",
            _LETTERS,
            _LETTERS,
            comment="With the same weights and zero biases all four compute the same function; "
            "biases move (c) and (d) away from (a) and (b).",
        ),
    )
