"""The activation functions of feed-forward layers as curves: their values and their slopes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from model.arithmetic import activations
from model.nn.config import GATED, Activation
from model.trace.arrays import Array, Wide

Function = Callable[[Wide], Wide]


@dataclass(frozen=True)
class ActivationCurve:
    """One activation: its title, its formula as LaTeX, its value and its slope at points x."""

    title: str
    latex: str
    value: Function
    slope: Function


_RELU = ActivationCurve(
    "ReLU", r"\mathrm{ReLU}(x) = \max(0, x)", activations.relu, activations.relu_slope
)
_RELU2 = ActivationCurve(
    "Squared ReLU",
    r"\mathrm{ReLU}^2(x) = \max(0, x)^2",
    activations.relu2,
    activations.relu2_slope,
)
_GELU = ActivationCurve(
    "GELU", r"\mathrm{GELU}(x) = x \cdot \Phi(x)", activations.gelu, activations.gelu_slope
)
_GELU_TANH = ActivationCurve(
    "GELU by tanh",
    r"\tfrac12 x \left(1 + \tanh\!\left(\sqrt{\tfrac{2}{\pi}}\,(x + 0.044715\,x^3)\right)\right)",
    activations.gelu_tanh,
    activations.gelu_tanh_slope,
)
_SILU = ActivationCurve(
    "SiLU",
    r"\mathrm{SiLU}(x) = \frac{x}{1 + e^{-x}}",
    activations.silu,
    activations.silu_slope,
)
CURVES: Mapping[Activation, ActivationCurve] = MappingProxyType(
    {
        "gelu": _GELU,
        "gelu_tanh": _GELU_TANH,
        "relu": _RELU,
        "relu2": _RELU2,
        "silu": _SILU,
        "swiglu": replace(_SILU, title="SiLU, the gate of SwiGLU"),
        "geglu": replace(_GELU, title="GELU, the gate of GeGLU"),
        "geglu_tanh": replace(_GELU_TANH, title="GELU by tanh, the gate of GeGLU"),
    }
)


def bends(activation: Activation, before: Array) -> Wide:
    """How much an activation f bends each value x: the smaller of |f(x)| and |x − f(x)|. It is 0 where f
    lets nothing of x through, and where it lets x through as it is."""
    x = before.astype(np.float64)
    after = CURVES[activation].value(x)
    return np.minimum(np.abs(after), np.abs(x - after))


def activation_check(activation: Activation, before: Array, hidden: Array) -> float | None:
    """Largest |f(before) - hidden| over tokens and neurons, with f computed in float64.

    None for a gated layer, whose `hidden` also holds the values of a second map.
    """
    if activation in GATED:
        return None
    import torch  # for its error function; torch takes seconds to import: pages are drawn first

    x = torch.tensor(before, dtype=torch.float64)
    cubic = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
    expected = {
        "relu": lambda: x.clamp(min=0),
        "relu2": lambda: x.clamp(min=0) ** 2,
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
