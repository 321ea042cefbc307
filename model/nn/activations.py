"""The activations of feed-forward layers. Each stands here alone: its numbers, formula, code and words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Activation = Literal["relu", "relu2", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh"]
Points = NDArray[np.float64]
Function = Callable[[Points], Points]
_TANH_FACTOR = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715


def normal_share(points: Points) -> Points:
    """Φ(x): the share of a standard normal distribution below x."""
    shares = [0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in np.ravel(points)]
    return np.array(shares, dtype=np.float64).reshape(np.shape(points))


def relu(points: Points) -> Points:
    """x above 0, and 0 below."""
    return np.maximum(points, 0.0)


def relu_slope(points: Points) -> Points:
    """1 above 0 and 0 below; at 0 itself 0, as PyTorch takes it."""
    return np.asarray(points > 0, dtype=np.float64)


def relu2(points: Points) -> Points:
    """x² above 0, and 0 below. Source: So et al. 2021, "Primer"."""
    return relu(points) ** 2


def relu2_slope(points: Points) -> Points:
    """2x above 0 and 0 below."""
    return 2.0 * relu(points)


def gelu(points: Points) -> Points:
    """x · Φ(x). Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units"."""
    return points * normal_share(points)


def gelu_slope(points: Points) -> Points:
    """Φ(x) + x · φ(x), with φ the standard normal density."""
    density = np.exp(-0.5 * points**2) / math.sqrt(2.0 * math.pi)
    return normal_share(points) + points * density


def gelu_tanh(points: Points) -> Points:
    """½x(1 + tanh(√(2/π)(x + 0.044715x³))): the approximation GPT-2 was trained with."""
    return 0.5 * points * (1.0 + np.tanh(_TANH_FACTOR * (points + _TANH_CUBE * points**3)))


def gelu_tanh_slope(points: Points) -> Points:
    """The derivative of `gelu_tanh`."""
    bend = np.tanh(_TANH_FACTOR * (points + _TANH_CUBE * points**3))
    inner = _TANH_FACTOR * (1.0 + 3.0 * _TANH_CUBE * points**2)
    return np.asarray(0.5 * (1.0 + bend) + 0.5 * points * (1.0 - bend**2) * inner)


def sigmoid(points: Points) -> Points:
    """1 / (1 + e^−x), which does not overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * points)))


def silu(points: Points) -> Points:
    """x · sigmoid(x), the gate of SwiGLU."""
    return points * sigmoid(points)


def silu_slope(points: Points) -> Points:
    """s + x·s·(1 − s), with s the sigmoid of x."""
    share = sigmoid(points)
    return share + points * share * (1.0 - share)


@dataclass(frozen=True)
class ActivationLaw:
    """What one activation does, of numbers and in words."""

    title: str
    symbol: str  # LaTeX: its name
    latex: str  # its formula, of x
    words: str  # in a list of operations, of h, and of the gate where it has one
    code: str  # of "{}", with functions of torch.nn.functional
    compute: Callable[[Any, Any], Any]  # the same, of torch.nn.functional and a tensor
    value: Function  # in float64
    slope: Function
    is_gate: bool = False  # whether its result multiplies a second linear map (Shazeer 2020)

    @property
    def called(self) -> str:
        """The function of torch.nn.functional that the code calls."""
        return self.code.partition("(")[0]


_GELU = ActivationLaw(
    "GELU",
    r"\mathrm{GELU}",
    r"\mathrm{GELU}(x) = x \cdot \Phi(x)",
    "GELU(h)",
    "gelu({})",
    lambda F, x: F.gelu(x),
    gelu,
    gelu_slope,
)
_GELU_TANH = ActivationLaw(
    "GELU by tanh",
    r"\mathrm{GELU}_{\tanh}",
    r"\tfrac12 x \left(1 + \tanh\!\left(\sqrt{\tfrac{2}{\pi}}\,(x + 0.044715\,x^3)\right)\right)",
    "GELU(h), by tanh",
    'gelu({}, approximate="tanh")',
    lambda F, x: F.gelu(x, approximate="tanh"),
    gelu_tanh,
    gelu_tanh_slope,
)
_RELU = ActivationLaw(
    "ReLU",
    r"\mathrm{ReLU}",
    r"\mathrm{ReLU}(x) = \max(0, x)",
    "max(0, h)",
    "relu({})",
    lambda F, x: F.relu(x),
    relu,
    relu_slope,
)
_RELU2 = ActivationLaw(
    "Squared ReLU",
    r"\mathrm{ReLU}^2",
    r"\mathrm{ReLU}^2(x) = \max(0, x)^2",
    "max(0, h)²",
    "relu({}) ** 2",
    lambda F, x: F.relu(x) ** 2,
    relu2,
    relu2_slope,
)
_SILU = ActivationLaw(
    "SiLU",
    r"\mathrm{SiLU}",
    r"\mathrm{SiLU}(x) = \frac{x}{1 + e^{-x}}",
    "SiLU(h)",
    "silu({})",
    lambda F, x: F.silu(x),
    silu,
    silu_slope,
)


def _gate(of: ActivationLaw, words: str, layer: str) -> ActivationLaw:
    return replace(of, title=f"{of.title}, the gate of {layer}", words=words, is_gate=True)


ACTIVATION_LAWS: Mapping[Activation, ActivationLaw] = MappingProxyType(
    {
        "gelu": _GELU,
        "gelu_tanh": _GELU_TANH,
        "relu": _RELU,
        "relu2": _RELU2,
        "silu": _SILU,
        "swiglu": _gate(_SILU, "SiLU(gate) · h", "SwiGLU"),
        "geglu": _gate(_GELU, "GELU(gate) · h", "GeGLU"),
        "geglu_tanh": _gate(_GELU_TANH, "GELU(gate), by tanh, · h", "GeGLU"),
    }
)
GATED = frozenset(name for name, law in ACTIVATION_LAWS.items() if law.is_gate)
