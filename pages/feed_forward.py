"""Feed-forward and residual stream: activations, neurons, contributions, gradients, dropout."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import PanelView, draw_view
from viz.views.feed_forward.formulas import FEED_FORWARD, RESIDUAL, feed_forward
from viz.views.feed_forward.neurons import EXPERTS, activation_view, experts, neurons, on_the_curve
from viz.views.worked.by_hand import by_hand

page.open_page("pages/feed_forward.py")
look = page.look(full=True)

VIEWS: dict[str, PanelView] = {
    **({EXPERTS: experts} if look.trace.experts else {}),
    "Neurons": neurons,
    "On the curve": on_the_curve,
}

OPENING = (
    "After attention has mixed the tokens, the **feed-forward** layer works on each token alone: "
    "wider, through a curve, and back. Each sub-layer adds its output to the token's vector; this "
    "sum is the **residual stream**."
)


def idea() -> None:
    words, picture = st.columns([1, 1], gap="large")
    with words:
        st.markdown(
            """
After attention has mixed the tokens, the **feed-forward** layer works on each token alone. A first map
makes the vector wider, usually four times. The **activation** is a curve that is applied to every
number. A second map brings the vector back to its width.

**ReLU** cuts off what is below 0. **GELU** does so smoothly: it dips to −0.17 at x ≈ −0.75 and keeps
some slope below 0. GPT-2 was trained with an approximation of it that uses tanh. **SwiGLU** applies its
curve to one map and multiplies the result by a second map: a gate.

Each sub-layer **adds** its output to the token's vector, so both must have the same width. This sum is
the **residual stream**. The shortcut around the sub-layer gives gradients a short way back.
**Dropout** sets some values to 0 in training and divides the rest by 1 − p.
"""
        )
        config = look.model.config
        st.latex(feed_forward(config) if config.d_mlp else FEED_FORWARD)
        st.latex(RESIDUAL)
        if config.experts:
            st.caption(
                f"In this model {config.experts} such layers, the **experts**, stand side by side in a "
                "feed-forward: a router sends each token to a few of them."
            )
        elif not config.d_mlp:
            st.caption("This model has attention only: no feed-forward layers.")
    with picture:
        st.fragment(draw_view)(activation_view)


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "gelu",
        "gelu-minimum",
        "relu-and-gelu",
        "swiglu",
        "feed-forward-position-wise",
        "how-wide-inside",
        "residual-gradient",
        "dropout-by-hand",
        "dropout-on-weights",
    ),
    live=lambda: page.views(VIEWS, look),
)
