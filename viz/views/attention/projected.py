"""Where one number of a query, a key or a value comes from: x, the head's matrix, and the sum of products."""

from typing import TYPE_CHECKING

import numpy as np

from model.worked.equality import sign
from model.worked.latex import factor, number
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import part_bars
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import number as written
from viz.notation.words import sentences_of
from viz.shell.panel import Check, Formula, Panel, Table, refusals
from viz.state.look import Look
from viz.views.attention.edges import cell_of

if TYPE_CHECKING:
    from model.analysis.attribution.head_maps import Side
    from model.analysis.attribution.score_parts import Projected

say = sentences_of("attention.projected")

SIDES: dict["Side", str] = {"query": "Query", "key": "Key", "value": "Value"}
_LETTERS: dict["Side", str] = {"query": "q", "key": "k", "value": "v"}
DIMENSION = "attention-dimension"
BARS = 12  # products that are drawn
_TERMS = 3  # and those that the formula writes out


def sum_of_products(look: Look) -> Panel:
    """One entry of the chosen head's query, key or value: the largest products, and all others as one."""
    from model.analysis.attribution.score_parts import projected  # imports torch

    side = one_of("Vector", list(SIDES), "attention-vector", named=SIDES.__getitem__, quiet=True)
    cell = cell_of(look)
    token = cell.query if side == "query" else cell.key
    width = look.attention.vectors[2 if side == "value" else 0].shape[-1]
    dimension = one_listed("Dimension", list(map(str, range(width))), f"{DIMENSION}-{width}")
    with refusals():
        vector = projected(look.model, look.trace, cell.place, cell.head, token, side)
    letter, products = _LETTERS[side], vector.products(dimension)
    order = np.argsort(-np.abs(products), kind="stable")
    bars = {f"{at}: {written(vector.x[at])} · {written(vector.matrix[dimension, at])}": products[at]
            for at in order[:BARS].tolist()}  # fmt: skip
    if len(order) > BARS:
        bars[f"the other {len(order) - BARS}"] = products[order[BARS:]].sum()
    if vector.bias.any():
        bars["bias"] = vector.bias[dimension]
    columns = {"x": vector.x, f"W_{letter.upper()}": vector.matrix[dimension], "product": products}
    label = token_label(look.labels[0 if side == "query" else 1][token])
    return Panel(
        f"attention-products-{side}",
        look_for=_look_for(look, vector, side, dimension, f"**{plain(label)}**"),
        picture=part_bars(list(bars), list(map(float, bars.values())), title="x · W, adds"),
        below=[Formula(_formula(vector, letter, token, dimension)), _rest(vector, side, dimension)],
        table=Table(columns, index="dimension of x"),
        check=_check(vector, side),
    )


def _look_for(look: Look, vector: "Projected", side: "Side", dimension: int, token: str) -> str:
    products = np.abs(vector.products(dimension))
    half = int(np.searchsorted(np.cumsum(np.sort(products)[::-1]), products.sum() / 2)) + 1
    heads, groups = look.attention.heads, len(look.attention.vectors[1])
    shared = heads // groups
    own = ""
    if side != "query" and shared > 1:
        own = say("heads_share_part", shared=shared, groups=groups)
    return say(
        "entry_sum_products",
        dimension=dimension,
        side=side,
        token=token,
        products=len(products),
        upper=_LETTERS[side].upper(),
        half=half,
        own=own,
    )


def _largest(vector: "Projected", dimension: int) -> list[int]:
    """The products that the formula writes out, the largest first."""
    sizes = np.abs(vector.products(dimension))
    return np.argsort(-sizes, kind="stable")[:_TERMS].tolist()


def _formula(vector: "Projected", letter: str, token: int, dimension: int) -> str:
    """The sum, with its largest products first."""
    products = vector.products(dimension)
    terms = [
        rf"{factor(vector.x[at])} \cdot {factor(vector.matrix[dimension, at])}"
        for at in _largest(vector, dimension)
    ]
    more = r" + \cdots" if len(products) > _TERMS else ""
    matrix, bias = rf"W_{{c,{dimension}}}", float(vector.bias[dimension])
    has_bias = bool(vector.bias.any())
    general = rf"\sum_c x_c\, {matrix}" + (rf" + b_{{{dimension}}}" if has_bias else "")
    total, result = float(products.sum()), float(vector.sums[dimension])
    lines = [rf"{letter}_{{{token},{dimension}}} &= {general}"]
    lines += ["&= " + r" \\ &\quad + ".join(terms) + more]
    if has_bias:
        end = f"{number(total)} + {factor(bias)}"
        lines += [rf"&= {end}", rf"&{sign(end, number(result))} \mathbf{{{number(result)}}}"]
    else:
        lines += [rf"&= \mathbf{{{number(result)}}}"]
    return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def _rest(vector: "Projected", side: "Side", dimension: int) -> str:
    """What follows the sum, and how far it is from the number that the model used."""
    recorded, after = float(vector.recorded[dimension]), float(vector.after[dimension])
    compared = say(
        "model_recorded_difference", written=written(recorded), after=abs(after - recorded)
    )
    steps = []
    if vector.normed:
        steps += [say("norm_follows_divides", side=side)]
    if vector.turned:
        steps += [say("rotary_positions_rotate")]
    if not steps:
        return compared
    return f"{' '.join(steps)} This entry becomes {written(after)}. {compared}"


def _check(vector: "Projected", side: "Side") -> Check:
    apart = float(np.abs(vector.after - vector.recorded).max())
    return Check(
        say("check_computed_entries", bias=len(vector.bias), side=side, apart=apart),
        apart,
    )
