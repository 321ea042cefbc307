"""The choice of a norm, a token and a dimension, and what the views of the layer norm page share."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from model.config import Stack
from model.norms import kernel_check
from model.trace import NormRecord
from viz.axes import token_label
from viz.differences import difference
from viz.figures.heatmap import Axis
from viz.figures.token_rows import ColourEnd, token_rows
from viz.markdown import plain
from viz.places import norm_name
from viz.shell import Look
from viz.theme import QuantityName

TOKEN, DIMENSION, NORM = "layer-norm-token", "layer-norm-dimension", "layer-norm-norm"


@dataclass(frozen=True)
class NormLook:
    """The chosen norm, and the token and dimension whose numbers fill its formula."""

    seen: Look
    norm: NormRecord
    tokens: list[str]
    token: int
    dimension: int

    @property
    def title(self) -> str:
        return _title(self.seen, self.norm.name)

    @property
    def chosen(self) -> str:
        """The chosen token, safe in Markdown."""
        return f"{self.token} **{plain(token_label(self.tokens[self.token]))}**"

    @property
    def columns(self) -> Axis:
        width = self.norm.input.shape[1]
        return Axis("dimension", [str(dimension) for dimension in range(width)], tokens=False)


def choose_norm(seen: Look) -> NormLook:
    norms = {norm.name: norm for norm in seen.trace.norms}
    which, token_box, dimension_box = st.columns([2, 2, 1])
    name = which.selectbox(
        "Norm",
        list(norms),
        index=list(norms).index(_most_uneven(seen)),
        format_func=partial(_title, seen),
        key=NORM,
    )
    norm = norms[name]
    tokens = [token.text for token in seen.trace.tokens_of(_stack(name))]
    _keep_within(TOKEN, len(tokens))
    token = token_box.selectbox(
        "Token",
        range(len(tokens)),
        format_func=lambda position: f"{position} {token_label(tokens[position], 24)}",
        key=TOKEN,
    )
    width = norm.input.shape[1]
    _keep_within(DIMENSION, width)
    dimension = dimension_box.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION)
    return NormLook(seen, norm, tokens, token, dimension)


def _stack(norm: str) -> Stack:
    return "encoder" if norm.startswith("encoder.") else "decoder"


def _title(seen: Look, name: str) -> str:
    return norm_name(name, seen.model.config.norm_place, stacks=len(seen.trace.states))


def _most_uneven(seen: Look) -> str:
    """The norm whose tokens differ most in deviation: there is most to see in it."""
    spreads = {
        norm.name: float(norm.inverse_deviation.max() / norm.inverse_deviation.min())
        for norm in seen.trace.norms
    }
    return max(spreads, key=lambda name: spreads[name])


def _keep_within(key: str, count: int) -> None:
    """A choice that another sentence or model no longer has goes back to the first."""
    if st.session_state.get(key, 0) >= count:
        st.session_state[key] = 0


def choosable_rows(
    look: NormLook, values: np.ndarray, quantity: QuantityName, name: str, end: ColourEnd
) -> None:
    """Token rows whose marks choose the token."""
    figure = token_rows(
        values,
        tokens=look.tokens,
        columns=look.columns,
        quantity=quantity,
        end=end,
        chosen=look.token,
    )
    key = f"{name}-{look.token}"  # a new picture for each choice, with nothing selected in it
    st.plotly_chart(
        figure,
        key=key,
        on_select=partial(_take_mark, key),
        selection_mode="points",
        config={"displayModeBar": False},
    )


def _take_mark(key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        st.session_state[TOKEN] = int(points[0]["point_index"])


def norm_check(norm: NormRecord) -> None:
    found = kernel_check(norm)
    output = (
        ""
        if found.output is None
        else f", the recorded output by at most {difference(found.output)}"
    )
    st.caption(
        "Check: recomputed in double precision from the recorded input, the kernel's own mean "
        f"differs by at most {difference(found.mean)}, its 1/√(σ²+ε) by a share of at most "
        f"{difference(found.inverse_deviation)}{output}."
    )
