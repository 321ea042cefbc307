"""The choice of a norm, a token and a dimension, and what the views of the layer norm page share."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.stream.norms import kernel_check
from model.nn.places import Place
from model.trace.records import NormRecord
from viz.elements.one_of import keep_within, one_listed
from viz.figures.heatmap import Axis
from viz.figures.token_rows import ColourEnd
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.notation.names import norm_name
from viz.notation.numbers import difference
from viz.notation.theme import QuantityName
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


def choose_norm(seen: Look) -> NormLook:
    """At first the norm whose tokens differ most in deviation: there is most to see in it."""
    norms = {norm.name: norm for norm in seen.trace.norms}
    uneven = [one.inverse_deviation.max() / one.inverse_deviation.min() for one in norms.values()]
    titles = {name: _title(seen, name) for name in norms}
    which, token_box, dimension_box = st.columns([2, 2, 1])
    name = which.selectbox(
        "Norm",
        list(norms),
        index=int(np.argmax(uneven)),
        format_func=titles.__getitem__,
        key=NORM,
    )
    norm = norms[name]
    tokens = [token.text for token in seen.trace.tokens_of(Place.named(name).stack)]
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN, box=token_box)
    width = norm.input.shape[1]
    keep_within(DIMENSION, width)
    dimension = dimension_box.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION)
    return NormLook(seen, norm, tokens, token, dimension)


def _title(seen: Look, name: str) -> str:
    return norm_name(name, seen.model.config.norm_place, stacks=len(seen.trace.residual))


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


def norm_check(norm: NormRecord) -> None:
    found = kernel_check(norm)
    mean = f"the kernel's own mean differs by at most {difference(found.mean)}, its 1/√(σ²+ε)"
    size = mean if norm.kind == "layer" else "the recorded 1/√(ms+ε) differs"
    said = (
        f"Check: recomputed in double precision from the recorded input, {size} by a share of at most "
        f"{difference(found.inverse_deviation)}"
    )
    if found.output is not None:
        said += f", the recorded output by at most {difference(found.output)}"
    st.caption(f"{said}.")
