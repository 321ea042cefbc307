"""The live part of the layer norm page: one norm of the model, token by token."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.stream.norms import token_statistics
from model.trace.arrays import Array
from viz.elements.one_of import one_of
from viz.figures.token_rows import colour_end
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import token_label
from viz.notation.theme import QuantityName
from viz.shell.page import chosen_view
from viz.shell.pictures import table
from viz.state.look import Look
from viz.views.norms import formulas as norm_formulas
from viz.views.norms.look import TOKEN, NormLook, choose_norm, norm_check, norm_rows
from viz.views.norms.others import beside, two_variances, where

STAGES = ("Input", "Normalized", "Output", "Per token")
FOUR_DECIMALS = st.column_config.NumberColumn(format="%.4f")


@st.fragment
def norm_views(seen: Look) -> None:
    """One norm, chosen by name: what it does, and how other norms would treat the same input."""
    chosen_view(VIEWS, choose_norm(seen))  # a click on a mark changes the choice: one fragment


def _this_norm(look: NormLook) -> None:
    st.markdown(f"**What to look for.** {_change_of_size(look)}")
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        stage = one_of("Stage", STAGES, "layer-norm-stage", quiet=True)
        if stage == "Per token":
            _statistics(look)
        else:
            _rows(look, stage)
    with formula:
        shifts = look.seen.model.config.shifts
        st.latex(norm_formulas.norm_in_general(look.norm, shifts=shifts))
        st.markdown(f"Token {look.chosen}, dimension {look.dimension}:")
        st.latex(
            norm_formulas.norm_in_numbers(look.norm, look.token, look.dimension, shifts=shifts)
        )
    norm_check(look.norm)
    table(_dimensions(look), "layer-norm-dimensions")


def _change_of_size(look: NormLook) -> str:
    """What the norm does to the tokens' sizes, in the numbers of this sentence."""
    centres = look.norm.kind == "layer"
    name = "deviation" if centres else "root mean square"
    before, after = (_sizes(values, centres) for values in (look.norm.input, look.norm.normalized))
    shifts = look.seen.model.config.shifts
    then = "γ and β then stretch and shift" if shifts else "γ then stretches"
    if len(before) == 1:
        return f"The token's {name} is {before[0]:.2f} before the norm, {after[0]:.2f} normalized."
    return (
        f"Before the norm the tokens' {name}s {_span(before)}; normalized, they {_span(after)}. {then} "
        "single dimensions."
    )


def _sizes(values: Array, centres: bool) -> np.ndarray:
    """(token,): what a norm divides by: the deviation, or the root mean square."""
    found = token_statistics(values)
    return found.deviation if centres else np.hypot(found.mean, found.deviation)


def _span(values: np.ndarray) -> str:
    """From the smallest to the largest, or one number where both are printed alike."""
    least, most = f"{values.min():.2f}", f"{values.max():.2f}"
    return f"are all {least}" if least == most else f"run from {least} to {most}"


def _rows(look: NormLook, stage: str) -> None:
    stages: dict[str, tuple[np.ndarray, QuantityName]] = {
        "Input": (look.norm.input, "stream"),
        "Normalized": (look.norm.normalized, "stream"),
        "Output": (look.norm.output, "output"),
    }
    values, quantity = stages[stage]
    norm_rows(look, values, quantity, f"layer-norm-{stage}", colour_end(values))


def _statistics(look: NormLook) -> None:
    """A row a token: mean, variance and deviation before, normalized and after."""
    frame = pd.DataFrame({"token": [token_label(token) for token in look.tokens]})
    stages = {
        "input": look.norm.input,
        "normalized": look.norm.normalized,
        "output": look.norm.output,
    }
    for name, values in stages.items():
        found = token_statistics(values)
        frame[f"{name}: mean"] = found.mean.round(6) + 0.0  # no "-0.0000"
        frame[f"{name}: variance"] = found.variance
        frame[f"{name}: deviation"] = found.deviation
    key = f"layer-norm-statistics-{look.token}"
    st.dataframe(
        sheltered_table(frame),
        key=key,
        on_select=partial(_take_row, key),
        selection_mode="single-row",
        column_config=dict.fromkeys(frame.columns[1:], FOUR_DECIMALS),
    )
    st.caption("Choose a row to fill the formula with that token's numbers.")


def _take_row(key: str) -> None:
    rows = st.session_state[key].selection.rows
    if rows:
        st.session_state[TOKEN] = int(rows[0])


def _dimensions(look: NormLook) -> pd.DataFrame:
    """The chosen token's row through every stage."""
    norm, token = look.norm, look.token
    return pd.DataFrame(
        {
            "input": norm.input[token],
            "normalized": norm.normalized[token],
            "γ": norm.gamma,
        }
        | ({"β": norm.beta} if look.seen.model.config.shifts else {})
        | {"output": norm.output[token]}
    ).rename_axis("dimension")


VIEWS: dict[str, Callable[[NormLook], None]] = {
    "This norm": _this_norm,
    "Two variances": two_variances,
    "RMS norm beside it": beside,
    "Where it stands": where,
}
