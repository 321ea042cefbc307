"""Layer norm by hand, where the norm stands, batch norm, and min–max scaling."""

import numpy as np

from model.arithmetic import normalization
from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, whole, worked
from model.worked.source import MATRICES

_X = given("x", "x", [2, 4, 6, 8], "dim")
_EPSILON = given("epsilon", "ε", 1e-5, lowest=1e-12, highest=1)
_NORMALIZED = r"\hat x_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}"


@worked(
    "§9",
    "Layer norm of four numbers",
    "Each token's vector is moved to mean 0 and variance 1, then scaled by γ and shifted by β.",
    _X,
    given("gamma", "γ", np.ones(4), "dim"),
    given("beta", "β", np.zeros(4), "dim"),
    _EPSILON,
)
def layer_norm_by_hand(sheet: Sheet, x: Array, gamma: Array, beta: Array, epsilon: float) -> None:
    mean = sheet.step("Mean", r"\mu = \frac{1}{d}\sum_i x_i", normalization.mean(x)[0])
    sheet.numbers(r"\frac{@}{@} = @", latex.total(x), len(x), mean)
    centred = sheet.step("Deviations", r"x_i - \mu", x - mean, "dim")
    sheet.numbers("@ - @ = @", x, mean, centred)
    formula = r"\sigma^2 = \frac{1}{d}\sum_i (x_i - \mu)^2"
    variance = sheet.step("Variance", formula, normalization.variance(x)[0])
    sheet.numbers(r"\frac{@}{@} = @", latex.total(centred**2), len(x), variance)
    sheet.remark("The biased variance, divided by d: what PyTorch and GPT-2 use.")
    root = sheet.step("Its root", r"\sqrt{\sigma^2 + \epsilon}", np.sqrt(variance + epsilon))
    sheet.numbers(r"\sqrt{@ + @} = @", variance, epsilon, root)
    sheet.remark("ε stands inside the root and keeps it from being 0.")
    unit = normalization.normalized(x, epsilon=epsilon)
    sheet.step("Normalized", _NORMALIZED, unit, "dim")
    sheet.numbers(r"\frac{@}{@} = @", centred[0], root, unit[0])
    output = normalization.layer_norm(x, gamma, beta, epsilon)
    formula = r"y_i = \gamma_i\, \hat x_i + \beta_i"
    sheet.step("Scaled and shifted", formula, output, "dim", quantity="output")
    sheet.numbers(r"@ \cdot @ + @ = @", gamma[0], unit[0], beta[0], output[0])
    sheet.remark(
        "γ and β are learned, one of each for every dimension. "
        "With γ = 1 and β = 0 the result is x̂, not x."
    )
    _divided_by_the_variance(sheet, centred, unit, root * root)


def _divided_by_the_variance(sheet: Sheet, centred: Array, unit: Array, variance: Array) -> None:
    by_variance, formula = centred / variance, r"\frac{x_i - \mu}{\sigma^2 + \epsilon}"
    sheet.step("Divided by the variance instead", formula, by_variance, "dim")
    sheet.numbers(r"\frac{@}{@} = @", centred[0], variance, by_variance[0])
    source = MATRICES.at("Normalizing activations with layer normalization")
    sheet.remark(f"Layer norm divides by the standard deviation. ({source} names the variance.)")
    spreads = np.array([unit.var(), by_variance.var()])
    ways = ("by the root", "by the variance")
    sheet.step("Variance of both", r"\mathrm{Var}(\hat x)", spreads, ways)
    sheet.numbers("@", spreads)
    sheet.remark("Only the division by the root brings the variance to 1.")


@worked(
    "§9",
    "Biased and unbiased variance",
    "Dividing by d − 1 instead of d makes the variance larger and x̂ smaller.",
    _X,
    _EPSILON,
    whole("widths", "Widths d", [4, 512], 2, 16_384, ("first", "second")),
)
def biased_and_unbiased(sheet: Sheet, x: Array, epsilon: float, widths: Array) -> None:
    kinds, total = ("divided by d", "divided by d − 1"), ((x - x.mean()) ** 2).sum()
    variances = np.array([normalization.variance(x, unbiased=way)[0] for way in (False, True)])
    formula = (
        r"\frac{1}{d}\sum (x_i - \mu)^2 \quad \text{and} \quad \frac{1}{d-1}\sum (x_i - \mu)^2"
    )
    sheet.step("Variance", formula, variances, kinds)
    line, d = r"\frac{@}{@} = @,\quad \frac{@}{@} = @", len(x)
    sheet.numbers(line, total, d, variances[0], total, d - 1, variances[1])
    units = np.stack(
        [normalization.normalized(x, epsilon=epsilon, unbiased=way) for way in (False, True)]
    )
    sheet.step("Normalized", _NORMALIZED, units, kinds, "dim")
    sheet.numbers(r"\hat x_0 = @,\quad @", *units[:, 0])
    off = 100.0 * normalization.shrinkage(widths)
    formula = r"100 \left(1 - \sqrt{\frac{d - 1}{d}}\right)"
    title = "How much smaller the unbiased result is, in percent"
    sheet.step(title, formula, off, tuple(f"d = {width:g}" for width in widths))
    line = r"100 \left(1 - \sqrt{\tfrac{@}{@}}\right) = @"
    sheet.numbers(line, widths[0] - 1, widths[0], off[0])
    sheet.remark("At the width of a real model the two hardly differ.")


_SUB_LAYER = [[0.5, 0, 0, 0.2], [0, -0.3, 0.1, 0], [0.4, 0, 0.2, 0], [0, 0.6, 0, -0.1]]


@worked(
    "§9",
    "Post-LN and pre-LN",
    "The norm stands after the residual sum, or before each sub-layer with one final norm.",
    _X,
    given("matrix", "The sub-layer f(x) = x·W (chosen here)", _SUB_LAYER, "dim", "dim"),
)
def where_the_norm_stands(sheet: Sheet, x: Array, matrix: Array) -> None:
    total = sheet.step("Residual sum", "x + f(x)", x + x @ matrix, "dim")
    sheet.numbers("@", total)
    post, formula = normalization.layer_norm(total), r"\mathrm{LN}(x + f(x))"
    sheet.step("Post-LN output", formula, post, "dim", quantity="output")
    sheet.numbers("@", post)
    sheet.remark("The norm stands after the sum: the 2017 encoder and decoder, and BERT.")
    entering = normalization.layer_norm(x)
    title = "What enters the sub-layer in pre-LN"
    sheet.step(title, r"\mathrm{LN}(x)", entering, "dim")
    sheet.numbers("@", entering)
    pre, formula = x + entering @ matrix, r"x + f(\mathrm{LN}(x))"
    sheet.step("Pre-LN output", formula, pre, "dim", quantity="output")
    sheet.numbers("@", pre)
    sheet.remark(
        "The norm stands before the sub-layer; the residual stream is not normalized: GPT-2."
    )
    final = normalization.layer_norm(pre)
    sheet.step("Final norm of a pre-LN stack", r"\mathrm{LN}(\text{stream})", final, "dim")
    sheet.numbers("@", final)
    sheet.remark("A pre-LN stack therefore ends with one more norm.")
    rows = {"post-LN output": post, "pre-LN output": pre, "after the final norm": final}
    table = np.array([[row.mean(), row.var()] for row in rows.values()])
    sheet.step("Mean and variance", r"\mu,\ \sigma^2", table, tuple(rows), ("mean", "variance"))
    sheet.numbers(r"\text{post-LN: } @", table[0])


_HOUSES = numbered("house", 3, start=1)
_FEATURES = ("size", "rooms")
_TABLE = [[1200.0, 2.0], [1500.0, 3.0], [2000.0, 3.5]]
_COLUMN_NORM = r"\frac{x_{nd} - \mu_d}{\sqrt{\sigma_d^2 + \epsilon}}"
_ROW_NORM = r"\frac{x_{nd} - \mu_n}{\sqrt{\sigma_n^2 + \epsilon}}"


def _statistics(sheet: Sheet, title: str, over: str, table: Array) -> Array:
    result = np.concatenate([normalization.mean(table, 0), normalization.variance(table, 0)])
    formula = latex.filled(r"\mu_d,\ \sigma_d^2\ \text{over @}", over)
    sheet.step(title, formula, result, ("mean", "variance"), _FEATURES)
    line = r"\text{size: } \frac{@}{@} = @"
    sheet.numbers(line, latex.total(table[:, 0]), len(table), result[0, 0])
    return result


@worked(
    "§9",
    "Houses: batch norm and layer norm",
    "Batch norm normalizes each column over the samples, layer norm each row over its features.",
    given("houses", "Houses", _TABLE, _HOUSES, _FEATURES, lowest=-100_000, highest=100_000),
    given("prices", "Prices in lakh", [45, 70, 80], _HOUSES, lowest=0, highest=100_000),
    _EPSILON,
)
def houses(sheet: Sheet, houses: Array, prices: Array, epsilon: float) -> None:
    table, columns = np.column_stack([houses, prices]), (*_FEATURES, "price in lakh")
    sheet.step("The table with its prices", r"[\,x,\ y\,]", table, _HOUSES, columns)
    sheet.numbers(r"\text{house 1: } @ \to @", houses[0], prices[0])
    sheet.remark("Only the features are normalized; the price is the target of the prediction.")

    title = "Mean and variance of each column"
    mean, variance = _statistics(sheet, title, "the houses", houses)
    by_column = normalization.normalized(houses, 0, epsilon=epsilon)
    sheet.step("Batch norm: each column", _COLUMN_NORM, by_column, _HOUSES, _FEATURES)
    root = np.sqrt(variance[0] + epsilon)
    sheet.numbers(r"\frac{@ - @}{@} = @", houses[0, 0], mean[0], root, by_column[0, 0])
    sheet.remark("A house's numbers depend on the other houses of the batch.")
    by_row = normalization.normalized(houses, epsilon=epsilon)
    sheet.step("Layer norm: each row", _ROW_NORM, by_row, _HOUSES, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_row[0])
    sheet.remark("Each row is normalized by itself: no sample touches another.")

    padded, rows = np.concatenate([houses, np.zeros((1, 2))]), (*_HOUSES, "padding")
    _statistics(sheet, f"{title} with a row of padding", "all rows", padded)
    sheet.remark("A padding row of zeros changes the statistics of batch norm.")
    by_column = normalization.normalized(padded, 0, epsilon=epsilon)
    sheet.step("Batch norm with the padding", _COLUMN_NORM, by_column, rows, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_column[0])
    by_row = normalization.normalized(padded, epsilon=epsilon)
    sheet.step("Layer norm with the padding", _ROW_NORM, by_row, rows, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_row[0])
    sheet.remark("The houses' own rows stay as they were.")


@worked(
    "§9",
    "Pixels from 0–255 to 0–1",
    "Min–max scaling moves a known range onto 0 to 1. A z-score is a distance from the mean, "
    "in standard deviations.",
    given("pixels", "Pixels (chosen here)", [0, 64, 128, 255], "pixel", lowest=0, highest=255),
    given("lowest", "Low end", 0, lowest=-1000, highest=1000),
    given("highest", "High end", 255, lowest=-1000, highest=1000),
)
def pixels_min_max(sheet: Sheet, pixels: Array, lowest: float, highest: float) -> None:
    if highest <= lowest:
        raise ValueError(f"The range must rise: {highest:g} is not above {lowest:g}.")
    scaled = normalization.min_max(pixels, lowest, highest)
    formula = r"\frac{x - x_{\min}}{x_{\max} - x_{\min}}"
    sheet.step("Min–max scaling", formula, scaled, "pixel")
    sheet.numbers(r"\frac{@ - @}{@ - @} = @", pixels[1], lowest, highest, lowest, scaled[1])
    sheet.remark("The ends of the range become 0 and 1; the mean need not become 0.")
    scores = normalization.normalized(pixels, epsilon=1e-12)
    sheet.step("z-scores, in contrast", r"\frac{x - \mu}{\sigma}", scores, "pixel")
    line = r"\frac{@ - @}{@} = @"
    sheet.numbers(line, pixels[1], pixels.mean(), pixels.std(), scores[1])
    sheet.remark("Mean 0 and variance 1, with no fixed ends.")
