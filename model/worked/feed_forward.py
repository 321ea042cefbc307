"""The feed-forward layer, residual connections, and dropout."""

from __future__ import annotations

import numpy as np

from model.arithmetic import activations, learning
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Input, Step, Values, given, numbered, whole, worked

_TOKENS = numbered("token", 2)
_DIMENSIONS = numbered("dim", 2)
_HIDDEN = numbered("hidden", 8)


def seeded(rate: float, seed: int) -> tuple[Input, ...]:
    """The rate of dropout and the seed of its random numbers."""
    return (
        given("rate", "Dropout p", rate, lowest=0, highest=0.9),
        whole("seed", "Seed", seed, 0, 9999),
    )


def _matrix(name: str, label: str, seed: int, shape: tuple[int, int]) -> Input:
    values = np.random.default_rng(seed).uniform(-1, 1, shape).round(1)
    rows, columns = (_DIMENSIONS, _HIDDEN) if shape[0] == 2 else (_HIDDEN, _DIMENSIONS)
    return given(name, label, values, rows, columns)


@worked(
    "feed-forward-position-wise",
    "§10",
    "The feed-forward layer works on each token alone",
    "Two linear maps with an activation between them: d to 4d and back, the same for every token.",
    given("x", "Token vectors (chosen here)", [[1, -0.5], [0.3, 0.8]], _TOKENS, _DIMENSIONS),
    _matrix("first", "W_1 (chosen here)", 1, (2, 8)),
    _matrix("second", "W_2 (chosen here)", 2, (8, 2)),
)
def _position_wise(values: Values) -> tuple[Step, ...]:
    x, first, second = values["x"], values["first"], values["second"]
    hidden = x @ first
    active = activations.gelu(hidden)
    output = active @ second
    alone = np.stack([activations.feed_forward(row, first, second, activations.gelu) for row in x])
    return (
        Step(
            "Widened from d to 4d",
            r"x\, W_1",
            hidden,
            rf"{latex.row(x[0])}\,W_1 = {latex.row(hidden[0])}",
            _TOKENS,
            _HIDDEN,
        ),
        Step(
            "Activation",
            r"\mathrm{GELU}(x\, W_1)",
            active,
            rf"\mathrm{{GELU}}({latex.number(hidden[0, 0])}) = {latex.number(active[0, 0])}",
            _TOKENS,
            _HIDDEN,
        ),
        Step(
            "Back from 4d to d",
            r"\mathrm{GELU}(x\, W_1)\, W_2",
            output,
            rf"\text{{token 0: }} {latex.row(output[0])}",
            _TOKENS,
            _DIMENSIONS,
            "output",
        ),
        steps.difference(
            output,
            alone,
            "All tokens at once minus each token alone",
            _TOKENS,
            _DIMENSIONS,
            comment="Position-wise: no token sees another here; only attention mixes them.",
        ),
    )


@worked(
    "residual-gradient",
    "§10",
    "Gradients through a deep stack, with and without shortcuts",
    "Each layer is tanh(Wx). Without shortcuts the gradient is multiplied by every W "
    "on its way back; with them it also has a way round.",
    whole("depth", "Layers", 24, 2, 48),
    whole("width", "Width", 16, 1, 64),
    given("gain", "Size of the weights", 0.5, lowest=0.01, highest=2),
    whole("seed", "Seed", 0, 0, 9999),
)
def _residual(values: Values) -> tuple[Step, ...]:
    seed, depth, width = (int(values[name]) for name in ("seed", "depth", "width"))
    matrices = learning.stack_weights(seed, depth, width, float(values["gain"]))
    start = np.random.default_rng([seed, 1]).standard_normal(width)
    plain = learning.gradient_by_layer(matrices, start, shortcut=False)
    short = learning.gradient_by_layer(matrices, start, shortcut=True)
    layers = numbered("layer", depth)
    sizes = np.stack([plain, short])
    return (
        Step(
            "Size of the gradient at each layer",
            r"\left\lVert \frac{\partial L}{\partial x_l} \right\rVert",
            sizes,
            rf"\text{{layer 0: }} {latex.number(plain[0])} \quad \text{{and}} \quad "
            rf"{latex.number(short[0])}",
            ("x ← f(x)", "x ← x + f(x)"),
            layers,
            comment="A shortcut gives the gradient a path that no layer can shrink.",
        ),
        Step(
            "First layer compared with the last",
            r"\left\lVert \frac{\partial L}{\partial x_0} \right\rVert \Big/ "
            r"\left\lVert \frac{\partial L}{\partial x_{\text{last}}} \right\rVert",
            sizes[:, 0] / np.maximum(sizes[:, -1], np.finfo(np.float64).tiny),
            rf"\frac{{{latex.number(plain[0])}}}{{{latex.number(plain[-1])}}} \quad \text{{and}} "
            rf"\quad \frac{{{latex.number(short[0])}}}{{{latex.number(short[-1])}}}",
            columns=("without shortcuts", "with shortcuts"),
            comment="Output and input are added, so both must have the same size.",
        ),
    )


@worked(
    "dropout-by-hand",
    "§10",
    "Dropout with p = 0.1",
    "In training each value is set to 0 with probability p and the rest is divided by 1 − p.",
    given(
        "values",
        "Values (chosen here)",
        [0.5, -1.2, 0.8, 2, -0.3, 1.1, 0.4, -0.9, 1.6, 0.2],
        "value",
    ),
    *seeded(0.1, 1),
)
def _dropout(values: Values) -> tuple[Step, ...]:
    numbers, rate = values["values"], float(values["rate"])
    draws = np.random.default_rng(int(values["seed"])).random(len(numbers))
    keep = activations.kept(draws, rate)
    after = activations.dropped(numbers, keep, rate)
    columns = numbered("value", len(numbers))
    sums = np.array([numbers.sum(), after.sum()])
    return (
        Step("Random numbers drawn", r"u_i \sim \mathrm{uniform}(0, 1)", draws,
             rf"\text{{seed }} {int(values['seed'])}", columns=columns),
        Step("Kept", r"k_i = 1\ \text{where } u_i \ge p", keep,
             rf"p = {latex.number(rate)}:\ {latex.number(keep.sum())}\ \text{{of}}\ {len(keep)}",
             columns=columns),
        Step("In training", r"\frac{k_i\, x_i}{1 - p}", after,
             rf"\frac{{{latex.number(numbers[0])}}}{{1 - {latex.number(rate)}}} = "
             rf"{latex.number(numbers[0] / (1 - rate))}", columns=columns, quantity="output",
             comment="The kept values are divided by 1 − p, so that the average stays the same."),
        Step("Sum before and after", r"\sum_i x_i", sums, latex.row(sums),
             columns=("evaluation", "training"),
             comment="Equal on average over many draws, not in each one."),
        Step("In evaluation", r"x_i", numbers, latex.row(numbers), columns=columns,
             quantity="output", comment="Dropout is off: nothing changes."),
    )  # fmt: skip


@worked(
    "dropout-on-weights",
    "§10",
    "Dropout on attention weights",
    "Dropped weights are gone and the others grow, so a row no longer sums to 1.",
    given(
        "weights",
        "Weights",
        [[0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.2, 0.2, 0.6]],
        ("The", "Cat", "Sat"),
        ("The", "Cat", "Sat"),
        lowest=0,
        highest=1,
    ),
    *seeded(0.1, 0),
)
def _dropout_on_weights(values: Values) -> tuple[Step, ...]:
    weights, rate = values["weights"], float(values["rate"])
    tokens = ("The", "Cat", "Sat")
    draws = np.random.default_rng(int(values["seed"])).random(weights.shape)
    after = activations.dropped(weights, activations.kept(draws, rate), rate)
    sums = np.stack([weights.sum(axis=1), after.sum(axis=1)])
    return (
        Step("Random numbers drawn", r"u_{ij} \sim \mathrm{uniform}(0, 1)", draws,
             rf"\text{{seed }} {int(values['seed'])}", tokens, tokens),
        Step("Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}", after,
             rf"\text{{The: }} {latex.row(after[0])}", tokens, tokens, "weight"),
        Step("Sum of each row", r"\sum_j a_{ij}", sums,
             rf"\text{{The: }} {latex.total(after[0])} = {latex.number(sums[1, 0])}",
             ("evaluation", "training"), tokens,
             comment="After dropout the rows of weights no longer sum to 1."),
    )  # fmt: skip
