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
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.numbers import number as written
from viz.shell.controls import LISTED
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look
from viz.state.session import current

SIDES: dict[Side, str] = {"query": "Query", "key": "Key", "value": "Value"}
_LETTERS: dict[Side, str] = {"query": "q", "key": "k", "value": "v"}
DIMENSION = "attention-dimension"
_TERMS = 3  # products that the formula writes out


def sum_of_products(seen: Look) -> None:
    """One entry of the chosen head's query, key or value."""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        said = st.container()
        side = one_of("Vector", list(SIDES), "attention-vector", named=SIDES.__getitem__)
        left, right = st.columns([3, 2])
        queries, keys = seen.labels
        texts = queries if side == "query" else keys
        asked = current().query if side == "query" else current().key
        with left:
            token = one_listed(
                "Token",
                numbered_labels(texts, LISTED),
                f"attention-{side}-{seen.place}-{len(texts)}",
                first=min(asked, len(texts) - 1),
            )
        width = seen.attention.vectors[2 if side == "value" else 0].shape[-1]
        keep_within(DIMENSION, width)
        dimension = int(right.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION))
    try:
        found = projected(seen.model, seen.trace, seen.place, seen.head, token, side)
    except ValueError as refusal:
        picture.info(plain(str(refusal)))
        return
    letter = _LETTERS[side]
    with picture:
        figure = projection(
            found.x,
            found.matrix,
            found.bias,
            found.sums,
            dimension=dimension,
            marked=_largest(found, dimension),
            quantity=side,
            letters=(letter, f"W_{letter.upper()}"),
        )
        chart(figure, f"attention-products-{side}")
    look_for(_look(seen, found, side, dimension), said)
    with words:
        st.latex(_formula(found, letter, token, dimension))
        _say_the_rest(found, side, dimension)
    columns = {
        "x": found.x,
        f"W_{letter.upper()}": found.matrix[dimension],
        "product": found.products(dimension),
    }
    table(columns, f"attention-products-{side}", index="dimension of x")


def _look(seen: Look, found: Projected, side: Side, dimension: int) -> str:
    products = np.abs(found.products(dimension))
    half = int(np.searchsorted(np.cumsum(np.sort(products)[::-1]), products.sum() / 2)) + 1
    attention = seen.attention
    heads, keys = attention.heads, len(attention.vectors[1])
    shared = heads // keys
    own = "its own part of the matrix"
    if side != "query" and shared > 1:
        own = f"the part of one of {keys} heads of keys and values, which {shared} heads share"
    return (
        "Each number of x is multiplied by the one below it, and the products of a row add up to one entry. "
        f"This head has {own}: {len(found.bias)} rows of {len(found.x)}. Of the {len(products)} products of "
        f"this entry the {half} largest hold half of the total size. Triangles mark the ones that the "
        "formula writes out."
    )


def _largest(found: Projected, dimension: int) -> list[int]:
    """The products that the formula writes out, the largest first."""
    sizes = np.abs(found.products(dimension))
    return np.argsort(-sizes, kind="stable")[:_TERMS].tolist()


def _formula(found: Projected, letter: str, token: int, dimension: int) -> str:
    """The sum, with its largest products first."""
    products = found.products(dimension)
    terms = [
        rf"{factor(found.x[at])} \cdot {factor(found.matrix[dimension, at])}"
        for at in _largest(found, dimension)
    ]
    more = r" + \cdots" if len(products) > _TERMS else ""
    matrix, bias = rf"W_{{c,{dimension}}}", float(found.bias[dimension])
    has_bias = bool(found.bias.any())
    general = rf"\sum_c x_c\, {matrix}" + (rf" + b_{{{dimension}}}" if has_bias else "")
    total, result = float(products.sum()), float(found.sums[dimension])
    lines = [rf"{letter}_{{{token},{dimension}}} &= {general}"]
    lines += ["&= " + r" \\ &\quad + ".join(terms) + more]
    if has_bias:
        end = f"{number(total)} + {factor(bias)}"
        lines += [rf"&= {end}", rf"&{sign(end, number(result))} \mathbf{{{number(result)}}}"]
    else:
        lines += [rf"&= \mathbf{{{number(result)}}}"]
    return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def _say_the_rest(found: Projected, side: Side, dimension: int) -> None:
    """What follows the sum, and how far it is from the number that the model used."""
    recorded, after = float(found.recorded[dimension]), float(found.after[dimension])
    said = f"The model recorded **{written(recorded)}**; difference {difference(abs(after - recorded))}."
    follows = [
        *(
            [f"A norm of the {side} follows; what it divides by is read from the recorded {side}."]
            if found.normed
            else []
        ),
        *(["Rotary positions then rotate pairs of its entries."] if found.turned else []),
    ]
    if follows:
        said = f"{' '.join(follows)} This entry becomes {written(after)}. {said}"
    st.markdown(said)
    apart = float(np.abs(found.after - found.recorded).max())
    st.caption(
        f"Check: computed so, the {len(found.bias)} entries of this {side} differ from the recorded ones "
        f"by at most {difference(apart)}."
    )
