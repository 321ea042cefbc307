"""The LaTeX of each step of attention: in general, and with slots for the numbers of one cell."""

import math
from collections.abc import Collection

from model.nn.config import AS_IN_GPT2, Projection
from viz.notation.formula import (
    Formula,
    StageName,
    aligned,
    bold,
    coloured,
    named_cell,
    two_terms,
)
from viz.notation.numbers import power_of_ten

__all__ = ["ATTENTION", "ATTENTION_WITHOUT_MASK", "Formula", "StageName", "formulas"]

_MORE = r" + \cdots"

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
    later: Collection[str] = ("masked",),
    cap: float | None = None,
    bias: bool = False,
    sinks: bool = False,
) -> dict[StageName, Formula]:
    """Every step of one attention layer.

    scale: the factor on the scores. key_width: d_k. keys: number of keys. mask_value: what a masked score
    becomes. projection: how queries and keys are made. later: the steps between the scaled scores and the
    weights. cap: of the scores; None: not capped here. bias, sinks: whether scores get a bias, and whether a
    sink takes part in the softmax.
    Source: Vaswani et al. 2017, section 3.2.1; Su et al. 2021 for the turn.
    """
    before: dict[str, str] = {}  # of each later step, the one whose numbers it reads
    last = "scaled"
    for step in ("capped", "biased", "masked"):
        before[step] = last
        last = step if step in later else last
    return {
        "query": _vector("q", "Q", "query", projection),
        "key": _vector("k", "K", "key", projection),
        "value": _vector("v", "V", "value", Projection(projection.bias)),
        "scores": _scores(key_width),
        "scaled": _scaled(scale, key_width),
        "capped": _capped(cap),
        "biased": _biased(before["biased"], has_bias=bias),
        "masked": _masked(mask_value, before["masked"]),
        "weights": _weights(last, sinks=sinks),
        "output": _output(keys),
    }


def _vector(letter: str, matrix: str, colour: str, projection: Projection) -> Formula:
    row = coloured(colour, f"{letter}_i")
    bias = f" + b_{matrix}" if projection.bias else ""
    latex, words = rf"x_i\,W_{matrix}{bias}", f"x_i W_{matrix}{bias}"
    if projection.normed:
        latex, words = rf"\text{{norm}}({latex})", f"norm({words})"
    general = rf"{row} = {latex}"
    if projection.turned:
        turned = r"R_i &: \text{rotation by the angles of position } i"
        general = aligned(rf"{row} &= R_i\,({latex})", turned)
        words = f"R_i ({words}), R_i: rotation by the angles of position i"
    cell, vector = (coloured(colour, f"{letter}_{{{at}}}") for at in ("@row@,@column@", "@row@"))
    numeric = aligned(rf"{cell} &= @value@", rf"\lVert {vector} \rVert &= @length@")
    return Formula(general=general, plain=f"{letter}_i = {words}", numeric={"cell": numeric})


def _scores(key_width: int) -> Formula:
    q, k = coloured("query", "q_i"), coloured("key", "k_j")
    q_c, k_c = coloured("query", "q_{ic}"), coloured("key", "k_{jc}")
    products = " + ".join(f"@(product{c})@" for c in range(min(key_width, 2)))
    numeric = aligned(
        rf"{named_cell('score')} &= {two_terms(('query', 'q'), ('key', 'k'), key_width)}",
        rf"&= {products}{_MORE if key_width > 2 else ''}",
        rf"&= {bold('score', '@scores@')}",
    )
    return Formula(
        general=rf"\text{{score}}_{{ij}} = {q} \cdot {k} = \sum_{{c}} {q_c}\,{k_c}",
        plain="score_ij = q_i · k_j = sum over c of q_ic k_jc",
        numeric={"cell": numeric},
    )


def _scaled(scale: float, key_width: int) -> Formula:
    cell, result = named_cell("scaled"), bold("score", "@scaled@")
    if math.isclose(scale, 1 / math.sqrt(key_width), rel_tol=1e-6):
        exact, rounded = rf"\sqrt{{{key_width}}}", f"{math.sqrt(key_width):.4f}"
        by_root = rf"{cell} &= \frac{{@scores@}}{{{exact}}}"
        return Formula(
            general=r"\text{scaled}_{ij} = \frac{\text{score}_{ij}}{\sqrt{d_k}}",
            plain="scaled_ij = score_ij / sqrt(d_k)",
            numeric={"cell": aligned(by_root, rf"&= \frac{{@scores@}}{{{rounded}}} = {result}")},
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


def _capped(cap: float | None) -> Formula:
    """A soft cap: small scores stay, large ones come near the cap at most (Gemma Team 2024, section 2)."""
    cell, capped = named_cell("capped"), bold("score", "@capped@")
    if cap is None:
        return Formula(
            general=r"\text{capped}_{ij} = \text{scaled}_{ij} \quad\text{(not capped)}",
            plain="capped_ij = scaled_ij (not capped)",
            numeric={"cell": rf"{cell} = {capped}"},
        )
    return Formula(
        general=r"\text{capped}_{ij} = c\,\tanh\!\left(\frac{\text{scaled}_{ij}}{c}\right)",
        plain=f"capped_ij = c tanh(scaled_ij / c), c = {cap:g}",
        numeric={"cell": rf"{cell} = {cap:g} \cdot \tanh(\frac{{@scaled@}}{{{cap:g}}}) = {capped}"},
    )


def _biased(before: str, *, has_bias: bool) -> Formula:
    """before: the name of the step to whose numbers a bias is added."""
    cell, biased = named_cell("biased"), bold("score", "@biased@")
    if not has_bias:
        return Formula(
            general=rf"\text{{biased}}_{{ij}} = \text{{{before}}}_{{ij}} \quad\text{{(no bias)}}",
            plain=f"biased_ij = {before}_ij (no bias)",
            numeric={"cell": rf"{cell} = {biased}"},
        )
    return Formula(
        general=rf"\text{{biased}}_{{ij}} = \text{{{before}}}_{{ij}} + b_{{ij}}",
        plain=f"biased_ij = {before}_ij + b_ij",
        numeric={"cell": rf"{cell} = @{before}@ + @(bias)@ = {biased}"},
    )


def _masked(mask_value: float, before: str) -> Formula:
    """before: the name of the step whose numbers are masked."""
    becomes = r"-\infty" if math.isinf(mask_value) else _plain_number(mask_value)
    cell = named_cell("masked")
    return Formula(
        general=(
            rf"\text{{masked}}_{{ij}} = \begin{{cases}} \text{{{before}}}_{{ij}} & \text{{if }} i "
            rf"\text{{ may attend to }} j \\ {becomes} & \text{{if not}} \end{{cases}}"
        ),
        plain=f"masked_ij = {before}_ij where i may attend to j, else "
        + ("−∞" if math.isinf(mask_value) else power_of_ten(mask_value)),
        numeric={
            "allowed": rf"{cell} = {bold('score', f'@{before}@')}",
            "forbidden": rf"{cell} = {bold('score', becomes)}",
        },
    )


def _plain_number(number: float) -> str:
    """A number in LaTeX: -1e9 as -10^{9}."""
    if abs(number) < 10_000:
        return f"{number:g}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    factor, power = f"{float(mantissa):g}", f"10^{{{int(exponent)}}}"
    return {"1": power, "-1": f"-{power}"}.get(factor, rf"{factor}\cdot {power}")


def _weights(scores: str, *, sinks: bool) -> Formula:
    """scores: the name of the softmax's input. sinks: whether a learned sink has a share of each row."""
    cell = named_cell("weight")
    own, other = (rf"\text{{{scores}}}_{{{at}}}" for at in ("ij", "il"))
    below, largest = rf"\sum_l e^{{\,{other} - m_i}}", rf"\max_l\, {other}"
    said = f"{scores}_il", "row maximum"
    sink = []
    if sinks:
        below += r" + e^{\,\text{sink} - m_i}"
        largest = rf"\max(\text{{sink}},\, {largest})"
        said = f"{scores}_il and the sink", "row maximum, the sink among it"
        share = r"\frac{e^{\,@sink@ - @(largest)@}}{@sum@}"
        sink = [rf"\text{{sink's weight}} &= {share} = {bold('weight', '@sink_weight@')}"]
    return Formula(
        general=aligned(
            rf"\text{{weight}}_{{ij}} &= \frac{{e^{{\,{own} - m_i}}}}{{{below}}}",
            rf"m_i &= {largest}",
        ),
        plain=f"weight_ij = exp({scores}_ij − m_i) / sum over l of exp({said[0]} − m_i), "
        f"m_i = {said[1]}",
        numeric={
            "cell": aligned(
                rf"{cell} &= \frac{{e^{{\,@masked@ - @(largest)@}}}}{{@sum@}}",
                rf"&= \frac{{@exponential@}}{{@sum@}} = {bold('weight', '@weights@')}",
                *sink,
            ),
            "forbidden": aligned(
                rf"{cell} &= \frac{{e^{{-\infty}}}}{{@sum@}} = {bold('weight', '0')}", *sink
            ),
            "empty": rf"{cell} = {bold('weight', '0')} \quad\text{{(every key is masked)}}",
            "set": rf"{cell} = {bold('weight', '@weights@')} \quad\text{{(set by hand)}}",
            "shared": (
                rf"{cell} = {bold('weight', '@weights@')} "
                r"\quad\text{(its share of what the weights set by hand leave)}"
            ),
        },
    )


def _output(keys: int) -> Formula:
    weight, value = coloured("weight", r"\text{weight}_{ij}"), coloured("value", "v_j")
    numeric = aligned(
        rf"\text{{output}}_{{@row@,@column@}} &= {two_terms(('weight', 'w'), ('value', 'v'), keys)}",
        rf"&= {bold('output', '@value@')}",
    )
    return Formula(
        general=rf"\text{{output}}_i = \sum_j {weight}\,{value}",
        plain="output_i = sum over j of weight_ij v_j",
        numeric={"cell": numeric},
    )
