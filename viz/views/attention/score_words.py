"""How a score is a sum of parts, and what the model makes of it then."""

import streamlit as st

from model.nn.stages import SCORE_STAGES, SINKS, STAGES
from model.trace.records import Attention
from viz.notation.head_formulas import SCORE_PARTS
from viz.state.look import Look


def how_a_score_adds_up(seen: Look) -> None:
    """The formula, and why the parts add up."""
    st.latex(SCORE_PARTS)
    config = seen.model.config
    held = config.norm_law.taken
    turned = (
        " Rotary positions rotate each part of a query or key by the angles of its own token."
        if seen.attention.projection.turned
        else ""
    )
    st.markdown(
        "A token's vector is the sum of all that was written to its stream. Each norm on the way is "
        f"linear once the {held} of this run are held fixed, and so are the maps to query and key. So "
        f"each part of a query meets each part of a key on its own.{turned} {_after(seen.attention)}"
    )


def _after(attention: Attention) -> str:
    """What becomes of the score, and what its row's mean is for."""
    later = [stage for stage in SCORE_STAGES if stage.is_in(attention)]
    steps = ["multiplies the score by its scale", *(one.does(one.of(attention)) for one in later)]
    of_row = "the row with the head's sink" if SINKS.is_in(attention) else "the row"
    said = f"The model {', '.join(steps)} and takes the softmax of {of_row}."
    for stage in STAGES:
        if stage.note and stage.is_in(attention):
            return f"{said} {stage.note}"
    return (
        f"{said} A number added to all scores of a row changes no weight: what raises a key above the "
        "others is its score minus the row's mean."
    )
