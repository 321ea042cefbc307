"""The LaTeX of what becomes of a logit. Pure. Token text never enters LaTeX."""

from dataclasses import dataclass

from model.worked.equality import sign
from viz.notation.numbers import nats, probability

SOFTMAX = r"p_i = \frac{e^{\,z_i / T}}{\sum_j e^{\,z_j / T}}"
ENTROPY = r"H = -\sum_i p_i \ln p_i"
LENS = r"p = \text{softmax}\bigl(\text{norm}(x_{\text{state}})\, W_{\text{out}}\bigr)"
LENS_WITHOUT_NORM = r"p = \text{softmax}\bigl(x_{\text{state}}\, W_{\text{out}}\bigr)"
GREEDY = r"y_t = \mathrm{arg\,max}_i\; p_i(y_1, \ldots, y_{t-1})"
DRAWN = r"y_t \sim p(y_1, \ldots, y_{t-1})"


@dataclass(frozen=True)
class Way:
    """The numbers on one token's way from its logit to the share it is drawn with."""

    logit: float
    largest: float  # the largest logit of the row
    temperature: float
    total: float  # sum over the vocabulary of exp((logit - largest) / temperature)
    warmed: float  # its probability at that temperature
    kept: float  # what all tokens that stay hold together at that temperature
    drawn: float  # the share it is drawn with; 0 where it is cut
    error: float = 0.0  # how far rounding may move a logit


def with_numbers(way: Way) -> str:
    """The softmax of one token with its own numbers, as it is computed: the largest logit is taken
    off first, so that no exponential overflows."""
    blur = way.error / way.temperature
    logit, largest = nats(way.logit, way.error), _bracketed(nats(way.largest, way.error))
    total = nats(way.total, way.total * blur)
    share = rf"\frac{{e^{{\,({logit} - {largest}) / {way.temperature:g}}}}}{{{total}}}"
    warmed = probability(way.warmed, blur)
    lines = [rf"p_i &= {_equated(share, warmed)}"]
    if way.drawn == 0:
        lines.append(r"\text{then} &\;\; \text{cut: } \mathbf{0}")
    elif way.kept < 1 - 1e-12:
        kept = rf"\frac{{{warmed}}}{{{probability(way.kept, blur)}}}"
        lines.append(rf"\text{{then}} &\;\; {_equated(kept, probability(way.drawn, blur))}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _equated(share: str, result: str) -> str:
    return rf"{share} {sign(share, result)} \mathbf{{{result}}}"


def _bracketed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number
