"""Masks, measured on the head that is shown: two equal routes, and what a masked score becomes."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.softmax_experiments import MaskValueEffect, Precision, mask_value_effect, routes
from model.trace.arrays import Array, Mask
from viz.elements.one_of import one_of
from viz.figures.heatmap import Axis, heatmap
from viz.notation.numbers import counted, difference, power_of_ten
from viz.shell.pictures import chart, look_for, of_all_pairs, table
from viz.state.intervention_words import MASK_VALUES, mask_value_name
from viz.state.look import Look

ROUTES = (
    r"\text{softmax}(s + M)_{ij} = \frac{m_{ij}\, \text{softmax}(s)_{ij}}"
    r"{\sum_l m_{il}\, \text{softmax}(s)_{il}}"
)
MASK_VALUE = (
    r"w_{ij} = \frac{e^{\,\text{mask value}}}{\sum_l e^{\,\text{masked}_{il}}}"
    r"\qquad e^{-\infty} = 0, \quad e^{0} = 1"
)
ROOMY = 7  # up to so many rows and columns a cell has room for a power of ten
BEFORE, AFTER, APART = "Masked before", "Cut after", "Difference"


def _masked_head(seen: Look) -> tuple[Array, Mask]:
    """Raw scores of the shown head and a mask that leaves each row a key: the model's own, or a
    causal one where it hides nothing."""
    head = seen.head
    scores, own = seen.attention.scores(head), seen.attention.mask_of(head)
    if own is None or own.all() or not own.any(-1).all():
        st.caption(
            "This head's own mask hides nothing, or hides a whole row, so a causal mask is used "
            "here."
        )
        own = np.tri(*scores.shape, dtype=np.bool_)
    if any(
        part is not None for part in (seen.attention.cap, seen.attention.bias, seen.attention.sinks)
    ):
        st.caption("This head’s cap, bias and sink play no part here.")
    return scores, own


@of_all_pairs
def two_routes(seen: Look) -> None:
    """The future masked before the softmax, or cut away after it and the rows renormalized."""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        scores, mask = _masked_head(seen)
        factor = st.select_slider(
            "Scores times", (1, 2, 5, 10, 20, 50, 100), key="laboratory-stretch"
        )
        found = routes(scores * np.float32(seen.attention.scale * factor), mask)
        kind = one_of("Picture", (BEFORE, AFTER, APART), "laboratory-route", default=APART)
        st.latex(ROUTES)
        lost = int(found.lost.sum())
        st.markdown(
            f"Largest difference between the two routes: **{difference(found.difference)}**. "
            + (
                f"{lost} of {counted(len(mask), 'row')} {'is' if lost == 1 else 'are'} lost on "
                "the second one: in float32 all allowed weights of such a row became 0, and "
                "nothing is left to renormalize. The first route does not have this problem, which "
                "is why models use it."
                if lost
                else (
                    "They are equal up to rounding. Multiply the scores to see which one "
                    "breaks down."
                )
            )
        )
    apart = found.after - found.before
    drawn = {BEFORE: found.before, AFTER: found.after, APART: apart}[kind]
    queries, keys = seen.labels
    with picture:
        figure = heatmap(
            drawn,
            rows=Axis("query", queries),
            columns=Axis("key", keys),
            square=True,
            quantity="difference" if kind == APART else "weight",
            blocked=~mask,
            limit=max(float(np.abs(drawn).max()), 1e-7),
            words=_powers(drawn) if kind == APART else None,
        )
        if kind == APART:
            figure.data[-1].colorbar.tickformat = ".0e"
        chart(figure, f"laboratory-routes-{kind == APART}")
    columns = {
        "query": [str(at) for at in range(len(mask))],
        "largest difference": np.abs(apart).max(-1),
        "row lost": found.lost,
    }
    table(columns, "laboratory-routes", decimals=9)


def _powers(values: Array) -> list[list[str]]:
    """Very small numbers as words for the cells; nothing where there are too many for them."""
    if max(values.shape) > ROOMY:
        return []
    return [[power_of_ten(value, 1) for value in row] for row in values.tolist()]


@of_all_pairs
def mask_values_compared(seen: Look) -> None:
    """−∞, −1e9, −1e20 and 0, before and after scaling, in two precisions."""
    words, formula = st.columns([3, 2], gap="large")
    with formula:
        scores, mask = _masked_head(seen)
        precision: Precision = one_of("Computed in", ("float32", "float16"), "laboratory-precision")
        st.latex(MASK_VALUE)
    scale = seen.attention.scale
    found = [
        mask_value_effect(
            scores, mask, scale, mask_value, precision=precision, before_scaling=early
        )
        for mask_value in MASK_VALUES
        for early in (False, True)
    ]
    with words:
        look_for(
            "A mask value of 0 hides nothing, because e⁰ = 1. In float32 all large negative mask "
            "values give the same weights as −∞, whether they are set before or after scaling. "
            "They differ only in a row with every key masked: −∞ gives 0/0, a finite mask value "
            "gives a uniform row. float16 cannot represent −1e9."
        )
    st.dataframe(pd.DataFrame([_row(one) for one in found]), hide_index=True)
    st.caption(
        "Computed now by PyTorch on this head's scores. The app itself sets a row with every key "
        "masked to 0 and never divides 0 by 0."
    )


def _row(one: MaskValueEffect) -> dict[str, str]:
    refused = ", masked_fill refuses it" if one.refused else ""
    return {
        "mask value": mask_value_name(one.mask_value),
        "written": "before scaling" if one.before_scaling else "after scaling",
        f"as {one.precision}": f"{mask_value_name(one.stored)}{refused}",
        "largest weight on a masked key": f"{one.leaked:.4f}",
        "largest difference from −∞": difference(one.difference),
        "a row with every key masked": (
            "0/0, undefined" if one.empty is None else f"{one.empty:.4f} each"
        ),
    }
