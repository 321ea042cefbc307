"""The LaTeX of each step of attention, and of the steps around the heads: in general, and for one cell.

Formulas have slots for the numbers of a cell, and for the theme's colours. A slot is written `@name@` and
filled by the browser with a number; `@(name)@` puts negative numbers in brackets; `@ink:query@` and the like
become the theme's colours. Token text never enters LaTeX.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from model.nn.config import AS_IN_GPT2, Projection
from model.nn.norms import NormLaw
from model.nn.positions import RotaryPairs
from model.nn.stages import SCORE_STAGES, SINKS, ScoreStage
from model.snippets import LATER, CodeStage
from viz.notation.numbers import power_of_ten

ATTENTION = (
    r"\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V"
)
_MORE = r" + \cdots"
_NEXT_LINE, _NEXT_TERM = r" \\ ", r" \\ &\quad + "  # each term of a sum has a line of its own


StageName = CodeStage


@dataclass(frozen=True)
class StepFormula:
    """The formulas of one step. `numeric` has a template for each case, such as "allowed" and "forbidden"."""

    general: str
    plain: str  # the same as plain text, for a browser without KaTeX
    numeric: Mapping[str, str]


def coloured(colour: str, latex: str) -> str:
    return rf"\textcolor{{@ink:{colour}@}}{{{latex}}}"


def bold(colour: str, latex: str) -> str:
    """The result of a numeric formula: bold, in the quantity's ink."""
    return rf"{{\color{{@ink:{colour}@}}\mathbf{{{latex}}}}}"


def aligned(*lines: str) -> str:
    """Lines of LaTeX, aligned at their `&`."""
    return rf"\begin{{aligned}} {_NEXT_LINE.join(lines)} \end{{aligned}}"


def named_cell(name: str) -> str:
    """One number of a stage, by the positions of its query and its key."""
    return rf"\text{{{name}}}_{{@query_position@,@key_position@}}"


def summed(terms: list[str], count: int) -> str:
    """The first terms of a sum of so many, and dots for the rest."""
    return _NEXT_TERM.join(terms) + (_MORE if count > len(terms) else "")


def two_terms(first: tuple[str, str], second: tuple[str, str], count: int) -> str:
    """The first two products of a sum, each factor a (colour, letter of its slot), and dots for the rest."""
    products = [
        rf"{coloured(first[0], f'@({first[1]}{n})@')}\cdot {coloured(second[0], f'@({second[1]}{n})@')}"
        for n in range(min(count, 2))
    ]
    return summed(products, count)


def formulas(
    *,
    scale: float,
    key_width: int,
    keys: int,
    mask_value: float,
    projection: Projection = AS_IN_GPT2,
    later: Collection[str] = ("masked",),
    needs: Mapping[str, object] = MappingProxyType({}),
) -> dict[StageName, StepFormula]:
    """Every step of one attention layer.

    scale: the factor on the scores. key_width: d_k. keys: number of keys. mask_value: what a masked score
    becomes. projection: how queries and keys are made. later: the steps between the scaled scores and the
    weights. needs: what the stages that this run has need, by their fields.
    Source: Vaswani et al. 2017, section 3.2.1; Su et al. 2021 for the turn.
    """
    before: dict[str, str] = {}  # of each later step, the one whose numbers it reads
    last = "scaled"
    for step in LATER:
        before[step] = last
        last = step if step in later else last
    return {
        "query": _vector("q", "Q", "query", projection),
        "key": _vector("k", "K", "key", projection),
        "value": _vector("v", "V", "value", Projection(projection.bias)),
        "scores": _scores(key_width),
        "scaled": _scaled(scale, key_width),
        **{
            stage.name: _later(stage, before[stage.name], needs.get(stage.field))
            for stage in SCORE_STAGES
        },
        "masked": _masked(mask_value, before["masked"]),
        "weights": _weights(last, sinks=SINKS.field in needs),
        "output": _output(keys),
    }


def _vector(letter: str, matrix: str, colour: str, projection: Projection) -> StepFormula:
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
    return StepFormula(general=general, plain=f"{letter}_i = {words}", numeric={"cell": numeric})


def _scores(key_width: int) -> StepFormula:
    q, k = coloured("query", "q_i"), coloured("key", "k_j")
    q_c, k_c = coloured("query", "q_{ic}"), coloured("key", "k_{jc}")
    products = " + ".join(f"@(product{c})@" for c in range(min(key_width, 2)))
    numeric = aligned(
        rf"{named_cell('score')} &= {two_terms(('query', 'q'), ('key', 'k'), key_width)}",
        rf"&= {products}{_MORE if key_width > 2 else ''}",
        rf"&= {bold('score', '@scores@')}",
    )
    return StepFormula(
        general=rf"\text{{score}}_{{ij}} = {q} \cdot {k} = \sum_{{c}} {q_c}\,{k_c}",
        plain="score_ij = q_i · k_j = sum over c of q_ic k_jc",
        numeric={"cell": numeric},
    )


def _scaled(scale: float, key_width: int) -> StepFormula:
    cell, result = named_cell("scaled"), bold("score", "@scaled@")
    if math.isclose(scale, 1 / math.sqrt(key_width), rel_tol=1e-6):
        exact, rounded = rf"\sqrt{{{key_width}}}", f"{math.sqrt(key_width):.4f}"
        by_root = rf"{cell} &= \frac{{@scores@}}{{{exact}}}"
        return StepFormula(
            general=r"\text{scaled}_{ij} = \frac{\text{score}_{ij}}{\sqrt{d_k}}",
            plain="scaled_ij = score_ij / sqrt(d_k)",
            numeric={"cell": aligned(by_root, rf"&= \frac{{@scores@}}{{{rounded}}} = {result}")},
        )
    if scale == 1:
        return StepFormula(
            general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot 1 \quad\text{(not scaled)}",
            plain="scaled_ij = score_ij · 1 (not scaled)",
            numeric={"cell": rf"{cell} = @scores@ \cdot 1 = {result}"},
        )
    return StepFormula(
        general=r"\text{scaled}_{ij} = \text{score}_{ij}\cdot s",
        plain="scaled_ij = score_ij · s",
        numeric={"cell": rf"{cell} = @(scores)@ \cdot @(scale)@ = {result}"},
    )


def _later(stage: ScoreStage, before: str, value: object) -> StepFormula:
    """before: the name of the step whose numbers it reads. value: what it needs; None: it changes nothing."""
    cell, result = named_cell(stage.name), bold("score", f"@{stage.name}@")
    left = rf"\text{{{stage.name}}}_{{ij}}"
    if value is None:
        return StepFormula(
            general=rf"{left} = \text{{{before}}}_{{ij}} \quad\text{{({stage.absent})}}",
            plain=f"{stage.name}_ij = {before}_ij ({stage.absent})",
            numeric={"cell": rf"{cell} = {result}"},
        )
    terms = stage.terms(before, value)
    return StepFormula(
        general=rf"{left} = {terms.latex}",
        plain=f"{stage.name}_ij = {terms.plain}",
        numeric={"cell": rf"{cell} = {terms.numeric} = {result}"},
    )


def _masked(mask_value: float, before: str) -> StepFormula:
    """before: the name of the step whose numbers are masked."""
    becomes = r"-\infty" if math.isinf(mask_value) else _plain_number(mask_value)
    cell = named_cell("masked")
    return StepFormula(
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


def _weights(scores: str, *, sinks: bool) -> StepFormula:
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
    return StepFormula(
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


def _output(keys: int) -> StepFormula:
    weight, value = coloured("weight", r"\text{weight}_{ij}"), coloured("value", "v_j")
    numeric = aligned(
        rf"\text{{output}}_{{@row@,@column@}} &= {two_terms(('weight', 'w'), ('value', 'v'), keys)}",
        rf"&= {bold('output', '@value@')}",
    )
    return StepFormula(
        general=rf"\text{{output}}_i = \sum_j {weight}\,{value}",
        plain="output_i = sum over j of weight_ij v_j",
        numeric={"cell": numeric},
    )


_CELL = r"_{@row@,@column@}"
_PARTS = {"tokens": "E", "positions": "P", "segments": "S"}
_PAIRS: dict[RotaryPairs, tuple[str, str]] = {
    "halves": ("c", "c+r/2"),
    "neighbours": ("2c", "2c+1"),
}


def added_positions(parts: Sequence[str]) -> StepFormula:
    """The vector of a token and what is added to it, by the names in a trace."""
    letters = [_PARTS.get(part, rf"\text{{{part}}}") for part in parts]
    words = {"tokens": "token", "positions": "position", "segments": "segment"}
    named = [f"{words.get(part, part)} vector" for part in parts]
    numbers = " + ".join(f"@({part})@" for part in parts)
    return StepFormula(
        general=rf"{coloured('stream', 'x_i')} = " + " + ".join(f"{one}_i" for one in letters),
        plain=f"x_i = {' + '.join(named)}",
        numeric={"cell": rf"x{_CELL} = {numbers} = {bold('stream', '@value@')}"},
    )


def entering_stream(*, sums: bool) -> StepFormula:
    """The vector of a token as a layer above the first reads it. sums: whether it is the sum of all that was
    written before, with no norm of that sum."""
    stream = r"\text{stream}_i"
    if sums:
        stream = r"E_i + P_i + \sum_{\text{sub-layers before}} \text{written}_i"
    return StepFormula(
        general=rf"{coloured('stream', 'x_i')} = {stream}",
        plain="x_i = token vector + position vector + what each sub-layer before has written"
        if sums
        else "x_i = the stream of token i",
        numeric={"cell": rf"x{_CELL} = {bold('stream', '@value@')}"},
    )


def turned_positions(pairs: RotaryPairs) -> StepFormula:
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

    return StepFormula(
        general=aligned(*turned),
        plain="q' = q rotated, pair by pair, by the angles of its position",
        numeric={
            "cell": numeric("-"),
            "second": numeric("+"),
            "still": rf"q'{_CELL} = q{_CELL} = {result} \quad\text{{(not rotated)}}",
        },
    )


def norm(
    law: NormLaw,
    epsilon: float,
    *,
    shifts: bool,
    of: Literal["stream", "query", "key"] = "stream",
) -> StepFormula:
    """A norm of each row. of: whose numbers it takes."""
    above = law.centred("x_{ic}", r"\mu_i")
    plus = r" + \beta_c" if shifts else ""
    own_plus = " + @(beta)@" if plus else ""
    mantissa, _, power = f"{epsilon:e}".partition("e")
    small = rf"{float(mantissa):g}{{\cdot}}10^{{{int(power)}}}"
    root = rf"\sqrt{{@variance@ + {small}}}"
    share = rf"\frac{{{law.centred('@x@', '@(mean)@')}}}{{{root}}}"
    return StepFormula(
        general=rf"{coloured(of, 'y_{ic}')} = \gamma_c\,\frac{{{above}}}"
        rf"{{\sqrt{{{law.size_of('i')} + \epsilon}}}}{plus}",
        plain=f"y = gamma ({law.centred('x', 'mean').replace('-', '−')}) / sqrt({law.size} + epsilon)"
        f"{' + beta' if plus else ''}, with {law.of_row} of the row",
        numeric={
            "cell": aligned(
                rf"\hat x{_CELL} &= {share} = @unit@",
                rf"y{_CELL} &= @(gamma)@ \cdot @(unit)@{own_plus} = {bold(of, '@value@')}",
            )
        },
    )


def concatenated() -> StepFormula:
    """The outputs of all heads side by side."""
    output = coloured("output", r"o^{(h)}_{i,d}")
    return StepFormula(
        general=aligned(
            r"O_i &= [o^{(0)}_i;\, o^{(1)}_i;\, \dots]", rf"O_{{i,\,h d_v + d}} &= {output}"
        ),
        plain="row i: the outputs of head 0, head 1, … of token i, one after the other",
        numeric={
            "cell": rf"O{_CELL} = o^{{(@head@)}}_{{@row@,@inner@}} = {bold('output', '@value@')}"
        },
    )


def written(heads: int, *, bias: bool) -> StepFormula:
    """The outputs side by side times W_O: a sum over the heads, each through its own rows of W_O."""
    terms = [f"@(head{n})@" for n in range(min(heads, 2))]
    end = " + @(bias)@" if bias else ""
    shift = " + b" if bias else ""
    return StepFormula(
        general=rf"y_i = O_i\,W_O{shift} = \sum_h o^{{(h)}}_i\,W_O^{{(h)}}{shift}",
        plain=f"y_i = O_i W_O{shift} = sum over the heads of o_i W_O{shift}",
        numeric={
            "cell": aligned(
                rf"y{_CELL} &= {summed(terms, heads)}{end}", f"&= {bold('stream', '@value@')}"
            )
        },
    )
