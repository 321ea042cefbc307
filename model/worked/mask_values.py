"""Which number to write into a masked score, and a row with every key masked."""

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, whole, worked

_WRITTEN = ("−∞ written", "−1e9 written", "−1e20 written", "0 written", "0 added")
_MASK_VALUES = (attention.HIDDEN, -1e9, -1e20, 0.0)


def _masked(scores: Array, mask: Array) -> Array:
    """The scores under each mask value, (mask value, key); the last row adds 0 instead."""
    return np.stack(
        [*(attention.masked(scores, mask, mask_value) for mask_value in _MASK_VALUES), scores]
    )


@worked(
    "§5",
    "What to write into a masked score",
    "A masked score must be so low that its exponential is 0. A score of 0 is not: e⁰ = 1.",
    given("scores", "Scores (the last two chosen here)", [2.5, 1.3, 0.7, 1.9], "key"),
    whole("mask", "Mask", [1, 1, 0, 0], 0, 1, "key"),
    whole("d_k", "d_k", 4, 1, 512),
)
def fill_values(sheet: Sheet, scores: Array, mask: Array, d_k: int) -> None:
    if not mask.any():
        raise ValueError("The mask hides all 4 keys; leave at least 1 of them open.")
    masked = _masked(scores, mask)
    exponentials, weights = np.exp(masked), attention.softmax(masked)
    hidden = (mask == 0) & (exponentials == 0)
    formula = r"e^{-\infty} = 0,\quad e^{-10^9} = 0,\quad e^0 = 1"
    title = "Exponentials under each mask value"
    sheet.step(title, formula, exponentials, _WRITTEN, "key", blocked=hidden)
    sheet.numbers("e^{@} = @", scores[0], np.exp(scores[0]))
    sheet.remark("A mask value of 0 hides nothing: e⁰ = 1, and adding 0 changes no score.")

    title, formula = "Weights with −∞", r"a = \mathrm{softmax}(\tilde s)"
    sheet.step(title, formula, weights[0], "key", quantity="weight", blocked=mask == 0)
    sheet.numbers(r"\mathrm{softmax}(@) = @", masked[0], weights[0])
    title = "Weights under each mask value"
    sheet.step(title, formula, weights, _WRITTEN, "key", quantity="weight", blocked=hidden)
    sheet.numbers(r"\text{0 written: } @", latex.softmax(masked[3], weights[3]))
    sheet.remark("−∞, −1e9 and −1e20 give the same weights; 0 lets the masked tokens in.")

    root = np.sqrt(d_k)
    scaled_after = attention.softmax(masked / root)
    masked = _masked(scores / root, mask)
    filled_after = attention.softmax(masked)
    formula = (
        r"\mathrm{softmax}\!\left(\frac{\mathrm{fill}(s)}{\sqrt{d_k}}\right) - "
        r"\mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)"
    )
    title, differences = "Filled before scaling, minus filled after it", scaled_after - filled_after
    sheet.step(title, formula, differences, _WRITTEN, "key")
    sheet.numbers(r"\sqrt{d_k} = @", root)
    sheet.remark(
        "With −∞ the order makes no difference, and with mask values this low none that can be seen."
    )

    title = "Weights with −∞, filled after scaling"
    formula = r"a = \mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)"
    sheet.step(title, formula, filled_after[0], "key", quantity="weight", blocked=mask == 0)
    sheet.numbers(r"\mathrm{softmax}(@) = @", masked[0], filled_after[0])


@worked(
    "§5",
    "A row with every key masked",
    "When every key is masked, −1e9 gives a uniform row and −∞ gives 0/0. This app gives zeros.",
    given("scores", "Scores", [2.5, 1.3, 0.7], "key"),
    given("mask_value", "Mask value", -1e9, lowest=-1e20, highest=0),
)
def fully_masked_row(sheet: Sheet, scores: Array, mask_value: float) -> None:
    nothing = np.zeros_like(scores)
    blocked = nothing == 0
    written = attention.masked(scores, nothing, mask_value)
    title, formula = "Every score replaced by the mask value", r"\tilde s_j = \text{mask value}"
    sheet.step(title, formula, written, "key", quantity="score", blocked=blocked)
    sheet.numbers(r"\tilde s = @", written)

    uniform = attention.softmax(written)
    title = "Weights: a uniform row"
    sheet.step(title, r"\frac{e^{f}}{n\, e^{f}} = \frac{1}{n}", uniform, "key", quantity="weight")
    sheet.numbers(r"\frac{1}{@} = @", len(scores), uniform[0])
    sheet.remark(
        "Equal scores give equal weights, so the row attends to keys that it should not see."
    )

    added = attention.softmax(scores + mask_value)
    title = "The mask value added instead of written"
    formula = r"\mathrm{softmax}(s_j + \text{mask value})"
    sheet.step(title, formula, added, "key", quantity="weight")
    sheet.numbers(r"\mathrm{softmax}(@ + @) = @", scores, mask_value, added)
    sheet.remark(
        "Adding the same number to every score keeps the differences between them, "
        "so nothing is hidden (as long as float64 can hold those differences)."
    )
    hidden = attention.masked(scores, nothing)
    exponentials = np.exp(hidden)
    sheet.step("Exponentials with −∞", r"e^{-\infty} = 0", exponentials, "key", blocked=blocked)
    sheet.numbers(r"e^{-\infty} + e^{-\infty} + \ldots = @", exponentials.sum())
    sheet.remark("Their sum is 0, so plain arithmetic divides 0 by 0, and that gives NaN.")

    title = "Weights with −∞, as this app defines them"
    formula = r"a_j = 0\ \text{where no key is open}"
    weights = attention.softmax(hidden)
    sheet.step(title, formula, weights, "key", quantity="weight", blocked=blocked)
    sheet.numbers(r"a = 0\ \text{instead of}\ \tfrac{0}{0}")
    sheet.remark(
        "A row with every key masked attends to nothing: all its weights and its output are 0."
    )
