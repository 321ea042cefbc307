"""The shape after every operation of multi-head attention, what a transpose does, and what it all costs."""

import numpy as np

from model.arithmetic import sizes
from model.worked import latex
from model.worked.example import Input, Sheet, given, whole, worked
from model.worked.sheet import Quantity
from model.worked.source import PAPER, TWO_LAYERS

LONG_WALK = PAPER.at("MultiHeadAttention, the comment in forward")
SHORT_WALK = TWO_LAYERS.at("Forward Function Walkthrough")
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


def size_inputs(batch: int, length: int, width: int, heads: int) -> tuple[Input, ...]:
    """Batch, length, width and number of heads of one attention layer."""
    counts = {"Batch": batch, "Length": length, "Width": width, "Heads": heads}
    return tuple(whole(label.lower(), label, n, 1, 1_000_000) for label, n in counts.items())


def _walk(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    stages = sizes.shape_walk(batch, length, width, heads)
    for stage, (formula, quantity) in zip(stages, _OPERATIONS, strict=True):
        sheet.step(stage.name, formula, stage.shape, stage.axes, quantity=quantity)
        sheet.numbers(latex.shape(stage.shape))


@worked(
    "§7",
    "A walk through the shapes: batch 32, length 16",
    "Every operation of multi-head attention changes the shape in a fixed way.",
    *size_inputs(32, 16, 512, 8),
)
def shape_walk_c(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    _walk(sheet, batch, length, width, heads)


@worked(
    "§7",
    "A walk through the shapes: batch 2, length 4",
    "The same walk for two short sequences, with 8 heads of width 64.",
    *size_inputs(2, 4, 512, 8),
)
def shape_walk_d(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    _walk(sheet, batch, length, width, heads)


@worked(
    "§7",
    "Why contiguous() stands before the merge",
    "Swapping two axes leaves the numbers where they are in memory, "
    "so they are no longer in one unbroken run.",
    whole("length", "Length", 3, 1, 16),
    whole("heads", "Heads", 2, 1, 8),
    whole("head_width", "Width of a head", 4, 1, 16),
)
def contiguous_before_merge(sheet: Sheet, length: int, heads: int, head_width: int) -> None:
    laid_out = np.arange(length * heads * head_width).reshape(length, heads, head_width)
    swapped = laid_out.swapaxes(0, 1)
    strides = np.array([laid_out.strides, swapped.strides]) / laid_out.itemsize
    sheet.step(
        "Numbers to skip for one step along each axis",
        r"\text{stride}",
        strides,
        ("token, head, d_k", "head, token, d_k"),
        ("first axis", "second axis", "third axis"),
    )
    sheet.numbers(r"@ \to @", *strides)
    sheet.remark("A transpose moves no numbers; it only swaps two strides.")

    order = swapped.reshape(heads * length, head_width)
    rows = tuple(f"head {head}, token {token}" for head in range(heads) for token in range(length))
    title = "Where the numbers lie in memory, read head by head"
    formula = r"\text{address of } (h, t, d)"
    sheet.step(title, formula, order, rows, "dim")
    sheet.numbers(r"\text{token 1 of head 0: } @", order[min(1, length - 1)])

    arrays = (laid_out, swapped, np.ascontiguousarray(swapped))
    flags = [array.flags.c_contiguous for array in arrays]
    names = ("before the swap", "after the swap", "after contiguous()")
    title, formula = "In one unbroken run? (1 = yes)", r"\text{strides fall as in a fresh array}"
    sheet.step(title, formula, flags, names)
    sheet.numbers("@", np.array(flags))
    sheet.remark(
        "view() needs an unbroken run, so contiguous() (or reshape, which copies) "
        "stands before the merge."
    )


@worked(
    "§7",
    "Parameters of the four projections",
    "W_Q, W_K, W_V and W_O are square, so their size grows with the square of the width.",
    whole("width", "Width d_model", 512, 1, 16_384),
)
def projection_parameters(sheet: Sheet, width: int) -> None:
    names, formula = ("W_Q", "W_K", "W_V", "W_O"), r"d_{\text{model}} \times d_{\text{model}}"
    sheet.step("Parameters of each projection", formula, [width * width] * 4, names)
    sheet.numbers(r"@ \times @ = @", width, width, width * width)
    widths = (width, 2 * width, 4 * width)
    counts = [sizes.projection_parameters(size) for size in widths]
    sheet.step("All four together", r"4\, d_{\text{model}}^2", counts[0])
    sheet.numbers(r"4 \cdot @^2 = @", width, counts[0])
    sheet.remark("Biases, where there are any, add 4·d_model.")
    title, columns = "At one, two and four times the width", tuple(f"width {n}" for n in widths)
    sheet.step(title, r"4\, d_{\text{model}}^2", counts, columns)
    sheet.numbers("@", np.array(counts))
    sheet.remark("Quadratic: twice the width takes four times the parameters.")


@worked(
    "§7",
    "Words and tokens",
    "Cost grows with tokens, not words. A token is roughly three quarters of an English word.",
    whole("tokens", "Tokens", 1024, 1, 1_000_000),
    given("rate", "Words for one token", 0.75, lowest=0, highest=2),
)
def words_and_tokens(sheet: Sheet, tokens: int, rate: float) -> None:
    sheet.step("Words for one token", "r", rate)
    sheet.numbers("r = @", rate)
    sheet.remark("A rough figure for English; other languages and code need more tokens.")
    sheet.step("Words that fit", r"\text{tokens} \cdot r", tokens * rate)
    sheet.numbers(r"@ \cdot @ = @", tokens, rate, tokens * rate)


@worked(
    "§7",
    "Memory and operations, stage by stage",
    "Scores and weights hold a number for every pair of tokens: "
    "twice the length, four times as much.",
    *size_inputs(32, 16, 512, 8),
    whole("bytes", "Bytes for one number", 4, 1, 8),
)
def memory_and_operations(
    sheet: Sheet, batch: int, length: int, width: int, heads: int, bytes: int
) -> None:
    costs = sizes.attention_costs(batch, length, width, heads)
    names = tuple(cost.name for cost in costs)
    kept = np.array([cost.numbers for cost in costs])
    formula = r"\text{batch} \cdot h \cdot n^2\ \text{for scores}"
    sheet.step("Numbers that each stage produces", formula, kept, names)
    sheet.numbers(r"@ \cdot @ \cdot @^2 = @", batch, heads, length, kept[1])

    memory = kept * float(bytes) / 2**20
    formula = r"\frac{\text{numbers} \cdot \text{bytes}}{2^{20}}"
    sheet.step("Memory of each stage, in MiB", formula, memory, names)
    sheet.numbers(r"\text{scores: } @", memory[1])
    sheet.remark(
        "A fused kernel never keeps scores and weights; these are the costs of keeping every stage."
    )
    flops = np.array([cost.flops for cost in costs])
    formula = r"2 \cdot \text{batch} \cdot n^2 \cdot d_{\text{model}}\ \text{for scores}"
    sheet.step("Operations of each stage", formula, flops, names)
    sheet.numbers(r"2 \cdot @ \cdot @^2 \cdot @ = @", batch, length, width, flops[1])
    sheet.remark("A product and its addition count as two operations.")
    sheet.step("Operations altogether", r"\sum", flops.sum())
    sheet.numbers("@", flops.sum())

    twice = sizes.attention_costs(batch, 2 * length, width, heads)
    pairs = zip(costs, twice, strict=True)
    growth = np.array([[b.numbers / a.numbers, b.flops / a.flops] for a, b in pairs])
    title, formula = "Growth when the length doubles", r"\frac{\text{cost}(2n)}{\text{cost}(n)}"
    sheet.step(title, formula, growth, names, ("numbers", "operations"))
    sheet.numbers(r"\text{scores: } @", growth[1, 1])
    sheet.remark("Scores and weights grow with n², the projections with n.")
