"""Where one number of a query, a key or a value comes from: x, the head's matrix, and the sum of products."""

import numpy as np
import streamlit as st

from model.analysis.attribution.head_maps import Side
from model.analysis.attribution.score_parts import Projected, projected
from model.worked.equality import sign
from model.worked.latex import factor, number
from viz.elements.one_of import keep_within, one_listed, one_of
from viz.figures.vectors import projection
from viz.notation.labels import numbered_labels
from viz.notation.numbers import difference
from viz.notation.numbers import number as written
from viz.shell.controls import LISTED
from viz.shell.panel import Check, Formula, Panel, Table, refusals
from viz.state.look import Look
from viz.state.session import current

SIDES: dict[Side, str] = {"query": "Query", "key": "Key", "value": "Value"}
_LETTERS: dict[Side, str] = {"query": "q", "key": "k", "value": "v"}
DIMENSION = "attention-dimension"
_TERMS = 3  # products that the formula writes out


def sum_of_products(seen: Look) -> Panel:
    """One entry of the chosen head's query, key or value."""
    side = one_of("Vector", list(SIDES), "attention-vector", named=SIDES.__getitem__)
    queries, keys = seen.labels
    texts = queries if side == "query" else keys
    chosen = current().query if side == "query" else current().key
    token = one_listed(
        "Token",
        numbered_labels(texts, LISTED),
        f"attention-{side}-{seen.place}-{len(texts)}",
        first=min(chosen, len(texts) - 1),
    )
    width = seen.attention.vectors[2 if side == "value" else 0].shape[-1]
    keep_within(DIMENSION, width)
    dimension = int(st.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION))
    with refusals():
        vector = projected(seen.model, seen.trace, seen.place, seen.head, token, side)
    letter = _LETTERS[side]
    figure = projection(
        vector.x,
        vector.matrix,
        vector.bias,
        vector.sums,
        dimension=dimension,
        marked=_largest(vector, dimension),
        quantity=side,
        letters=(letter, f"W_{letter.upper()}"),
    )
    columns = {
        "x": vector.x,
        f"W_{letter.upper()}": vector.matrix[dimension],
        "product": vector.products(dimension),
    }
    return Panel(
        f"attention-products-{side}",
        look_for=_look(seen, vector, side, dimension),
        picture=figure,
        beside=[
            Formula(_formula(vector, letter, token, dimension)),
            _rest(vector, side, dimension),
        ],
        table=Table(columns, index="dimension of x"),
        check=_check(vector, side),
    )


def _look(seen: Look, vector: Projected, side: Side, dimension: int) -> str:
    products = np.abs(vector.products(dimension))
    half = int(np.searchsorted(np.cumsum(np.sort(products)[::-1]), products.sum() / 2)) + 1
    attention = seen.attention
    heads, keys = attention.heads, len(attention.vectors[1])
    shared = heads // keys
    own = "its own part of the matrix"
    if side != "query" and shared > 1:
        own = f"the part of one of {keys} heads of keys and values, which {shared} heads share"
    return (
        "Each number of x is multiplied by the one below it, and the products of a row add up to one entry. "
        f"This head has {own}: {len(vector.bias)} rows of {len(vector.x)}. Of the {len(products)} products "
        f"of this entry the {half} largest hold half of the total size. Triangles mark the ones that the "
        "formula writes out."
    )


def _largest(vector: Projected, dimension: int) -> list[int]:
    """The products that the formula writes out, the largest first."""
    sizes = np.abs(vector.products(dimension))
    return np.argsort(-sizes, kind="stable")[:_TERMS].tolist()


def _formula(vector: Projected, letter: str, token: int, dimension: int) -> str:
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


def _rest(vector: Projected, side: Side, dimension: int) -> str:
    """What follows the sum, and how far it is from the number that the model used."""
    recorded, after = float(vector.recorded[dimension]), float(vector.after[dimension])
    compared = f"The model recorded **{written(recorded)}**; difference {difference(abs(after - recorded))}."
    steps = []
    if vector.normed:
        steps += [
            f"A norm of the {side} follows; what it divides by is read from the recorded {side}."
        ]
    if vector.turned:
        steps += ["Rotary positions then rotate pairs of its entries."]
    if not steps:
        return compared
    return f"{' '.join(steps)} This entry becomes {written(after)}. {compared}"


def _check(vector: Projected, side: Side) -> Check:
    apart = float(np.abs(vector.after - vector.recorded).max())
    return Check(
        f"Check: computed so, the {len(vector.bias)} entries of this {side} differ from the recorded ones "
        f"by at most {difference(apart)}.",
        apart,
    )
