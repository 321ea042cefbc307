"""The activation functions of feed-forward layers as curves: their values and their slopes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from model.arithmetic import activations
from model.nn.config import GATED, Activation
from model.trace.arrays import Array

Wide = NDArray[np.float64]
Function = Callable[[Wide], Wide]
_TANH_FACTOR, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715
_SILU = r"\mathrm{SiLU}(x) = \frac{x}{1 + e^{-x}}"
_GELU = r"\mathrm{GELU}(x) = x \cdot \Phi(x)"
_GELU_TANH = (
    r"\tfrac12 x \left(1 + \tanh\!\left(\sqrt{\tfrac{2}{\pi}}\,(x + 0.044715\,x^3)\right)\right)"
)


@dataclass(frozen=True)
class Curve:
    """One activation: its title, its formula as LaTeX, its value and its slope at points x."""

    title: str
    latex: str
    value: Function
    slope: Function


def gelu_tanh_slope(points: Wide) -> Wide:
    """The derivative of ½x(1 + tanh(√(2/π)(x + 0.044715x³)))."""
    bend = np.tanh(_TANH_FACTOR * (points + _TANH_CUBE * points**3))
    inner = _TANH_FACTOR * (1 + 3 * _TANH_CUBE * points**2)
    return np.asarray(0.5 * (1 + bend) + 0.5 * points * (1 - bend**2) * inner)


def silu_slope(points: Wide) -> Wide:
    """s + x·s·(1 − s), with s the sigmoid of x."""
    sigmoid = 0.5 * (1 + np.tanh(0.5 * points))
    return np.asarray(sigmoid + points * sigmoid * (1 - sigmoid))


CURVES: Mapping[Activation, Curve] = MappingProxyType(
    {
        "gelu": Curve(
            "GELU",
            _GELU,
            activations.gelu,
            activations.gelu_slope,
        ),
        "gelu_tanh": Curve(
            "GELU by tanh",
            _GELU_TANH,
            activations.gelu_tanh,
            gelu_tanh_slope,
        ),
        "relu": Curve(
            "ReLU",
            r"\mathrm{ReLU}(x) = \max(0, x)",
            activations.relu,
            activations.relu_slope,
        ),
        "silu": Curve("SiLU", _SILU, activations.silu, silu_slope),
        "swiglu": Curve("SiLU, the gate of SwiGLU", _SILU, activations.silu, silu_slope),
        "geglu": Curve("GELU, the gate of GeGLU", _GELU, activations.gelu, activations.gelu_slope),
        "geglu_tanh": Curve(
            "GELU by tanh, the gate of GeGLU",
            _GELU_TANH,
            activations.gelu_tanh,
            gelu_tanh_slope,
        ),
    }
)


def activation_check(activation: Activation, before: Array, hidden: Array) -> float | None:
    """Largest |f(before) - hidden| over tokens and neurons, with f computed in float64.

    None for a gated layer, where `hidden` holds a second map's values too.
    """
    if activation in GATED:
        return None
    import torch  # for its error function; torch takes seconds to import: pages are drawn first

    x = torch.tensor(before, dtype=torch.float64)
    cubic = _TANH_FACTOR * (x + _TANH_CUBE * x**3)
    expected = {
        "relu": lambda: x.clamp(min=0),
        "gelu": lambda: x * torch.special.ndtr(x),
        "gelu_tanh": lambda: 0.5 * x * (1 + cubic.tanh()),
        "silu": lambda: x * x.sigmoid(),
    }[activation]()
    return float((expected - torch.tensor(hidden)).abs().max())


def flat_share(activation: Activation, before: Array, limit: float = 0.05) -> float:
    """The share of the values at which the activation's slope, by autograd, is within ±limit."""
    import torch

    from model.nn.layers import ACTIVATIONS

    with torch.enable_grad():
        x = torch.tensor(before, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(ACTIVATIONS[activation](x).sum(), x)
    return float((slope.abs() < limit).double().mean())
