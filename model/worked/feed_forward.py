"""The feed-forward layer, residual connections, and dropout."""

import numpy as np

from model.arithmetic import activations, learning
from model.worked import latex
from model.worked.example import Array, Input, Sheet, given, whole, worked

_WORDS = ("The", "Cat", "Sat")
_WEIGHTS = [[0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.2, 0.2, 0.6]]
_VALUES = [0.5, -1.2, 0.8, 2, -0.3, 1.1, 0.4, -0.9, 1.6, 0.2]


def seeded(rate: float, seed: int) -> tuple[Input, ...]:
    """The rate of dropout and the seed of its random numbers."""
    return (
        given("rate", "Dropout p", rate, lowest=0, highest=0.9),
        whole("seed", "Seed", seed, 0, 9999),
    )


def _random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).round(1)


@worked(
    "§10",
    "The feed-forward layer works on each token alone",
    "Two linear maps with an activation between them: d to 4d and back, the same for every token.",
    given("x", "Token vectors (chosen here)", [[1, -0.5], [0.3, 0.8]], "token", "dim"),
    given("first", "W_1 (chosen here)", _random(1, 2, 8), "dim", "hidden"),
    given("second", "W_2 (chosen here)", _random(2, 8, 2), "hidden", "dim"),
)
def feed_forward_position_wise(sheet: Sheet, x: Array, first: Array, second: Array) -> None:
    hidden = sheet.step("Widened from d to 4d", r"x\, W_1", x @ first, "token", "hidden")
    sheet.numbers(r"@\,W_1 = @", x[0], hidden[0])
    active, formula = activations.gelu(hidden), r"\mathrm{GELU}(x\, W_1)"
    sheet.step("Activation", formula, active, "token", "hidden")
    sheet.numbers(r"\mathrm{GELU}(@) = @", hidden[0, 0], active[0, 0])
    output, formula = active @ second, r"\mathrm{GELU}(x\, W_1)\, W_2"
    sheet.step("Back from 4d to d", formula, output, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 0: } @", output[0])
    alone = np.stack([activations.feed_forward(row, first, second, activations.gelu) for row in x])
    title = "All tokens at once minus each token alone"
    sheet.difference(output, alone, title, "token", "dim")
    sheet.remark("Position-wise: no token sees another here; only attention mixes them.")


@worked(
    "§10",
    "Gradients through a deep stack, with and without shortcuts",
    "Each layer is tanh(Wx). Without shortcuts the gradient is multiplied by every W "
    "on its way back; with them it can also pass around the layers.",
    whole("depth", "Layers", 24, 2, 48),
    whole("width", "Width", 16, 1, 64),
    given("gain", "Size of the weights", 0.5, lowest=0.01, highest=2),
    whole("seed", "Seed", 0, 0, 9999),
)
def residual_gradient(sheet: Sheet, depth: int, width: int, gain: float, seed: int) -> None:
    matrices = learning.stack_weights(seed, depth, width, gain)
    start = np.random.default_rng([seed, 1]).standard_normal(width)
    plain = learning.gradient_by_layer(matrices, start, shortcut=False)
    short = learning.gradient_by_layer(matrices, start, shortcut=True)
    lengths, stacks = np.stack([plain, short]), ("x ← f(x)", "x ← x + f(x)")
    title = "Size of the gradient at each layer"
    formula = r"\left\lVert \frac{\partial L}{\partial x_l} \right\rVert"
    sheet.step(title, formula, lengths, stacks, "layer")
    sheet.numbers(r"\text{layer 0: } @ \quad \text{and} \quad @", plain[0], short[0])
    sheet.remark("A shortcut gives the gradient a path that no layer can shrink.")
    ratios = lengths[:, 0] / np.maximum(lengths[:, -1], np.finfo(np.float64).tiny)
    formula = (
        r"\left\lVert \frac{\partial L}{\partial x_0} \right\rVert \Big/ "
        r"\left\lVert \frac{\partial L}{\partial x_{\text{last}}} \right\rVert"
    )
    title, stacks = "First layer compared with the last", ("without shortcuts", "with shortcuts")
    sheet.step(title, formula, ratios, stacks)
    line = r"\frac{@}{@} \quad \text{and} \quad \frac{@}{@}"
    sheet.numbers(line, plain[0], plain[-1], short[0], short[-1])
    sheet.remark("Output and input are added, so both must have the same shape.")


@worked(
    "§10",
    "Dropout with p = 0.1",
    "In training each value is set to 0 with probability p and the rest is divided by 1 − p.",
    given("values", "Values (chosen here)", _VALUES, "value"),
    *seeded(0.1, 1),
)
def dropout_by_hand(sheet: Sheet, values: Array, rate: float, seed: int) -> None:
    draws = np.random.default_rng(seed).random(len(values))
    sheet.step("Random numbers drawn", r"u_i \sim \mathrm{uniform}(0, 1)", draws, "value")
    sheet.numbers(r"\text{seed } @", str(seed))
    keep, formula = activations.kept(draws, rate), r"k_i = 1\ \text{where } u_i \ge p"
    sheet.step("Kept", formula, keep, "value")
    sheet.numbers(r"p = @:\ @\ \text{of}\ @", rate, keep.sum(), len(keep))
    after, formula = activations.dropped(values, keep, rate), r"\frac{k_i\, x_i}{1 - p}"
    sheet.step("In training", formula, after, "value", quantity="output")
    sheet.numbers(r"\frac{@}{1 - @} = @", values[0], rate, values[0] / (1 - rate))
    sheet.remark("The kept values are divided by 1 − p, so that the average stays the same.")
    sums = np.array([values.sum(), after.sum()])
    modes = ("evaluation", "training")
    sheet.step("Sum before and after", r"\sum_i x_i", sums, modes)
    sheet.numbers("@", sums)
    sheet.remark("Equal on average over many draws, not in each one.")
    sheet.step("In evaluation", "x_i", values, "value", quantity="output")
    sheet.numbers("@", values)
    sheet.remark("Dropout is off: nothing changes.")


@worked(
    "§10",
    "Dropout on attention weights",
    "Dropped weights are gone and the others grow, so a row no longer sums to 1.",
    given("weights", "Weights", _WEIGHTS, _WORDS, _WORDS, lowest=0, highest=1),
    *seeded(0.1, 0),
)
def dropout_on_weights(sheet: Sheet, weights: Array, rate: float, seed: int) -> None:
    draws = np.random.default_rng(seed).random(weights.shape)
    formula = r"u_{ij} \sim \mathrm{uniform}(0, 1)"
    sheet.step("Random numbers drawn", formula, draws, _WORDS, _WORDS)
    sheet.numbers(r"\text{seed } @", str(seed))
    after = activations.dropped(weights, activations.kept(draws, rate), rate)
    title, formula = "Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step(title, formula, after, _WORDS, _WORDS, quantity="weight")
    sheet.numbers(r"\text{The: } @", after[0])
    sums, modes = np.stack([weights.sum(axis=1), after.sum(axis=1)]), ("evaluation", "training")
    sheet.step("Sum of each row", r"\sum_j a_{ij}", sums, modes, _WORDS)
    sheet.numbers(r"\text{The: } @ = @", latex.total(after[0]), sums[1, 0])
    sheet.remark("After dropout the rows of weights no longer sum to 1.")
