"""The LaTeX of the stages around the heads: positions, norm, outputs side by side, what is written."""

from collections.abc import Sequence
from typing import Literal

from model.nn.config import NormKind, RotaryPairs
from viz.notation.formula import Formula, aligned, bold, coloured, summed

_CELL = r"_{@row@,@column@}"
_PARTS = {"tokens": "E", "positions": "P", "segments": "S"}
_PAIRS: dict[RotaryPairs, tuple[str, str]] = {
    "halves": ("c", "c+r/2"),
    "neighbours": ("2c", "2c+1"),
}


def added_positions(parts: Sequence[str]) -> Formula:
    """The vector of a token and what is added to it, by the names in a trace."""
    letters = [_PARTS.get(part, rf"\text{{{part}}}") for part in parts]
    words = {"tokens": "token", "positions": "position", "segments": "segment"}
    named = [f"{words.get(part, part)} vector" for part in parts]
    numbers = " + ".join(f"@({part})@" for part in parts)
    return Formula(
        general=rf"{coloured('stream', 'x_i')} = " + " + ".join(f"{one}_i" for one in letters),
        plain=f"x_i = {' + '.join(named)}",
        numeric={"cell": rf"x{_CELL} = {numbers} = {bold('stream', '@value@')}"},
    )


def turned_positions(pairs: RotaryPairs) -> Formula:
    """A query before and after rotary positions turn its pairs of numbers (Su et al. 2021)."""
    first, second = _PAIRS.get(pairs, ("c", "d"))
    turned = (
        rf"q'_{{i,{first}}} &= q_{{i,{first}}}\cos\alpha_{{ic}} - q_{{i,{second}}}\sin\alpha_{{ic}}",
        rf"q'_{{i,{second}}} &= q_{{i,{second}}}\cos\alpha_{{ic}} + q_{{i,{first}}}\sin\alpha_{{ic}}",
    )
    result = bold("query", "@value@")

    def numeric(sign: str) -> str:
        product = rf"@(own)@ \cdot @(cosine)@ {sign} @(other)@ \cdot @(sine)@"
        return aligned(r"\alpha &= @angle@", rf"q'{_CELL} &= {product}", f"&= {result}")

    return Formula(
        general=aligned(*turned),
        plain="q' = q rotated, pair by pair, by the angles of its position",
        numeric={
            "cell": numeric("-"),
            "second": numeric("+"),
            "still": rf"q'{_CELL} = q{_CELL} = {result} \quad\text{{(not rotated)}}",
        },
    )


def norm(
    kind: NormKind,
    epsilon: float,
    *,
    shifts: bool,
    of: Literal["stream", "query", "key"] = "stream",
) -> Formula:
    """A layer norm or an RMS norm (Ba et al. 2016; Zhang and Sennrich 2019). of: whose numbers it takes."""
    centres = kind == "layer"
    mean, size = (r" - \mu_i", r"\sigma_i^2") if centres else ("", r"\text{ms}_i")
    own_mean = " - @(mean)@" if centres else ""
    plus = r" + \beta_c" if shifts else ""
    own_plus = " + @(beta)@" if plus else ""
    mantissa, _, power = f"{epsilon:e}".partition("e")
    small = rf"{float(mantissa):g}{{\cdot}}10^{{{int(power)}}}"
    root = rf"\sqrt{{@variance@ + {small}}}"
    share = rf"\frac{{@x@{own_mean}}}{{{root}}}"
    of_row = "mean and variance" if centres else "the mean square"
    return Formula(
        general=rf"{coloured(of, 'y_{ic}')} = \gamma_c\,\frac{{x_{{ic}}{mean}}}"
        rf"{{\sqrt{{{size} + \epsilon}}}}{plus}",
        plain=f"y = gamma (x{' − mean' if centres else ''}) / sqrt({'variance' if centres else 'mean square'}"
        f" + epsilon){' + beta' if plus else ''}, with {of_row} of the row",
        numeric={
            "cell": aligned(
                rf"\hat x{_CELL} &= {share} = @unit@",
                rf"y{_CELL} &= @(gamma)@ \cdot @(unit)@{own_plus} = {bold(of, '@value@')}",
            )
        },
    )


def concatenated() -> Formula:
    """The outputs of all heads side by side."""
    output = coloured("output", r"o^{(h)}_{i,d}")
    return Formula(
        general=aligned(
            r"O_i &= [o^{(0)}_i;\, o^{(1)}_i;\, \dots]", rf"O_{{i,\,h d_v + d}} &= {output}"
        ),
        plain="row i: the outputs of head 0, head 1, … of token i, one after the other",
        numeric={
            "cell": rf"O{_CELL} = o^{{(@head@)}}_{{@row@,@inner@}} = {bold('output', '@value@')}"
        },
    )


def written(heads: int, *, bias: bool) -> Formula:
    """The outputs side by side times W_O: a sum over the heads, each through its own rows of W_O."""
    terms = [f"@(head{n})@" for n in range(min(heads, 2))]
    end = " + @(bias)@" if bias else ""
    shift = " + b" if bias else ""
    return Formula(
        general=rf"y_i = O_i\,W_O{shift} = \sum_h o^{{(h)}}_i\,W_O^{{(h)}}{shift}",
        plain=f"y_i = O_i W_O{shift} = sum over the heads of o_i W_O{shift}",
        numeric={
            "cell": aligned(
                rf"y{_CELL} &= {summed(terms, heads)}{end}", f"&= {bold('stream', '@value@')}"
            )
        },
    )
