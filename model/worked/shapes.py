"""The shape after every operation of multi-head attention, and what a transpose does to memory."""

from __future__ import annotations

import numpy as np

from model.arithmetic import sizes
from model.worked import latex
from model.worked.example import Input, Quantity, Step, Values, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import PAPER, TWO_LAYERS, Source

LONG_WALK = PAPER.at("MultiHeadAttention, the comment in forward")
SHORT_WALK = TWO_LAYERS.at("Forward Function Walkthrough")
_Figures = tuple[str, str] | None  # a shape, and the words it stands among
_WALK_C: tuple[_Figures, ...] = (
    ("32 16 512", "has dimensions (32x16x512)"),
    ("32 16 512", "input batch at 32x16x512"),
    ("32 16 8 64", "resized to (32x16x8x64)"),
    ("32 8 16 64", "rearranged to (32x8x16x64)"),
    ("32 8 16 16", "Resultant matrix is 32x8x16x16"),
    ("32 8 16 16", "So (32x8x16x16)"),
    ("32 8 16 64", "x (32x8x16x64) -> (32x8x16x64)"),
    ("32 16 8 64", "reversed back to (32x16x8x64)"),
    ("32 16 512", "resulting in (32x16x512)"),
    ("32 16 512", "The final tensor is (32x16x512)"),
)
_WALK_D: tuple[_Figures, ...] = (
    ("2 4 512", "Linear Projections -> x=(2,4,512)"),
    ("2 4 512", "Before x=(2,4,512)"),
    None,
    ("2 8 4 64", "After x=(2,8,4,64)"),
    ("2 8 4 4", "(Batch=2, num_heads=8, seq_len=4, seq_len=4)"),
    None,
    ("2 8 4 64", "Before (2,8,4,64)"),
    None,
    ("2 4 512", "After (2,4,512)"),
    None,
)
_OPERATIONS: tuple[tuple[str, Quantity], ...] = (
    (r"X", "other"),
    (r"X W_Q,\ X W_K,\ X W_V", "query"),
    (r"\text{split the width: } d_{\text{model}} = h \cdot d_k", "query"),
    (r"\text{swap token and head}", "query"),
    (r"Q K^\top", "score"),
    (r"\mathrm{softmax}", "weight"),
    (r"A V", "output"),
    (r"\text{swap head and token}", "output"),
    (r"\text{concat: } h \cdot d_k = d_{\text{model}}", "output"),
    (r"\text{context} \cdot W_O", "output"),
)


def _walk(values: Values, source: Source, printed: tuple[_Figures, ...]) -> tuple[Step, ...]:
    stages = sizes.shape_walk(*(int(values[name]) for name in _SIZES))
    return tuple(
        Step(
            stage.name,
            formula,
            np.array(stage.shape),
            latex.shape(stage.shape),
            columns=stage.axes,
            quantity=quantity,
            notes=None if found is None else Printed(found[0], source, found[1]),
        )
        for stage, (formula, quantity), found in zip(stages, _OPERATIONS, printed, strict=True)
    )


_SIZES = ("batch", "length", "width", "heads")


def size_inputs(batch: int, length: int, width: int, heads: int) -> tuple[Input, ...]:
    """Batch, length, width and number of heads of one attention layer."""
    sizes_of = zip(
        _SIZES, ("Batch", "Length", "Width", "Heads"), (batch, length, width, heads), strict=True
    )
    return tuple(whole(name, label, value, 1, 1_000_000) for name, label, value in sizes_of)


@worked(
    "shape-walk-c",
    "§7",
    "A walk through the shapes: batch 32, length 16",
    "Every operation of multi-head attention changes the shape in a fixed way.",
    *size_inputs(32, 16, 512, 8),
)
def _walk_c(values: Values) -> tuple[Step, ...]:
    return _walk(values, LONG_WALK, _WALK_C)


@worked(
    "shape-walk-d",
    "§7",
    "A walk through the shapes: batch 2, length 4",
    "The same walk for two short sequences, with 8 heads of width 64.",
    *size_inputs(2, 4, 512, 8),
)
def _walk_d(values: Values) -> tuple[Step, ...]:
    return _walk(values, SHORT_WALK, _WALK_D)


@worked(
    "contiguous-before-merge",
    "§7",
    "Why contiguous() stands before the merge",
    "Swapping two axes leaves the numbers where they are in memory, "
    "so they are no longer in one unbroken run.",
    whole("length", "Length", 3, 1, 16),
    whole("heads", "Heads", 2, 1, 8),
    whole("head_width", "Width of a head", 4, 1, 16),
)
def _contiguous(values: Values) -> tuple[Step, ...]:
    length, heads, width = (int(values[name]) for name in ("length", "heads", "head_width"))
    laid_out = np.arange(length * heads * width).reshape(length, heads, width)
    swapped = laid_out.swapaxes(0, 1)
    strides = np.array([laid_out.strides, swapped.strides]) / laid_out.itemsize
    arrays = (laid_out, swapped, np.ascontiguousarray(swapped))
    flags = np.array([array.flags.c_contiguous for array in arrays])
    order = swapped.reshape(heads * length, width)
    return (
        Step(
            "Numbers to skip for one step along each axis",
            r"\text{stride}",
            strides,
            rf"{latex.row(strides[0])} \to {latex.row(strides[1])}",
            ("token, head, d_k", "head, token, d_k"),
            ("first axis", "second axis", "third axis"),
            comment="A transpose moves no numbers; it only swaps two strides.",
        ),
        Step(
            "Where the numbers lie in memory, read head by head",
            r"\text{address of } (h, t, d)",
            np.array(order),
            rf"\text{{token 1 of head 0: }} {latex.row(order[min(1, length - 1)])}",
            tuple(
                f"head {head}, token {token}" for head in range(heads) for token in range(length)
            ),
            numbered("dim", width),
        ),
        Step(
            "In one unbroken run? (1 = yes)",
            r"\text{strides fall as in a fresh array}",
            flags,
            rf"{latex.row(flags)}",
            columns=("before the swap", "after the swap", "after contiguous()"),
            comment="view() needs an unbroken run, so contiguous() (or reshape, which copies) "
            "stands before the merge.",
        ),
    )
