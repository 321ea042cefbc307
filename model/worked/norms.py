"""Layer norm by hand, biased and unbiased variance, and where the norm stands."""

from __future__ import annotations

import math

import numpy as np

from model.arithmetic import normalization
from model.worked import latex
from model.worked.example import Array, Input, Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION, MATRICES

_DIMENSIONS = numbered("dim", 4)
_LAYER_NORM = INTRODUCTION.at("Layer normalization")


def epsilon_input() -> Input:
    """The small number inside the root."""
    return given("epsilon", "ε", 1e-5, lowest=1e-12, highest=1)


def _x_input() -> Input:
    return given("x", "x", [2, 4, 6, 8], _DIMENSIONS)


@worked(
    "layer-norm-by-hand",
    "§9",
    "Layer norm of four numbers",
    "Each token's vector is moved to mean 0 and variance 1, then scaled by γ and shifted by β.",
    _x_input(),
    given("gamma", "γ", np.ones(4), _DIMENSIONS),
    given("beta", "β", np.zeros(4), _DIMENSIONS),
    epsilon_input(),
)
def _layer_norm(values: Values) -> tuple[Step, ...]:
    x, epsilon = values["x"], float(values["epsilon"])
    mean = float(normalization.mean(x)[0])
    variance = float(normalization.variance(x)[0])
    root = math.sqrt(variance + epsilon)
    return (
        Step(
            "Mean",
            r"\mu = \frac{1}{d}\sum_i x_i",
            np.array(mean),
            rf"\frac{{{latex.total(x)}}}{{{len(x)}}} = {latex.number(mean)}",
            notes=Printed("5", _LAYER_NORM, "20/4=5"),
        ),
        Step(
            "Deviations",
            r"x_i - \mu",
            x - mean,
            rf"{latex.row(x)} - {latex.number(mean)} = {latex.row(x - mean)}",
            columns=_DIMENSIONS,
        ),
        Step(
            "Variance",
            r"\sigma^2 = \frac{1}{d}\sum_i (x_i - \mu)^2",
            np.array(variance),
            rf"\frac{{{latex.total((x - mean) ** 2)}}}{{{len(x)}}} = {latex.number(variance)}",
            notes=Printed("5", _LAYER_NORM, "(8-5)^2]=5"),
            comment="The biased variance, divided by d: what PyTorch and GPT-2 use.",
        ),
        Step(
            "Its root",
            r"\sqrt{\sigma^2 + \epsilon}",
            np.array(root),
            rf"\sqrt{{{latex.number(variance)} + {latex.number(epsilon)}}} = {latex.number(root)}",
            notes=Printed("2.236", _LAYER_NORM, "sqrt(5.00001)=2.236"),
            comment="ε stands inside the root and keeps it from being 0.",
        ),
        *_normalized(values, mean, root),
    )


def _normalized(values: Values, mean: float, root: float) -> tuple[Step, ...]:
    x, gamma, beta = values["x"], values["gamma"], values["beta"]
    epsilon = float(values["epsilon"])
    unit = normalization.normalized(x, epsilon=epsilon)
    output = normalization.layer_norm(x, gamma, beta, epsilon)
    normalized = Step(
        "Normalized",
        r"\hat x_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}",
        unit,
        rf"\frac{{{latex.number(x[0] - mean)}}}{{{latex.number(root)}}} = {latex.number(unit[0])}",
        columns=_DIMENSIONS,
        notes=Printed(
            "-1.36 -0.45 0.45 1.34",
            _LAYER_NORM,
            "2-5/2.236 = -1.36",
            "-3 / 2.236 is -1.34, as the vector below it has it.",
        ),
    )
    scaled = Step(
        "Scaled and shifted",
        r"y_i = \gamma_i\, \hat x_i + \beta_i",
        output,
        rf"{latex.number(gamma[0])} \cdot {latex.factor(unit[0])} + {latex.factor(beta[0])} = "
        rf"{latex.number(output[0])}",
        columns=_DIMENSIONS,
        quantity="output",
        notes=Printed(
            "-1.34 -0.45 0.45 1.34",
            _LAYER_NORM,
            "Y=[-1.34 -0.45 0.45 1.34]",
        ),
        comment="γ and β are learned, one of each for every dimension. "
        "With γ = 1 and β = 0 the result is x̂, not x.",
    )
    return (normalized, scaled, *_by_the_variance(x, unit, root * root))


def _by_the_variance(x: Array, unit: Array, variance: float) -> tuple[Step, ...]:
    centred = x - x.mean()
    by_variance = centred / variance
    wrong = Step(
        "Divided by the variance instead",
        r"\frac{x_i - \mu}{\sigma^2 + \epsilon}",
        by_variance,
        rf"\frac{{{latex.number(centred[0])}}}{{{latex.number(variance)}}} = "
        rf"{latex.number(by_variance[0])}",
        columns=_DIMENSIONS,
        comment="It is the standard deviation that layer norm divides by. "
        f"({MATRICES.at('Normalizing activations with layer normalization')} names the variance.)",
    )
    spreads = np.array([unit.var(), by_variance.var()])
    return (
        wrong,
        Step(
            "Variance of both",
            r"\mathrm{Var}(\hat x)",
            spreads,
            latex.row(spreads),
            columns=("by the root", "by the variance"),
            comment="Only the division by the root brings the variance to 1.",
        ),
    )


@worked(
    "biased-and-unbiased",
    "§9",
    "Biased and unbiased variance",
    "Dividing by d − 1 instead of d makes the variance larger and x̂ smaller.",
    _x_input(),
    epsilon_input(),
    whole("widths", "Widths d", [4, 512], 2, 16_384, ("first", "second")),
)
def _biased(values: Values) -> tuple[Step, ...]:
    x, epsilon, widths = values["x"], float(values["epsilon"]), values["widths"]
    squares = (x - x.mean()) ** 2
    variances = np.array(
        [float(normalization.variance(x, unbiased=unbiased)[0]) for unbiased in (False, True)]
    )
    units = np.stack(
        [
            normalization.normalized(x, epsilon=epsilon, unbiased=unbiased)
            for unbiased in (False, True)
        ]
    )
    off = 100.0 * normalization.shrinkage(widths)
    kinds = ("divided by d", "divided by d − 1")
    return (
        Step(
            "Variance",
            r"\frac{1}{d}\sum (x_i - \mu)^2 \quad \text{and} \quad \frac{1}{d-1}\sum (x_i - \mu)^2",
            variances,
            rf"\frac{{{latex.number(squares.sum())}}}{{{len(x)}}} = {latex.number(variances[0])},"
            rf"\quad \frac{{{latex.number(squares.sum())}}}{{{len(x) - 1}}} = "
            rf"{latex.number(variances[1])}",
            columns=kinds,
        ),
        Step(
            "Normalized",
            r"\hat x_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}",
            units,
            rf"\hat x_0 = {latex.number(units[0, 0])},\quad {latex.number(units[1, 0])}",
            kinds,
            _DIMENSIONS,
        ),
        Step(
            "How much smaller the unbiased one comes out, in percent",
            r"100 \left(1 - \sqrt{\frac{d - 1}{d}}\right)",
            off,
            rf"100 \left(1 - \sqrt{{\tfrac{{{int(widths[0]) - 1}}}{{{int(widths[0])}}}}}\right) = "
            rf"{latex.number(off[0])}",
            columns=tuple(f"d = {int(width)}" for width in widths),
            comment="At the width of a real model the two hardly differ.",
        ),
    )
