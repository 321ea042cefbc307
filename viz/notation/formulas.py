"""The LaTeX of each step of attention: in general, and with slots for the numbers of one cell.

A slot is written `@name@` and filled by the browser with a number; `@(name)@` puts negative numbers in
brackets; `@ink:query@` and the like become the theme's colours. Token text never enters LaTeX.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from model.nn.config import AS_IN_GPT2, Projection

_NEXT_LINE, _MORE = r" \\ ", r" + \cdots"
_TERMS = r" \\ &\quad + "  # each term of a sum on a line of its own
StageName = Literal["query", "key", "value", "scores", "scaled", "masked", "weights", "output"]


@dataclass(frozen=True)
class Formula:
    """The formulas of one step. `numeric` has a template for each case, such as "allowed" and "forbidden"."""

    general: str
    plain: str  # the same as plain text, for a browser without KaTeX
    numeric: Mapping[str, str]


ATTENTION = (
    r"\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V"
)
ATTENTION_WITHOUT_MASK = ATTENTION.replace(" + M", "")


def formulas(
    *,
    scale: float,
    key_width: int,
    keys: int,
    mask_value: float,
    projection: Projection = AS_IN_GPT2,
    has_mask: bool = True,
) -> dict[StageName, Formula]:
    """Every step of one attention layer.

    scale: the factor on the scores. key_width: d_k. keys: number of keys. mask_value: what a masked score
    becomes. projection: how queries and keys are made. has_mask: whether masked scores are a step of
    their own, or the scaled ones go into the softmax. Source: Vaswani et al. 2017, section 3.2.1;
    Su et al. 2021 for the turn.
    """
    return {
        "query": _vector("q", "Q", "query", projection),
        "key": _vector("k", "K", "key", projection),
        "value": _vector("v", "V", "value", Projection(projection.bias)),
        "scores": _scores(key_width),
        "scaled": _scaled(scale, key_width),
        "masked": _masked(mask_value),
        "weights": _weights("masked" if has_mask else "scaled"),
        "output": _output(keys),
    }


def _coloured(colour: str, latex: str) -> str:
    return rf"\textcolor{{@ink:{colour}@}}{{{latex}}}"


def _result(colour: str, latex: str) -> str:
    """The result of a numeric formula: bold, in the quantity's ink."""
    return rf"{{\color{{@ink:{colour}@}}\mathbf{{{latex}}}}}"


def _aligned(*lines: str) -> str:
    """Lines of LaTeX, aligned at their `&`."""
    return rf"\begin{{aligned}} {_NEXT_LINE.join(lines)} \end{{aligned}}"


def _cell(name: str) -> str:
    return rf"\text{{{name}}}_{{@query_position@,@key_position@}}"


def _two_terms(first: tuple[str, str], second: tuple[str, str], count: int) -> str:
    """The first two products of a sum, each factor a (colour, letter of its slot), and dots for the rest."""
    products = [
        rf"{_coloured(first[0], f'@({first[1]}{n})@')}\cdot {_coloured(second[0], f'@({second[1]}{n})@')}"
        for n in range(min(count, 2))
    ]
    return _TERMS.join(products) + (_MORE if count > 2 else "")


def _vector(letter: str, matrix: str, colour: str, projection: Projection) -> Formula:
    row = _coloured(colour, f"{letter}_i")
    bias = f" + b_{matrix}" if projection.bias else ""
    latex, words = rf"x_i\,W_{matrix}{bias}", f"x_i W_{matrix}{bias}"
    if projection.normed:
        latex, words = rf"\text{{norm}}({latex})", f"norm({words})"
    general = rf"{row} = {latex}"
    if projection.turned:
        turned = r"R_i &: \text{rotation by the angles of position } i"
        general = _aligned(rf"{row} &= R_i\,({latex})", turned)
        words = f"R_i ({words}), R_i: rotation by the angles of position i"
    cell, vector = (_coloured(colour, f"{letter}_{{{at}}}") for at in ("@row@,@column@", "@row@"))
    numeric = _aligned(rf"{cell} &= @value@", rf"\lVert {vector} \rVert &= @length@")
    return Formula(general=general, plain=f"{letter}_i = {words}", numeric={"cell": numeric})


def _scores(key_width: int) -> Formula:
    q, k = _coloured("query", "q_i"), _coloured("key", "k_j")
    q_c, k_c = _coloured("query", "q_{ic}"), _coloured("key", "k_{jc}")
    products = " + ".join(f"@(product{c})@" for c in range(min(key_width, 2)))
    numeric = _aligned(
        rf"{_cell('score')} &= {_two_terms(('query', 'q'), ('key', 'k'), key_width)}",
        rf"&= {products}{_MORE if key_width > 2 else ''}",
        rf"&= {_result('score', '@scores@')}",
    )
    return Formula(
        general=rf"\text{{score}}_{{ij}} = {q} \cdot {k} = \sum_{{c}} {q_c}\,{k_c}",
        plain="score_ij = q_i · k_j = sum over c of q_ic k_jc",
        numeric={"cell": numeric},
    )


def _scaled(scale: float, key_width: int) -> Formula:
    cell, result = _cell("scaled"), _result("score", "@scaled@")
    if math.isclose(scale, 1 / math.sqrt(key_width), rel_tol=1e-6):
        exact, rounded = rf"\sqrt{{{key_width}}}", f"{math.sqrt(key_width):.4f}"
        by_root = rf"{cell} &= \frac{{@scores@}}{{{exact}}}"
        return Formula(
            general=r"\text{scaled}_{ij} = \frac{\text{score}_{ij}}{\sqrt{d_k}}",
            plain="scaled_ij = score_ij / sqrt(d_k)",
            numeric={"cell": _aligned(by_root, rf"&= \frac{{@scores@}}{{{rounded}}} = {result}")},
        )
    if scale == 1:
        return Formula(
            general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot 1 \quad\text{(not scaled)}",
            plain="scaled_ij = score_ij · 1 (not scaled)",
            numeric={"cell": rf"{cell} = @scores@ \cdot 1 = {result}"},
        )
    return Formula(
        general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot s",
        plain="scaled_ij = score_ij · s",
        numeric={"cell": rf"{cell} = @(scores)@ \cdot @(scale)@ = {result}"},
    )


def _masked(mask_value: float) -> Formula:
    becomes = r"-\infty" if math.isinf(mask_value) else _plain_number(mask_value)
    cell = _cell("masked")
    return Formula(
        general=(
            r"\text{masked}_{ij} = \begin{cases} \text{scaled}_{ij} & \text{if } i \text{ may attend to } j"
            rf" \\ {becomes} & \text{{if not}} \end{{cases}}"
        ),
        plain=f"masked_ij = scaled_ij where i may attend to j, else {becomes}".replace(
            r"\infty", "∞"
        ),
        numeric={
            "allowed": rf"{cell} = {_result('score', '@scaled@')}",
            "forbidden": rf"{cell} = {_result('score', becomes)}",
        },
    )


def _plain_number(number: float) -> str:
    """A number in LaTeX: -1e9 as -10^{9}."""
    if abs(number) < 10_000:
        return f"{number:g}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    factor, power = f"{float(mantissa):g}", f"10^{{{int(exponent)}}}"
    return {"1": power, "-1": f"-{power}"}.get(factor, rf"{factor}\cdot {power}")


def _weights(scores: str) -> Formula:
    """scores: the name of the softmax's input."""
    cell = _cell("weight")
    own, other = (rf"\text{{{scores}}}_{{{at}}}" for at in ("ij", "il"))
    return Formula(
        general=_aligned(
            rf"\text{{weight}}_{{ij}} &= \frac{{e^{{\,{own} - m_i}}}}{{\sum_l e^{{\,{other} - m_i}}}}",
            rf"m_i &= \max_l\, {other}",
        ),
        plain=f"weight_ij = exp({scores}_ij − m_i) / sum over l of exp({scores}_il − m_i), "
        "m_i = row maximum",
        numeric={
            "cell": _aligned(
                rf"{cell} &= \frac{{e^{{\,@masked@ - @(largest)@}}}}{{@sum@}}",
                rf"&= \frac{{@exponential@}}{{@sum@}} = {_result('weight', '@weights@')}",
            ),
            "forbidden": rf"{cell} = \frac{{e^{{-\infty}}}}{{@sum@}} = {_result('weight', '0')}",
            "empty": rf"{cell} = {_result('weight', '0')} \quad\text{{(every key is masked)}}",
            "set": rf"{cell} = {_result('weight', '@weights@')} \quad\text{{(set by hand)}}",
            "shared": (
                rf"{cell} = {_result('weight', '@weights@')} "
                r"\quad\text{(its share of what the weights set by hand leave)}"
            ),
        },
    )


def _output(keys: int) -> Formula:
    weight, value = _coloured("weight", r"\text{weight}_{ij}"), _coloured("value", "v_j")
    numeric = _aligned(
        rf"\text{{output}}_{{@row@,@column@}} &= {_two_terms(('weight', 'w'), ('value', 'v'), keys)}",
        rf"&= {_result('output', '@value@')}",
    )
    return Formula(
        general=rf"\text{{output}}_i = \sum_j {weight}\,{value}",
        plain="output_i = sum over j of weight_ij v_j",
        numeric={"cell": numeric},
    )
