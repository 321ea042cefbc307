"""The activation functions side by side, as values or as slopes."""

from collections.abc import Callable

import streamlit as st

from model.analysis.stream.activation_curves import CURVES, Curve, Function
from viz.elements.one_of import one_of
from viz.figures.activation import Line, activation_curves
from viz.shell.pictures import chart

_READ: dict[str, Callable[[Curve], Function]] = {
    "Value": lambda curve: curve.value,
    "Slope": lambda curve: curve.slope,
}


@st.fragment
def activation_view() -> None:
    """GELU exact and by tanh, ReLU, and SwiGLU for a chosen value of its second map."""
    shown = one_of("Curves", list(_READ), "feed-forward-curves")
    content = st.slider("Second map's value in SwiGLU", -2.0, 2.0, 1.0, 0.5, key="swiglu-content")
    read = _READ[shown]
    lines = [Line(CURVES[name].title, read(CURVES[name])) for name in ("gelu", "gelu_tanh", "relu")]
    gate = read(CURVES["swiglu"])
    lines.append(Line(f"SwiGLU: SiLU(x) · {content:g}", lambda x: gate(x) * content))
    chart(activation_curves(lines, what=shown.lower()), "feed-forward-activations")
