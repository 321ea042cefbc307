"""The LaTeX of the feed-forward layer, the residual stream and dropout. Pure."""

from model.nn.activations import ACTIVATION_LAWS, GATED, Activation
from model.nn.config import TransformerConfig
from model.nn.norms import NORM_PLACES
from model.worked.equality import settled
from model.worked.latex import number

FEED_FORWARD = (
    r"\begin{aligned} h &= f(x W_1 + b_1) \\ \mathrm{FFN}(x) &= h\, W_2 + b_2 \end{aligned}"
)
WITH_GATE = (
    r"\begin{aligned} h &= f(x W_g + b_g) \odot (x W_1 + b_1) \\"
    r" \mathrm{FFN}(x) &= h\, W_2 + b_2 \end{aligned}"
)
RESIDUAL = r"x \leftarrow x + f(x)"
STREAM = {place: order.stream for place, order in NORM_PLACES.items()}
DROPOUT = (
    r"x_i \leftarrow \begin{cases} 0 & \text{with probability } p \\"
    r" \dfrac{x_i}{1-p} & \text{otherwise} \end{cases}"
)


def feed_forward(config: TransformerConfig) -> str:
    """The layer's formula, with a gate and with biases where it has them."""
    formula = WITH_GATE if config.is_gated else FEED_FORWARD
    if not config.hidden_bias:
        for bias in ("b_g", "b_1", "b_2"):
            formula = formula.replace(f" + {bias}", "")
        formula = formula.replace("(x W_1)", r"x W_1") if config.is_gated else formula
    return formula.replace("f(", f"{ACTIVATION_LAWS[config.activation].symbol}(")


def activation_in_numbers(activation: Activation, before: float, hidden: float) -> str:
    name = ACTIVATION_LAWS[activation].symbol
    if activation in GATED:
        return rf"{name}({number(before)}) \cdot u = {number(hidden)}"
    return settled(rf"{name}({number(before)}) = {number(hidden)}")


def kept_in_numbers(value: float, rate: float) -> str:
    return settled(
        rf"\frac{{{number(value)}}}{{1 - {number(rate)}}} = {number(value / (1 - rate))}"
    )
