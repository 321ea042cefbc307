"""The LaTeX of each step of attention: in general, and with slots for the numbers of one cell.

A slot is written `@name@` and filled by the browser with a number; `@(name)@` puts negative numbers in
brackets; `@ink:query@` and the like become the theme's colours. Token text never enters LaTeX.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from model.nn.config import AS_IN_GPT2, Projection

_TERMS = r" \\ &\quad + "  # each term of a sum on a line of its own
StageName = Literal["query", "key", "value", "scores", "scaled", "masked", "weights", "output"]


@dataclass(frozen=True)
class Formula:
    """One step. `numeric` has one template a case, for instance "allowed" and "forbidden"."""

    general: str
    plain: str  # the same in words, for a browser that cannot draw LaTeX
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
    fill: float,
    projection: Projection = AS_IN_GPT2,
    has_mask: bool = True,
) -> dict[StageName, Formula]:
    """Every step of one attention layer.

    scale: the factor on the scores. key_width: d_k. keys: number of keys. fill: what a masked score
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
        "masked": _masked(fill),
        "weights": _weights("masked" if has_mask else "scaled"),
        "output": _output(keys),
    }


def _coloured(colour: str, latex: str) -> str:
    return rf"\textcolor{{@ink:{colour}@}}{{{latex}}}"


def _result(colour: str, latex: str) -> str:
    """What a numeric formula arrives at: bold, in the quantity's ink."""
    return rf"{{\color{{@ink:{colour}@}}\mathbf{{{latex}}}}}"


def _vector(letter: str, matrix: str, colour: str, projection: Projection) -> Formula:
    row = _coloured(colour, f"{letter}_i")
    bias = f" + b_{matrix}" if projection.bias else ""
    latex, words = rf"x_i\,W_{matrix}{bias}", f"x_i W_{matrix}{bias}"
    if projection.normed:
        latex, words = rf"\text{{norm}}({latex})", f"norm({words})"
    if projection.turned:
        latex = rf"R_i\,({latex}) \\ R_i &: \text{{turn by the angles of position }} i"
        words = f"R_i ({words}), R_i: turn by the angles of position i"
    general = rf"{row} = {latex}"
    if projection.turned:
        general = rf"\begin{{aligned}} {row} &= {latex} \end{{aligned}}"
    return Formula(
        general=general,
        plain=f"{letter}_i = {words}",
        numeric={
            "cell": (
                rf"\begin{{aligned}} {_coloured(colour, letter + '_{@row@,@column@}')} &= @value@ \\"
                rf" \lVert {_coloured(colour, letter + '_{@row@}')} \rVert &= @length@ \end{{aligned}}"
            )
        },
    )


def _scores(key_width: int) -> Formula:
    shown = min(key_width, 2)
    factors = _TERMS.join(
        rf"{_coloured('query', f'@(q{c})@')}\cdot {_coloured('key', f'@(k{c})@')}"
        for c in range(shown)
    )
    products = " + ".join(f"@(product{c})@" for c in range(shown))
    more = r" + \cdots" if key_width > shown else ""
    return Formula(
        general=(
            rf"\text{{score}}_{{ij}} = {_coloured('query', 'q_i')} \cdot {_coloured('key', 'k_j')}"
            r" = \sum_{c} "
            rf"{_coloured('query', 'q_{ic}')}\,{_coloured('key', 'k_{jc}')}"
        ),
        plain="score_ij = q_i · k_j = sum over c of q_ic k_jc",
        numeric={
            "cell": (
                rf"\begin{{aligned}} \text{{score}}_{{@query_position@,@key_position@}}"
                rf" &= {factors}{more} \\ &= {products}{more} \\"
                rf" &= {_result('score', '@scores@')} \end{{aligned}}"
            )
        },
    )


def _scaled(scale: float, key_width: int) -> Formula:
    cell = r"\text{scaled}_{@query_position@,@key_position@}"
    if math.isclose(scale, 1 / math.sqrt(key_width), rel_tol=1e-6):
        root = rf"\sqrt{{{key_width}}}"
        return Formula(
            general=r"\text{scaled}_{ij} = \frac{\text{score}_{ij}}{\sqrt{d_k}}",
            plain="scaled_ij = score_ij / sqrt(d_k)",
            numeric={
                "cell": rf"\begin{{aligned}} {cell} &= \frac{{@scores@}}{{{root}}} \\"
                rf" &= \frac{{@scores@}}{{{math.sqrt(key_width):.4f}}} = {_result('score', '@scaled@')}"
                r" \end{aligned}"
            },
        )
    if scale == 1:
        return Formula(
            general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot 1 \quad\text{(not scaled)}",
            plain="scaled_ij = score_ij · 1 (not scaled)",
            numeric={"cell": rf"{cell} = @scores@ \cdot 1 = {_result('score', '@scaled@')}"},
        )
    return Formula(
        general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot s",
        plain="scaled_ij = score_ij · s",
        numeric={"cell": rf"{cell} = @(scores)@ \cdot @(scale)@ = {_result('score', '@scaled@')}"},
    )


def _masked(fill: float) -> Formula:
    becomes = r"-\infty" if math.isinf(fill) else _plain_number(fill)
    cell = r"\text{masked}_{@query_position@,@key_position@}"
    return Formula(
        general=(
            r"\text{masked}_{ij} = \begin{cases} \text{scaled}_{ij} & \text{if } i \text{ may look at } j"
            rf" \\ {becomes} & \text{{if not}} \end{{cases}}"
        ),
        plain="masked_ij = scaled_ij where i may look at j, else "
        + becomes.replace(r"\infty", "∞"),
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
    factor = f"{float(mantissa):g}"
    power = f"10^{{{int(exponent)}}}"
    return {"1": power, "-1": f"-{power}"}.get(factor, rf"{factor}\cdot {power}")


def _weights(scores: str) -> Formula:
    """scores: the name of what goes into the softmax."""
    cell = r"\text{weight}_{@query_position@,@key_position@}"
    return Formula(
        general=(
            rf"\begin{{aligned}} \text{{weight}}_{{ij}} &= \frac{{e^{{\,\text{{{scores}}}_{{ij}} - m_i}}}}"
            rf"{{\sum_l e^{{\,\text{{{scores}}}_{{il}} - m_i}}}} \\"
            rf" m_i &= \max_l\, \text{{{scores}}}_{{il}} \end{{aligned}}"
        ),
        plain=f"weight_ij = exp({scores}_ij − m_i) / sum over l of exp({scores}_il − m_i), "
        "m_i = row maximum",
        numeric={
            "cell": (
                rf"\begin{{aligned}} {cell} &= \frac{{e^{{\,@masked@ - @(largest)@}}}}{{@sum@}} \\"
                rf" &= \frac{{@exponential@}}{{@sum@}} = {_result('weight', '@weights@')} \end{{aligned}}"
            ),
            "forbidden": rf"{cell} = \frac{{e^{{-\infty}}}}{{@sum@}} = {_result('weight', '0')}",
            "empty": rf"{cell} = {_result('weight', '0')} \quad\text{{(every key is masked)}}",
        },
    )


def _output(keys: int) -> Formula:
    shown = min(keys, 2)
    terms = _TERMS.join(
        rf"{_coloured('weight', f'@(w{n})@')}\cdot {_coloured('value', f'@(v{n})@')}"
        for n in range(shown)
    )
    more = r" + \cdots" if keys > shown else ""
    weight = _coloured("weight", r"\text{weight}_{ij}")
    return Formula(
        general=(rf"\text{{output}}_i = \sum_j {weight}\,{_coloured('value', 'v_j')}"),
        plain="output_i = sum over j of weight_ij v_j",
        numeric={
            "cell": (
                rf"\begin{{aligned}} \text{{output}}_{{@row@,@column@}} &= {terms}{more} \\"
                rf" &= {_result('output', '@value@')} \end{{aligned}}"
            )
        },
    )
