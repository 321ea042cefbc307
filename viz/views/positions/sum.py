"""Token vector plus position vector: what the first layer starts from."""

import numpy as np
import streamlit as st

from model.analysis.stream.positions import Sum, summed
from viz.figures.vectors import NAMES, summands
from viz.notation.numbers import difference
from viz.shell.controls import pick_token
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look
from viz.views.positions.formulas import sum_of

WITHOUT = {
    "rotary": (
        "This model adds no positions: it rotates its queries and keys instead. So the first "
        "state is the token's vector alone."
    ),
    **dict.fromkeys(
        ("alibi", "buckets", "disentangled"),
        "This model adds no positions to its tokens: they are added to the scores. So the first state "
        "is the token's vector alone.",
    ),
    "none": "This model has no positions at all. So the first state is the token's vector alone.",
}


def position_sum(seen: Look) -> None:
    """One token's vector, its position's, and their sum, checked against the recorded state."""
    found = summed(seen.trace)
    picture, formula = st.columns([3, 2], gap="large")
    with formula:
        look_for(_look(seen, found))
        place = pick_token(seen.trace.tokens, "positions-sum")
        st.latex(sum_of(tuple(found.parts), scaled=seen.model.config.scaled_embedding))
        total = found.total[place]
        names = {
            "tokens": "the token's vector",
            "positions": "its position's",
            "segments": "segment's",
        }
        lengths = ", ".join(
            f"{names[name]} {np.linalg.norm(values[place]):.3f}"
            for name, values in found.parts.items()
        )
        st.caption(f"Lengths: {lengths}, the sum {np.linalg.norm(total):.3f}.")
    parts = {name: values[place] for name, values in found.parts.items()}
    with picture:
        chart(summands(parts, total), "positions-sum-picture")
        where = "what the norm after the embeddings reads" if found.into else "the first state"
        st.caption(
            f"Check: over all tokens and dimensions the recomputed sum differs from {where}, as "
            f"recorded in this pass, by at most {difference(found.check())}."
        )
    columns = {NAMES[name]: values for name, values in parts.items()} | {"= sum": total}
    table(columns, "positions-sum", index="dimension")


def _look(seen: Look, found: Sum) -> str:
    if "positions" not in found.parts:
        return WITHOUT[seen.model.config.positions]
    said = (
        "The same token at another position gets a different sum, because a different row is "
        "added. From here on word and position are one vector."
    )
    if "segments" in found.parts:
        said += " The segment tells the two sentences of a pair apart; here there is only one."
    return said
