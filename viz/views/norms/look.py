"""The choice of a norm, a token and a dimension, and what the views of the layer norm page share."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.analysis.stream.norms import kernel_check, token_statistics
from model.nn.places import Place
from model.trace.arrays import Array
from model.trace.records import NormRecord
from viz.elements.one_of import keep_within, one_listed
from viz.elements.plot import plot
from viz.figures.bars import Spread, spread_bars
from viz.figures.heatmap import Axis
from viz.figures.vectors import ColourEnd
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.notation.names import norm_name
from viz.notation.numbers import difference
from viz.notation.theme import QuantityName
from viz.saving.save import save_figure
from viz.shell.token_select import LISTED, choosable_rows
from viz.state.look import Look

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
        return f"{self.token} {bold_token(self.tokens[self.token])}"


class Opened(NamedTuple):
    """The chosen norm, and where things go: the picture on the left, beside it what to look for, and
    below that the formula."""

    look: NormLook
    picture: DeltaGenerator
    said: DeltaGenerator
    formula: DeltaGenerator


def open_norm(seen: Look) -> Opened:
    """Places for a picture and for the words beside it, where the norm is chosen."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        look = _choose_norm(seen)
        return Opened(look, picture, said, st.container())


def _choose_norm(seen: Look) -> NormLook:
    """At first the norm whose tokens differ most in deviation: there is most to see in it."""
    norms = {norm.name: norm for norm in seen.trace.norms}
    uneven = [one.inverse_deviation.max() / one.inverse_deviation.min() for one in norms.values()]
    titles = {name: _title(seen, name) for name in norms}
    name = st.selectbox(
        "Norm",
        list(norms),
        index=int(np.argmax(uneven)),
        format_func=titles.__getitem__,
        key=NORM,
    )
    norm = norms[name]
    token_box, dimension_box = st.columns([3, 2])
    tokens = [token.text for token in seen.trace.tokens_of(Place.named(name).stack)]
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN, box=token_box)
    width = norm.input.shape[1]
    keep_within(DIMENSION, width)
    dimension = dimension_box.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION)
    return NormLook(seen, norm, tokens, token, dimension)


def _title(seen: Look, name: str) -> str:
    return norm_name(name, seen.model.config.norm_place, stacks=len(seen.trace.stacks))


def norm_rows(
    look: NormLook, values: NDArray[np.floating], quantity: QuantityName, key: str, end: ColourEnd
) -> None:
    """values (token, dimension), with marks that choose the token."""
    width = [str(dimension) for dimension in range(values.shape[1])]
    choosable_rows(
        values,
        tokens=look.tokens,
        columns=Axis("dimension", width, tokens=False),
        quantity=quantity,
        end=end,
        key=key,
        chosen=TOKEN,
    )


def spread_of(norm: NormRecord, values: Array) -> Spread:
    """What a norm measures of each token: mean and deviation, or the root mean square around 0."""
    found = token_statistics(values)
    if norm.kind == "layer":
        return Spread(found.mean, found.deviation)
    return Spread(np.zeros_like(found.mean), np.hypot(found.mean, found.deviation))


def norm_spread(look: NormLook) -> None:
    """How widely each token's numbers are spread, before and after; a click chooses the token."""
    norm = look.norm
    before, after = (spread_of(norm, values) for values in (norm.input, norm.normalized))
    measure = "mean ± deviation" if norm.kind == "layer" else "± root mean square"
    figure = spread_bars(before, after, tokens=look.tokens, chosen=look.token, measure=measure)

    def take(token: int) -> None:
        st.session_state[TOKEN] = token

    plot(figure, f"layer-norm-spread-{look.token}", clicked=take)
    save_figure(lambda: figure, "layer-norm-spread")


def norm_check(norm: NormRecord) -> None:
    found = kernel_check(norm)
    mean = f"the kernel's own mean differs by at most {difference(found.mean)}, its 1/√(σ²+ε)"
    size = mean if norm.kind == "layer" else "the recorded 1/√(ms+ε) differs"
    said = (
        f"Check: recomputed in double precision from the recorded input, {size} by a relative "
        f"error of at most {difference(found.inverse_deviation)}"
    )
    if found.output is not None:
        said += f", the recorded output by at most {difference(found.output)}"
    st.caption(f"{said}.")
