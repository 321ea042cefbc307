"""The four multi-head classes of the notes, each computed its own way, and shown to agree."""

import math
from typing import NamedTuple

import numpy as np

from model.arithmetic import attention, sizes
from model.worked.example import Array, Sheet, given, whole, worked
from model.worked.ladder import SQUARE_MATRICES, TOKENS, VECTORS
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
    """Class (b): one small self-attention for each head, on its own columns, without biases; then W_O."""
    width = x.shape[1] // heads
    outputs = []
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        query, key, value = (x @ matrix[:, columns] for matrix in weights[:3])
        outputs.append(attention.attend(query, key, value, allowed=allowed).output)
    return np.concatenate(outputs, axis=1) @ weights.output


def by_batched_products(
    x: Array, weights: Projections, heads: int, allowed: Array, mask_value: float
) -> Array:
    """Classes (c) with −1e9 and (d) with −∞: heads as an axis, the mask value after scaling, biases."""
    query, key, value = (
        attention.split_heads(x @ matrix + weights.bias, heads) for matrix in weights[:3]
    )
    run = attention.attend(query, key, value, allowed=allowed, mask_value=mask_value)
    return attention.merge_heads(run.output) @ weights.output + weights.bias


_LETTERS = ("(a)", "(b)", "(c)", "(d)")


@worked(
    "§6",
    "Four multi-head classes, one function",
    "Multi-head attention is written in many ways. "
    "Given the same weights four classes give the same numbers (here with a causal mask).",
    VECTORS,
    *SQUARE_MATRICES,
    given("bias", "One bias for all projections of (c) and (d)", np.zeros(4), "dim"),
    whole("heads", "Heads", 2, 1, 4),
)
def four_classes_agree(
    sheet: Sheet,
    x: Array,
    q_matrix: Array,
    k_matrix: Array,
    v_matrix: Array,
    o_matrix: Array,
    bias: Array,
    heads: int,
) -> None:
    sizes.head_width(x.shape[1], heads)
    weights = Projections(q_matrix, k_matrix, v_matrix, o_matrix, bias)
    allowed = attention.causal_mask(len(x))
    classes = {
        "(a) einsum, -1e20 before scaling, no biases": (
            by_einsum(x, weights, heads, allowed),
            MATRICES.at("class SelfAttention"),
        ),
        "(b) one small class per head": (
            by_single_heads(x, weights, heads, allowed),
            GPT.at("class SelfAttention_v2"),
        ),
        "(c) batched products, -1e9, biases": (
            by_batched_products(x, weights, heads, allowed, -1e9),
            PAPER.at("class MultiHeadAttention"),
        ),
        "(d) batched products, -∞, dropout off": (
            by_batched_products(x, weights, heads, allowed, attention.HIDDEN),
            TWO_LAYERS.at("class MultiHeadAttention"),
        ),
    }
    for name, (output, source) in classes.items():
        formula = r"\mathrm{concat}(z^{(0)}, \ldots)\, W_O"
        sheet.step(f"Output of class {name}", formula, output, TOKENS, "dim", quantity="output")
        sheet.numbers(r"\text{token 0: } @", output[0])
        sheet.remark(f"As in {source}.")
    outputs = [output for output, _ in classes.values()]
    between = np.array([[np.abs(one - other).max() for other in outputs] for one in outputs])
    title = "Largest difference between any two"
    formula = r"\max |z^{(\text{one})} - z^{(\text{other})}|"
    sheet.step(title, formula, between, _LETTERS, _LETTERS)
    sheet.numbers(r"\max = @", between.max())
    sheet.remark(
        "With the same weights and zero biases all four compute the same function; "
        "biases move (c) and (d) away from (a) and (b)."
    )
