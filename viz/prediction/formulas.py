"""The LaTeX of what becomes of a logit. Pure. Token text never enters LaTeX."""

from dataclasses import dataclass

from model.worked.equality import sign

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


def with_numbers(way: Way) -> str:
    """The softmax of one token with its own numbers, as it is computed: the largest logit is taken
    off first, so that no exponential overflows."""
    exponent = rf"({way.logit:.4f} - {_bracketed(way.largest)}) / {way.temperature:g}"
    share = rf"\frac{{e^{{\,{exponent}}}}}{{{way.total:.4f}}}"
    lines = [rf"p_i &= {_equated(share, way.warmed)}"]
    if way.drawn == 0:
        lines.append(r"\text{then} &\;\; \text{cut: } \mathbf{0}")
    elif way.kept < 1 - 1e-12:
        kept = rf"\frac{{{way.warmed:.4f}}}{{{way.kept:.4f}}}"
        lines.append(rf"\text{{then}} &\;\; {_equated(kept, way.drawn)}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _equated(share: str, result: float) -> str:
    return rf"{share} {sign(share, f'{result:.4f}')} \mathbf{{{result:.4f}}}"


def _bracketed(number: float) -> str:
    return f"({number:.4f})" if number < 0 else f"{number:.4f}"
