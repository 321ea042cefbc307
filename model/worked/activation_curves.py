"""GELU, ReLU and SwiGLU: values, slopes and the minimum of GELU."""

import numpy as np

from model.arithmetic import activations
from model.worked.example import Array, Sheet, given, worked

_POINTS = given(
    "points", "Points x", [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3], "point", lowest=-20, highest=20
)
_SLOPE = r"\Phi(x) + x\,\varphi(x)"
_GATE = [[0.6, -0.4, 1], [0.2, 0.8, -0.5]]
_UP = [[0.5, 1, -0.3], [-0.7, 0.4, 0.9]]


def _labels(points: Array) -> tuple[str, ...]:
    return tuple(f"x = {point:g}" for point in points)


@worked(
    "§10",
    "GELU, exact and by tanh",
    "GELU multiplies x by the share of a standard normal distribution that lies below x.",
    _POINTS,
)
def gelu(sheet: Sheet, points: Array) -> None:
    first, columns = points[0], _labels(points)
    share = activations.normal_share(points)
    title = "Share of a normal distribution below x"
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
    sheet.remark("GPT-2 was trained with this approximation.")
    off = tanh - exact
    sheet.step("Tanh form minus exact", r"\text{tanh form} - x\,\Phi(x)", off, columns)
    sheet.largest_difference(off)
    slope = sheet.step("Slope", _SLOPE, activations.gelu_slope(points), columns)
    sheet.numbers(r"\mathrm{GELU'}(@) = @", first, slope[0])
    sheet.remark("Below 0 the slope is not 0, except at the minimum.")


@worked(
    "§10",
    "The minimum of GELU",
    "GELU dips below 0 and comes back. At its lowest point the slope is 0.",
    given("low", "Left end of the search", -1, lowest=-1.4, highest=-0.76),
    given("high", "Right end of the search", -0.5, lowest=-0.75, highest=0),
)
def gelu_minimum(sheet: Sheet, low: float, high: float) -> None:
    if low >= high:
        raise ValueError(f"The interval must rise: {high:g} is not above {low:g}.")
    lowest = activations.zero_of(activations.gelu_slope, low, high)
    around = np.array([low, lowest, high])
    slopes = activations.gelu_slope(around)
    title = "Slope at the ends and at the minimum"
    sheet.step(title, _SLOPE, slopes, _labels(around))
    sheet.numbers(r"\mathrm{GELU'}(@) = @", low, slopes[0])
    sheet.remark("Negative on the left and positive on the right: a minimum lies between.")
    sheet.step("Where the slope is 0", rf"{_SLOPE} = 0", lowest)
    sheet.numbers(r"\mathrm{GELU'}(@) = @", lowest, round(slopes[1], 12))
    value = activations.gelu(np.array(lowest))
    sheet.step("GELU there", r"x\,\Phi(x)", value, quantity="output")
    sheet.numbers(r"\mathrm{GELU}(@) = @", lowest, value)


@worked(
    "§10",
    "ReLU beside GELU",
    "ReLU cuts off everything below 0. GELU does nearly the same, but smoothly.",
    _POINTS,
)
def relu_and_gelu(sheet: Sheet, points: Array) -> None:
    names, columns = ("ReLU", "GELU"), _labels(points)
    heights = np.stack([activations.relu(points), activations.gelu(points)])
    formula = r"\mathrm{ReLU}(x) = \max(0, x)"
    sheet.step("ReLU beside GELU", formula, heights, names, columns, quantity="output")
    sheet.numbers(r"\max(0, @) = @", points[0], heights[0, 0])
    sheet.remark("ReLU is 0 for everything below 0.")
    slopes = np.stack([activations.relu_slope(points), activations.gelu_slope(points)])
    formula = r"\mathrm{ReLU}'(x) = 1\ \text{where } x > 0,\ \text{else } 0"
    sheet.step("Their slopes", formula, slopes, names, columns)
    sheet.numbers(r"\mathrm{ReLU'}(@) = @", points[0], slopes[0, 0])
    sheet.remark("Below 0 ReLU passes no gradient back; GELU does.")


@worked(
    "§10",
    "SwiGLU: a gated activation",
    "Two linear maps of the same input: one opens the gate, the other goes through it.",
    given("x", "x (chosen here)", [1, -0.5], "dim"),
    given("gate", "W_gate (chosen here)", _GATE, "dim", "hidden"),
    given("up", "W_up (chosen here)", _UP, "dim", "hidden"),
)
def swiglu(sheet: Sheet, x: Array, gate: Array, up: Array) -> None:
    opening, formula = x @ gate, r"x\, W_{\text{gate}}"
    sheet.step("Gate before its activation", formula, opening, "hidden")
    sheet.numbers(r"@\,W_{\text{gate}} = @", x, opening)
    opened, formula = activations.silu(opening), r"\mathrm{silu}(g) = \frac{g}{1 + e^{-g}}"
    sheet.step("Gate", formula, opened, "hidden")
    sheet.numbers(r"\frac{@}{1 + e^{@}} = @", opening[0], -opening[0], opened[0])
    content = sheet.step("Content", r"x\, W_{\text{up}}", x @ up, "hidden")
    sheet.numbers(r"@\,W_{\text{up}} = @", x, content)
    result = activations.swiglu(x, gate, up)
    formula = r"\mathrm{silu}(x W_{\text{gate}}) \odot (x W_{\text{up}})"
    sheet.step("SwiGLU", formula, result, "hidden", quantity="output")
    sheet.numbers(r"@ \cdot @ = @", opened[0], content[0], result[0])
    sheet.remark("The gate decides how much of each hidden value passes.")
