"""The gradient through a deep stack of random blocks, with shortcuts and without."""

from typing import TYPE_CHECKING

import streamlit as st

from viz.elements.one_of import one_of
from viz.figures.curves import gradient_by_depth
from viz.notation.numbers import power_of_ten
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Table
from viz.shell.pictures import without_sentence

if TYPE_CHECKING:
    from model.analysis.stream.deep_stack import Norms

say = sentences_of("experiments.gradient")

CHAIN = (
    r"\begin{aligned}"
    r"\text{without: } \frac{\partial L}{\partial x_l} &= \frac{\partial L}{\partial x_{l+1}}\, f' \\"
    r"\text{with: } \frac{\partial L}{\partial x_l} &= \frac{\partial L}{\partial x_{l+1}}\,(1 + f')"
    r"\end{aligned}"
)
_SEED = "gradient-seed"  # session state
NORMS: dict["Norms", str] = {"none": "none", "pre": "pre-norm", "post": "post-norm"}
_NORMS_DO: dict["Norms", str] = {
    "none": say("without_shortcuts_gradient"),
    "pre": say("norms_rescale_sub"),
    "post": say("norm_stands_shortcut"),
}


def gradient_view() -> Panel:
    """The gradient through a deep random stack of our own blocks, measured when it is asked for."""
    from model.analysis.stream.deep_stack import (  # torch: the page is drawn first
        DEEPEST,
        DeepStack,
        gradient_sizes,
    )

    without_sentence()
    depth = st.slider("Blocks", 2, DEEPEST, 24, key="gradient-depth")
    norms = one_of("Norms", list(NORMS), "gradient-norms", named=NORMS.__getitem__)
    seed = st.session_state.setdefault(_SEED, 0)
    st.button("Draw other weights", key="gradient-again", on_click=_draw_again)
    stack = DeepStack(depth=depth, norms=norms, seed=seed)
    with_them = gradient_sizes(stack, shortcuts=True)
    without = gradient_sizes(stack, shortcuts=False)
    return Panel(
        "experiment-gradient",
        look_for=say(
            "look_left_end_curves", power=_power(with_them[0]), without_power=_power(without[0])
        ),
        picture=gradient_by_depth(with_them, without).update_layout(height=380),
        beside=[
            Formula(CHAIN),
            _NORMS_DO[norms],
            Caption(
                say(
                    "measured_now_pytorch",
                    depth=depth,
                    width=stack.width,
                    heads=stack.heads,
                    tokens=stack.tokens,
                )
            ),
        ],
        table=Table(
            {
                "blocks passed": range(len(without)),
                "with shortcuts": [power_of_ten(size, 4) for size in with_them],
                "without": [power_of_ten(size, 4) for size in without],
            }
        ),
    )


def _draw_again() -> None:
    st.session_state[_SEED] += 1


def _power(size: float) -> str:
    """A size as a formula in a sentence: 8.9e6 as 8.9 times ten to the sixth."""
    mantissa, exponent = f"{size:.1e}".split("e")
    power = int(exponent)
    return f"${size:.2g}$" if -2 <= power <= 1 else rf"${mantissa} \times 10^{{{power}}}$"
