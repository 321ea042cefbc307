"""Norms, activations, the feed-forward layer, shortcuts and dropout (§9, §10)."""

import numpy as np

from model.arithmetic import feed_forward, learning, normalization, sizes
from model.nn import activations
from model.system.words import Words
from model.worked import latex
from model.worked.example import (
    Array64,
    Input,
    Sheet,
    given,
    numbered,
    whole,
    without_rounding,
    worked,
)
from model.worked.notes import MATRICES

say = Words("worked.layers")

_X = given("x", "x", [2, 4, 6, 8], "dim")
_EPSILON = given("epsilon", "ε", 1e-5, lowest=1e-12, highest=1)
_NORMALIZED = r"\hat x_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}"


@worked(
    "§9",
    say("layer_norm_four"),
    say("token_vector_moved"),
    _X,
    given("gamma", "γ", np.ones(4), "dim"),
    given("beta", "β", np.zeros(4), "dim"),
    _EPSILON,
)
def layer_norm_by_hand(
    sheet: Sheet, x: Array64, gamma: Array64, beta: Array64, epsilon: float
) -> None:
    mean = sheet.step("Mean", r"\mu = \frac{1}{d}\sum_i x_i", normalization.mean(x)[0])
    sheet.numbers(r"\frac{@}{@} = @", latex.total(x), len(x), mean)
    centred = sheet.step("Deviations", r"x_i - \mu", x - mean, "dim")
    sheet.numbers("@ - @ = @", x, mean, centred)
    formula = r"\sigma^2 = \frac{1}{d}\sum_i (x_i - \mu)^2"
    variance = sheet.step("Variance", formula, normalization.variance(x)[0])
    sheet.numbers(r"\frac{@}{@} = @", latex.total(centred**2), len(x), variance)
    sheet.remark(say("biased_variance_divided"))
    root = sheet.step("Its root", r"\sqrt{\sigma^2 + \epsilon}", np.sqrt(variance + epsilon))
    sheet.numbers(r"\sqrt{@ + @} = @", variance, epsilon, root)
    sheet.remark(say("stands_inside_root"))
    unit = normalization.normalized(x, epsilon=epsilon)
    sheet.step("Normalized", _NORMALIZED, unit, "dim")
    sheet.numbers(r"\frac{@}{@} = @", centred[0], root, unit[0])
    output = normalization.layer_norm(x, gamma, beta, epsilon)
    formula = r"y_i = \gamma_i\, \hat x_i + \beta_i"
    sheet.step("Scaled and shifted", formula, output, "dim", quantity="output")
    sheet.numbers(r"@ \cdot @ + @ = @", gamma[0], unit[0], beta[0], output[0])
    sheet.remark(say("learned_every_dimension"))
    _divided_by_the_variance(sheet, centred, unit, root * root)


def _divided_by_the_variance(
    sheet: Sheet, centred: Array64, unit: Array64, variance: Array64
) -> None:
    by_variance, formula = centred / variance, r"\frac{x_i - \mu}{\sigma^2 + \epsilon}"
    sheet.step(say("divided_variance_instead"), formula, by_variance, "dim")
    sheet.numbers(r"\frac{@}{@} = @", centred[0], variance, by_variance[0])
    source = MATRICES.at(say("normalizing_activations_layer"))
    sheet.remark(say("layer_norm_divides", source=source))
    spreads = np.array([unit.var(), by_variance.var()])
    ways = ("by the root", "by the variance")
    sheet.step("Variance of both", r"\mathrm{Var}(\hat x)", spreads, ways)
    sheet.numbers("@", spreads)
    sheet.remark(say("only_division_root"))


@worked(
    "§9",
    say("biased_unbiased_variance"),
    say("dividing_1_instead"),
    _X,
    _EPSILON,
    whole("widths", "Widths d", [4, 512], 2, 16_384, ("first", "second")),
)
def biased_and_unbiased(sheet: Sheet, x: Array64, epsilon: float, widths: Array64) -> None:
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
    title = say("much_smaller_unbiased")
    sheet.step(title, formula, off, tuple(f"d = {width:g}" for width in widths))
    line = r"100 \left(1 - \sqrt{\tfrac{@}{@}}\right) = @"
    sheet.numbers(line, widths[0] - 1, widths[0], off[0])
    sheet.remark(say("width_real_model"))


_SUB_LAYER = [[0.5, 0, 0, 0.2], [0, -0.3, 0.1, 0], [0.4, 0, 0.2, 0], [0, 0.6, 0, -0.1]]


@worked(
    "§9",
    say("post_ln_pre_ln"),
    say("norm_stands_after_residual"),
    _X,
    given("matrix", say("sub_layer_f_x_x"), _SUB_LAYER, "dim", "dim"),
)
def where_the_norm_stands(sheet: Sheet, x: Array64, matrix: Array64) -> None:
    total = sheet.step("Residual sum", "x + f(x)", x + x @ matrix, "dim")
    sheet.numbers("@", total)
    post, formula = normalization.layer_norm(total), r"\mathrm{LN}(x + f(x))"
    sheet.step("Post-LN output", formula, post, "dim", quantity="output")
    sheet.numbers("@", post)
    sheet.remark(say("norm_stands_after"))
    entering = normalization.layer_norm(x)
    title = say("enters_sub_layer")
    sheet.step(title, r"\mathrm{LN}(x)", entering, "dim")
    sheet.numbers("@", entering)
    pre, formula = x + entering @ matrix, r"x + f(\mathrm{LN}(x))"
    sheet.step("Pre-LN output", formula, pre, "dim", quantity="output")
    sheet.numbers("@", pre)
    sheet.remark(say("norm_stands_before"))
    final = normalization.layer_norm(pre)
    sheet.step(say("final_norm_pre_ln"), r"\mathrm{LN}(\text{stream})", final, "dim")
    sheet.numbers("@", final)
    sheet.remark(say("pre_ln_stack_therefore"))
    rows = {"post-LN output": post, "pre-LN output": pre, say("after_final_norm"): final}
    table = np.array([[without_rounding(row.mean(), row), row.var()] for row in rows.values()])
    sheet.step("Mean and variance", r"\mu,\ \sigma^2", table, tuple(rows), ("mean", "variance"))
    sheet.numbers(r"\text{post-LN: } @", table[0])


_HOUSES = numbered("house", 3, start=1)
_FEATURES = ("size", "rooms")
_TABLE = [[1200.0, 2.0], [1500.0, 3.0], [2000.0, 3.5]]
_COLUMN_NORM = r"\frac{x_{nd} - \mu_d}{\sqrt{\sigma_d^2 + \epsilon}}"
_ROW_NORM = r"\frac{x_{nd} - \mu_n}{\sqrt{\sigma_n^2 + \epsilon}}"


def _statistics(sheet: Sheet, title: str, over: str, table: Array64) -> Array64:
    result = np.concatenate([normalization.mean(table, 0), normalization.variance(table, 0)])
    formula = latex.filled(r"\mu_d,\ \sigma_d^2\ \text{over @}", over)
    sheet.step(title, formula, result, ("mean", "variance"), _FEATURES)
    line = r"\text{size: } \frac{@}{@} = @"
    sheet.numbers(line, latex.total(table[:, 0]), len(table), result[0, 0])
    return result


@worked(
    "§9",
    say("houses_batch_norm"),
    say("batch_norm_normalizes"),
    given("houses", "Houses", _TABLE, _HOUSES, _FEATURES, lowest=-100_000, highest=100_000),
    given("prices", "Prices in lakh", [45, 70, 80], _HOUSES, lowest=0, highest=100_000),
    _EPSILON,
)
def houses(sheet: Sheet, houses: Array64, prices: Array64, epsilon: float) -> None:
    table, columns = np.column_stack([houses, prices]), (*_FEATURES, "price in lakh")
    sheet.step(say("table_prices"), r"[\,x,\ y\,]", table, _HOUSES, columns)
    sheet.numbers(r"\text{house 1: } @ \to @", houses[0], prices[0])
    sheet.remark(say("only_features_normalized"))

    title = say("mean_variance_column")
    mean, variance = _statistics(sheet, title, "the houses", houses)
    by_column = normalization.normalized(houses, 0, epsilon=epsilon)
    sheet.step(say("batch_norm_column"), _COLUMN_NORM, by_column, _HOUSES, _FEATURES)
    root = np.sqrt(variance[0] + epsilon)
    sheet.numbers(r"\frac{@ - @}{@} = @", houses[0, 0], mean[0], root, by_column[0, 0])
    sheet.remark(say("house_numbers_depend"))
    by_row = normalization.normalized(houses, epsilon=epsilon)
    sheet.step(say("layer_norm_row"), _ROW_NORM, by_row, _HOUSES, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_row[0])
    sheet.remark(say("row_normalized_itself"))

    padded, rows = np.concatenate([houses, np.zeros((1, 2))]), (*_HOUSES, "padding")
    _statistics(sheet, say("row_padding", title=title), "all rows", padded)
    sheet.remark(say("padding_row_zeros"))
    by_column = normalization.normalized(padded, 0, epsilon=epsilon)
    sheet.step(say("batch_norm_padding"), _COLUMN_NORM, by_column, rows, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_column[0])
    by_row = normalization.normalized(padded, epsilon=epsilon)
    sheet.step(say("layer_norm_padding"), _ROW_NORM, by_row, rows, _FEATURES)
    sheet.numbers(r"\text{house 1: } @", by_row[0])
    sheet.remark(say("houses_own_rows"))


@worked(
    "§9",
    "Pixels from 0–255 to 0–1",
    say("min_max_scaling"),
    given("pixels", "Pixels (chosen here)", [0, 64, 128, 255], "pixel", lowest=0, highest=255),
    given("lowest", "Low end", 0, lowest=-1000, highest=1000),
    given("highest", "High end", 255, lowest=-1000, highest=1000),
)
def pixels_min_max(sheet: Sheet, pixels: Array64, lowest: float, highest: float) -> None:
    if highest <= lowest:
        raise ValueError(f"The range must rise: {highest:g} is not above {lowest:g}.")
    scaled = normalization.min_max(pixels, lowest, highest)
    formula = r"\frac{x - x_{\min}}{x_{\max} - x_{\min}}"
    sheet.step("Min–max scaling", formula, scaled, "pixel")
    sheet.numbers(r"\frac{@ - @}{@ - @} = @", pixels[1], lowest, highest, lowest, scaled[1])
    sheet.remark(say("ends_range_become"))
    scores = normalization.normalized(pixels, epsilon=1e-12)
    sheet.step("z-scores, in contrast", r"\frac{x - \mu}{\sigma}", scores, "pixel")
    line = r"\frac{@ - @}{@} = @"
    sheet.numbers(line, pixels[1], pixels.mean(), pixels.std(), scores[1])
    sheet.remark(say("mean_0_variance"))


_POINTS = given(
    "points", "Points x", [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3], "point", lowest=-20, highest=20
)
_SLOPE = r"\Phi(x) + x\,\varphi(x)"
_GATE = [[0.6, -0.4, 1], [0.2, 0.8, -0.5]]
_UP = [[0.5, 1, -0.3], [-0.7, 0.4, 0.9]]


def _labels(points: Array64) -> tuple[str, ...]:
    return tuple(f"x = {point:g}" for point in points)


@worked(
    "§10",
    say("gelu_exact_tanh"),
    say("gelu_multiplies_x"),
    _POINTS,
)
def gelu(sheet: Sheet, points: Array64) -> None:
    first, columns = points[0], _labels(points)
    share = activations.normal_share(points)
    title = say("share_normal_distribution")
    formula = r"\Phi(x) = \tfrac12\left(1 + \mathrm{erf}\tfrac{x}{\sqrt 2}\right)"
    sheet.step(title, formula, share, columns)
    sheet.numbers(r"\Phi(@) = @", first, share[0])
    exact, formula = activations.gelu(points), r"\mathrm{GELU}(x) = x \cdot \Phi(x)"
    sheet.step("GELU", formula, exact, columns, quantity="output")
    sheet.numbers(r"@ \cdot @ = @", first, share[0], exact[0])
    tanh = activations.gelu_tanh(points)
    formula = (
        r"\tfrac12 x \left(1 + \tanh\!\left(\sqrt{\tfrac{2}{\pi}}\,"
        r"(x + 0.044715\, x^3)\right)\right)"
    )
    sheet.step("GELU by tanh", formula, tanh, columns, quantity="output")
    sheet.numbers(r"\mathrm{GELU}_{\tanh}(@) = @", first, tanh[0])
    sheet.remark(say("gpt_2_trained_approximation"))
    off = tanh - exact
    sheet.step(say("tanh_form_minus"), r"\text{tanh form} - x\,\Phi(x)", off, columns)
    sheet.largest_difference()
    slope = sheet.step("Slope", _SLOPE, activations.gelu_slope(points), columns)
    sheet.numbers(r"\mathrm{GELU'}(@) = @", first, slope[0])
    sheet.remark(say("below_0_slope_not"))


@worked(
    "§10",
    say("minimum_gelu"),
    say("gelu_dips_below"),
    given("low", say("left_end_search"), -1, lowest=-1.4, highest=-0.76),
    given("high", say("right_end_search"), -0.5, lowest=-0.75, highest=0),
)
def gelu_minimum(sheet: Sheet, low: float, high: float) -> None:
    if low >= high:
        raise ValueError(f"The interval must rise: {high:g} is not above {low:g}.")
    lowest = feed_forward.zero_of(activations.gelu_slope, low, high)
    around = np.array([low, lowest, high])
    slopes = activations.gelu_slope(around)
    title = say("slope_ends_minimum")
    sheet.step(title, _SLOPE, slopes, _labels(around))
    sheet.numbers(r"\mathrm{GELU'}(@) = @", low, slopes[0])
    sheet.remark(say("negative_left_positive"))
    sheet.step(say("slope_0"), rf"{_SLOPE} = 0", lowest)
    sheet.numbers(r"\mathrm{GELU'}(@) = @", lowest, round(slopes[1], 12))
    value = activations.gelu(np.array(lowest))
    sheet.step("GELU there", r"x\,\Phi(x)", value, quantity="output")
    sheet.numbers(r"\mathrm{GELU}(@) = @", lowest, value)


@worked(
    "§10",
    "ReLU beside GELU",
    say("relu_cuts_off_everything"),
    _POINTS,
)
def relu_and_gelu(sheet: Sheet, points: Array64) -> None:
    names, columns = ("ReLU", "GELU"), _labels(points)
    heights = np.stack([activations.relu(points), activations.gelu(points)])
    formula = r"\mathrm{ReLU}(x) = \max(0, x)"
    sheet.step("ReLU beside GELU", formula, heights, names, columns, quantity="output")
    sheet.numbers(r"\max(0, @) = @", points[0], heights[0, 0])
    sheet.remark(say("relu_0_everything"))
    slopes = np.stack([activations.relu_slope(points), activations.gelu_slope(points)])
    formula = r"\mathrm{ReLU}'(x) = 1\ \text{where } x > 0,\ \text{else } 0"
    sheet.step("Their slopes", formula, slopes, names, columns)
    sheet.numbers(r"\mathrm{ReLU'}(@) = @", points[0], slopes[0, 0])
    sheet.remark(say("below_0_relu_passes"))


@worked(
    "§10",
    "SwiGLU: a gated activation",
    say("linear_maps_same"),
    given("x", "x (chosen here)", [1, -0.5], "dim"),
    given("gate", "W_gate (chosen here)", _GATE, "dim", "hidden"),
    given("up", "W_up (chosen here)", _UP, "dim", "hidden"),
)
def swiglu(sheet: Sheet, x: Array64, gate: Array64, up: Array64) -> None:
    opening, formula = x @ gate, r"x\, W_{\text{gate}}"
    sheet.step(say("gate_before_activation"), formula, opening, "hidden")
    sheet.numbers(r"@\,W_{\text{gate}} = @", x, opening)
    opened, formula = activations.silu(opening), r"\mathrm{silu}(g) = \frac{g}{1 + e^{-g}}"
    sheet.step("Gate", formula, opened, "hidden")
    sheet.numbers(r"\frac{@}{1 + e^{@}} = @", opening[0], -opening[0], opened[0])
    content = sheet.step("Content", r"x\, W_{\text{up}}", x @ up, "hidden")
    sheet.numbers(r"@\,W_{\text{up}} = @", x, content)
    result = feed_forward.swiglu(x, gate, up)
    formula = r"\mathrm{silu}(x W_{\text{gate}}) \odot (x W_{\text{up}})"
    sheet.step("SwiGLU", formula, result, "hidden", quantity="output")
    sheet.numbers(r"@ \cdot @ = @", opened[0], content[0], result[0])
    sheet.remark(say("gate_decides_much"))


_WORDS = ("The", "Cat", "Sat")
_WEIGHTS = [[0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.2, 0.2, 0.6]]
_VALUES = [0.5, -1.2, 0.8, 2, -0.3, 1.1, 0.4, -0.9, 1.6, 0.2]


def seeded(rate: float, seed: int) -> tuple[Input, ...]:
    """The rate of dropout and the seed of its random numbers."""
    return (
        given("rate", "Dropout p", rate, lowest=0, highest=0.9),
        whole("seed", "Seed", seed, 0, 9999),
    )


def _random(seed: int, *shape: int) -> Array64:
    return np.random.default_rng(seed).uniform(-1, 1, shape).round(1)


@worked(
    "§10",
    say("feed_forward_layer"),
    say("linear_maps_activation"),
    given("x", say("token_vectors_chosen"), [[1, -0.5], [0.3, 0.8]], "token", "dim"),
    given("first", "W_1 (chosen here)", _random(1, 2, 8), "dim", "hidden"),
    given("second", "W_2 (chosen here)", _random(2, 8, 2), "hidden", "dim"),
)
def feed_forward_position_wise(sheet: Sheet, x: Array64, first: Array64, second: Array64) -> None:
    hidden = sheet.step("Widened from d to 4d", r"x\, W_1", x @ first, "token", "hidden")
    sheet.numbers(r"@\,W_1 = @", x[0], hidden[0])
    active, formula = activations.gelu(hidden), r"\mathrm{GELU}(x\, W_1)"
    sheet.step("Activation", formula, active, "token", "hidden")
    sheet.numbers(r"\mathrm{GELU}(@) = @", hidden[0, 0], active[0, 0])
    output, formula = active @ second, r"\mathrm{GELU}(x\, W_1)\, W_2"
    sheet.step("Back from 4d to d", formula, output, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 0: } @", output[0])
    alone = np.stack([feed_forward.feed_forward(row, first, second, activations.gelu) for row in x])
    title = say("tokens_once_minus")
    sheet.difference(output, alone, title, "token", "dim")
    sheet.remark(say("position_wise_token"))


@worked(
    "§10",
    say("gradients_through_deep"),
    say("layer_tanh_wx_without"),
    whole("depth", "Layers", 24, 2, 48),
    whole("width", "Width", 16, 1, 64),
    given("gain", say("size_weights"), 0.5, lowest=0.01, highest=2),
    whole("seed", "Seed", 0, 0, 9999),
)
def residual_gradient(sheet: Sheet, depth: int, width: int, gain: float, seed: int) -> None:
    matrices = learning.stack_weights(seed, depth, width, gain)
    start = np.random.default_rng([seed, 1]).standard_normal(width)
    plain = learning.gradient_by_layer(matrices, start, shortcut=False)
    short = learning.gradient_by_layer(matrices, start, shortcut=True)
    lengths, stacks = np.stack([plain, short]), ("x ← f(x)", "x ← x + f(x)")
    title = say("size_gradient_layer")
    formula = r"\left\lVert \frac{\partial L}{\partial x_l} \right\rVert"
    sheet.step(title, formula, lengths, stacks, "layer")
    sheet.numbers(r"\text{layer 0: } @ \quad \text{and} \quad @", plain[0], short[0])
    sheet.remark(say("shortcut_gives_gradient"))
    ratios = lengths[:, 0] / np.maximum(lengths[:, -1], np.finfo(np.float64).tiny)
    formula = (
        r"\left\lVert \frac{\partial L}{\partial x_0} \right\rVert \Big/ "
        r"\left\lVert \frac{\partial L}{\partial x_{\text{last}}} \right\rVert"
    )
    title, stacks = say("first_layer_compared"), ("without shortcuts", "with shortcuts")
    sheet.step(title, formula, ratios, stacks)
    line = r"\frac{@}{@} \quad \text{and} \quad \frac{@}{@}"
    sheet.numbers(line, plain[0], plain[-1], short[0], short[-1])
    sheet.remark(say("output_input_added"))


@worked(
    "§10",
    "Dropout with p = 0.1",
    say("training_value_set"),
    given("values", "Values (chosen here)", _VALUES, "value"),
    *seeded(0.1, 1),
)
def dropout_by_hand(sheet: Sheet, values: Array64, rate: float, seed: int) -> None:
    draws = np.random.default_rng(seed).random(len(values))
    sheet.step("Random numbers drawn", r"u_i \sim \mathrm{uniform}(0, 1)", draws, "value")
    sheet.numbers(r"\text{seed } @", str(seed))
    keep, formula = feed_forward.kept(draws, rate), r"k_i = 1\ \text{where } u_i \ge p"
    sheet.step("Kept", formula, keep, "value")
    sheet.numbers(r"p = @:\ @\ \text{of}\ @", rate, keep.sum(), len(keep))
    after, formula = feed_forward.dropped(values, keep, rate), r"\frac{k_i\, x_i}{1 - p}"
    sheet.step("In training", formula, after, "value", quantity="output")
    sheet.numbers(r"\frac{@}{1 - @} = @", values[0], rate, values[0] / (1 - rate))
    sheet.remark(say("kept_values_divided"))
    sums = np.array([values.sum(), after.sum()])
    modes = ("evaluation", "training")
    sheet.step(say("sum_before_after"), r"\sum_i x_i", sums, modes)
    sheet.numbers("@", sums)
    sheet.remark(say("equal_average_over"))
    sheet.step("In evaluation", "x_i", values, "value", quantity="output")
    sheet.numbers("@", values)
    sheet.remark(say("dropout_off_nothing"))


@worked(
    "§10",
    say("dropout_attention_weights"),
    say("dropped_weights_gone"),
    given("weights", "Weights", _WEIGHTS, _WORDS, _WORDS, lowest=0, highest=1),
    *seeded(0.1, 0),
)
def dropout_on_weights(sheet: Sheet, weights: Array64, rate: float, seed: int) -> None:
    draws = np.random.default_rng(seed).random(weights.shape)
    formula = r"u_{ij} \sim \mathrm{uniform}(0, 1)"
    sheet.step("Random numbers drawn", formula, draws, _WORDS, _WORDS)
    sheet.numbers(r"\text{seed } @", str(seed))
    after = feed_forward.dropped(weights, feed_forward.kept(draws, rate), rate)
    title, formula = "Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step(title, formula, after, _WORDS, _WORDS, quantity="weight")
    sheet.numbers(r"\text{The: } @", after[0])
    sums, modes = np.stack([weights.sum(axis=1), after.sum(axis=1)]), ("evaluation", "training")
    sheet.step(say("sum_row"), r"\sum_j a_{ij}", sums, modes, _WORDS)
    sheet.numbers(r"\text{The: } @ = @", latex.total(after[0]), sums[1, 0])
    sheet.remark(say("after_dropout_rows"))


@worked(
    "§10",
    say("why_four_times_wide"),
    say("feed_forward_layer_widens"),
    whole("width", "Width d_model", 768, 1, 16_384),
    whole("factors", "Times as wide", [1, 2, 4, 8], 1, 64, "choice"),
)
def how_wide_inside(sheet: Sheet, width: int, factors: Array64) -> None:
    names = tuple(f"{factor:g} × d" for factor in factors)
    inside = factors * width
    sheet.step("Neurons", r"f \cdot d", inside, names)
    sheet.numbers(r"@ \cdot @ = @", factors[-1], float(width), inside[-1])
    sheet.remark(say("neuron_looks_direction"))
    own = np.array([sizes.feed_forward_parameters(width, int(each)) for each in inside])
    sheet.step(say("parameters_layer"), r"2\,f\,d^2 + (f + 1)\,d", own, names)
    products = (2 * factors[-1] * width**2, (factors[-1] + 1) * width)
    sheet.numbers("@ + @ = @", *products, own[-1])
    shares = 100 * own / (own + sizes.projection_parameters(width))
    formula = r"\frac{100 \cdot \text{feed-forward}}{\text{feed-forward} + 4\,d^2}"
    sheet.step(say("share_beside_attention"), formula, shares, names)
    four = sizes.projection_parameters(width)
    sheet.numbers(r"\frac{100 \cdot @}{@ + @} = @", own[-1], own[-1], four, shares[-1])
    sheet.remark(say("four_times_width"))
