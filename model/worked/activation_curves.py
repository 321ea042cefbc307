"""GELU, ReLU and SwiGLU: values, slopes and the minimum of GELU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from model.arithmetic import activations
from model.worked import latex
from model.worked.example import Array, Input, Step, Values, given, numbered, worked
from model.worked.printed import Printed
from model.worked.source import MATRICES


def _labels(points: Array) -> tuple[str, ...]:
    return tuple(f"x = {point:g}" for point in points)


def _at(points: Array, result: Array, name: str, kind: str = "") -> str:
    return rf"\mathrm{{{name}}}{kind}({latex.number(points[0])}) = {latex.number(result[0])}"


def _points_input() -> Input:
    points = np.array([-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3])
    return given("points", "Points x", points, "point", lowest=-20, highest=20)


@worked(
    "gelu",
    "§10",
    "GELU, exact and by tanh",
    "GELU lets through the share of x that a normal distribution has below x.",
    _points_input(),
)
def _gelu(values: Values) -> tuple[Step, ...]:
    points = values["points"]
    columns = _labels(points)
    share, exact = activations.normal_share(points), activations.gelu(points)
    tanh, slope = activations.gelu_tanh(points), activations.gelu_slope(points)
    return (
        Step("Share of a normal distribution below x",
             r"\Phi(x) = \tfrac12\left(1 + \mathrm{erf}\tfrac{x}{\sqrt 2}\right)", share,
             rf"\Phi({latex.number(points[0])}) = {latex.number(share[0])}", columns=columns),
        Step("GELU", r"\mathrm{GELU}(x) = x \cdot \Phi(x)", exact,
             rf"{latex.number(points[0])} \cdot {latex.number(share[0])} = "
             rf"{latex.number(exact[0])}", columns=columns, quantity="output"),
        Step("GELU by tanh",
             r"\tfrac12 x \left(1 + \tanh\!\left(\sqrt{\tfrac{2}{\pi}}\,"
             r"(x + 0.044715\, x^3)\right)\right)", tanh,
             _at(points, tanh, "GELU", r"_{\tanh}"),
             columns=columns, quantity="output",
             comment="The approximation GPT-2 was trained with."),
        Step("Tanh form minus exact", r"\text{tanh form} - x\,\Phi(x)", tanh - exact,
             rf"\max |\text{{difference}}| = {latex.number(np.abs(tanh - exact).max())}",
             columns=columns),
        Step("Slope", r"\Phi(x) + x\,\varphi(x)", slope, _at(points, slope, "GELU'"),
             columns=columns, comment="Below 0 the slope is not 0, except at the minimum."),
    )  # fmt: skip


@worked(
    "gelu-minimum",
    "§10",
    "The minimum of GELU",
    "GELU dips below 0 and comes back. At its lowest point the slope is 0.",
    given("low", "Left end of the search", -1, lowest=-1.4, highest=-0.76),
    given("high", "Right end of the search", -0.5, lowest=-0.75, highest=0),
)
def _minimum(values: Values) -> tuple[Step, ...]:
    low, high = float(values["low"]), float(values["high"])
    if low >= high:
        raise ValueError(f"The interval must rise: {high:g} is not above {low:g}.")
    lowest = activations.zero_of(activations.gelu_slope, low, high)
    at = np.array([lowest])
    value = float(activations.gelu(at)[0])
    around = np.array([low, lowest, high])
    slopes = activations.gelu_slope(around)
    return (
        Step("Slope at the ends and at the minimum", r"\Phi(x) + x\,\varphi(x)",
             slopes, _at(around, slopes, "GELU'"), columns=_labels(around),
             comment="Negative on the left and positive on the right: a minimum lies between."),
        Step("Where the slope is 0", r"\Phi(x) + x\,\varphi(x) = 0", np.array(lowest),
             _at(at, np.round(slopes[1:], 12), "GELU'"),
             notes=Printed(
                 "-0.75",
                 MATRICES.at("Implementing a feed forward network with GELU activations"),
                 "approximately -0.75")),
        Step("GELU there", r"x\,\Phi(x)", np.array(value),
             rf"\mathrm{{GELU}}({latex.number(lowest)}) = {latex.number(value)}",
             quantity="output"),
    )  # fmt: skip


@worked(
    "relu-and-gelu",
    "§10",
    "ReLU beside GELU",
    "ReLU cuts off everything below 0. GELU does nearly the same, but smoothly.",
    _points_input(),
)
def _relu(values: Values) -> tuple[Step, ...]:
    points = values["points"]
    columns = _labels(points)
    curves: tuple[tuple[str, Callable[[Array], Array]], ...] = (
        ("ReLU", activations.relu),
        ("GELU", activations.gelu),
    )
    heights = np.stack([curve(points) for _, curve in curves])
    slopes = np.stack([activations.relu_slope(points), activations.gelu_slope(points)])
    names = tuple(name for name, _ in curves)
    return (
        Step("ReLU beside GELU", r"\mathrm{ReLU}(x) = \max(0, x)", heights,
             rf"\max(0, {latex.number(points[0])}) = {latex.number(heights[0, 0])}", names,
             columns, "output", comment="ReLU is 0 for everything below 0."),
        Step("Their slopes", r"\mathrm{ReLU}'(x) = 1\ \text{where } x > 0,\ \text{else } 0",
             slopes, _at(points, slopes[0], "ReLU'"), names, columns,
             comment="Below 0 ReLU passes no gradient back; GELU does."),
    )  # fmt: skip


@worked(
    "swiglu",
    "§10",
    "SwiGLU: a gated activation",
    "Two linear maps of the same input: one opens the gate, the other goes through it.",
    given("x", "x (chosen here)", [1, -0.5], "dim"),
    given("gate", "W_gate (chosen here)", [[0.6, -0.4, 1], [0.2, 0.8, -0.5]], "dim", "hidden"),
    given("up", "W_up (chosen here)", [[0.5, 1, -0.3], [-0.7, 0.4, 0.9]], "dim", "hidden"),
)
def _swiglu(values: Values) -> tuple[Step, ...]:
    x, gate, up = values["x"], values["gate"], values["up"]
    opening, content = x @ gate, x @ up
    opened = activations.silu(opening)
    result = activations.swiglu(x, gate, up)
    columns = numbered("hidden", gate.shape[1])
    return (
        Step("Gate before its activation", r"x\, W_{\text{gate}}", opening,
             rf"{latex.row(x)}\,W_{{\text{{gate}}}} = {latex.row(opening)}", columns=columns),
        Step("Gate", r"\mathrm{silu}(g) = \frac{g}{1 + e^{-g}}", opened,
             rf"\frac{{{latex.number(opening[0])}}}{{1 + e^{{{latex.number(-opening[0])}}}}} = "
             rf"{latex.number(opened[0])}", columns=columns),
        Step("Content", r"x\, W_{\text{up}}", content,
             rf"{latex.row(x)}\,W_{{\text{{up}}}} = {latex.row(content)}", columns=columns),
        Step("SwiGLU", r"\mathrm{silu}(x W_{\text{gate}}) \odot (x W_{\text{up}})", result,
             rf"{latex.number(opened[0])} \cdot {latex.factor(content[0])} = "
             rf"{latex.number(result[0])}", columns=columns, quantity="output",
             comment="The gate decides how much of each hidden value passes."),
    )  # fmt: skip
