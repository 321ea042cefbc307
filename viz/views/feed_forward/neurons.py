"""The neurons of a feed-forward layer, and where on the activation curve their values lie."""

from collections.abc import Callable, Mapping

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.stream.feed_forward import (
    CURVES,
    ActivationCurve,
    Function,
    activation_check,
    bends,
    flat_share,
    histogram,
    neuron_statistics,
    strongest,
)
from model.nn.config import Activation
from model.nn.places import Place
from model.trace.records import FeedForwardRecord
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_listed, one_of
from viz.figures.curves import (
    ActivationLine,
    activation_curves,
    curve_over_values,
    points_on_the_curve,
)
from viz.figures.heatmap import Axis
from viz.figures.vectors import colour_end
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted, difference, signed
from viz.shell.controls import LISTED, choosable_rows
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look
from viz.views.feed_forward import formulas
from viz.views.feed_forward.sublayers import one_sublayer

TOKEN = "feed-forward-token"
SHOWN = 24  # neurons in the picture
BENT = 0.01  # by less an activation bends nothing that is worth a look
_READ: dict[str, Callable[[ActivationCurve], Function]] = {
    "Value": lambda curve: curve.value,
    "Slope": lambda curve: curve.slope,
}


@st.fragment
def activation_view() -> None:
    """GELU exact and by tanh, ReLU, and SwiGLU for a chosen value of its second map."""
    shown = one_of("Curves", list(_READ), "feed-forward-curves")
    content = st.slider("Second map's value in SwiGLU", -2.0, 2.0, 1.0, 0.5, key="swiglu-content")
    read = _READ[shown]
    lines = [
        ActivationLine(CURVES[name].title, read(CURVES[name]))
        for name in ("gelu", "gelu_tanh", "relu")
    ]
    gate = read(CURVES["swiglu"])
    lines.append(ActivationLine(f"SwiGLU: SiLU(x) · {content:g}", lambda x: gate(x) * content))
    chart(activation_curves(lines, what=shown.lower()), "feed-forward-activations")


@st.fragment
@error_boundary()
def neurons(seen: Look) -> None:
    """Token × strongest neurons of one layer. It opens on a token with a neuron that the activation bends."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        layer_box, token_box = st.columns([3, 2], gap="small")
        with layer_box:
            record = chosen_layer(seen)
    if record is None:
        return
    listed = strongest(record.hidden, SHOWN)
    bent = bends(seen.model.config.activation, record.before[:, listed])
    tokens = tokens_of(seen, record)
    with words:
        labels = numbered_labels(tokens, LISTED)
        found = neuron_statistics(record)
        peak, loudest = found.peak
        first = int(bent.max(1).argmax()) if bent.max() > BENT else peak
        token = one_listed("Token", labels, TOKEN, first=first, box=token_box)
    look_for(
        "Which neurons have large activations, and on which tokens? The largest here is that of "
        f"neuron {loudest} on token {peak} {bold_token(tokens[peak])} with "
        f"{signed(f'{found.peak_value:.2f}')}; the mean |activation| over all neurons "
        f"and tokens is {found.mean_size:.3f}.",
        said,
    )
    count = record.hidden.shape[1]
    with picture:
        _rows_of(record, tokens, listed)
    with words:
        named = f"Token {token} {bold_token(tokens[token])}"
        shown = {
            f"{named}, its neuron with the largest activation": int(
                np.abs(record.hidden[token]).argmax()
            )
        }
        if bent[token].max() > BENT:
            most = int(listed[bent[token].argmax()])
            shown["Of the neurons shown, the one that the activation changes most here"] = most
        _in_numbers(seen, record, token, shown)
        st.latex(formulas.feed_forward(seen.model.config))
        st.markdown(
            f"Before the activation the mean over all {count:,} neurons and "
            f"{counted(len(tokens), 'token')} is {signed(f'{found.mean_before:.3f}')}, and "
            f"**{found.below_zero:.1%}** of the values lie below 0."
        )
    _check(seen.model.config.activation, record)
    columns = {f"neuron {n}": record.hidden[:, n] for n in listed}
    table({"token": numbered_labels(tokens), **columns}, "feed-forward-neurons")


def _rows_of(record: FeedForwardRecord, tokens: list[str], listed: NDArray[np.intp]) -> None:
    """Token × listed neurons, with marks that choose the token."""
    rule = (
        f"the {len(listed)} of {record.hidden.shape[1]:,} neurons with the largest<br>"
        "|activation| on any token, largest first"
    )
    values = record.hidden[:, listed]
    choosable_rows(
        values,
        tokens=tokens,
        columns=Axis(rule, [str(n) for n in listed], tokens=False),
        quantity="stream",
        end=colour_end(values),
        key="feed-forward-neurons",
        chosen=TOKEN,
    )


def _in_numbers(
    seen: Look, record: FeedForwardRecord, token: int, shown: Mapping[str, int]
) -> None:
    """The activation of some neurons of a token, in numbers and on its curve. shown: what is said of each."""
    activation = seen.model.config.activation
    for said, neuron in shown.items():
        before, hidden = (float(each[token, neuron]) for each in (record.before, record.hidden))
        st.markdown(f"{said}, {neuron}:")
        st.latex(formulas.activation_in_numbers(activation, before, hidden))
    points = {f"neuron {n}": float(record.before[token, n]) for n in dict.fromkeys(shown.values())}
    chart(points_on_the_curve(CURVES[activation], points), "feed-forward-bend")


def chosen_layer(seen: Look) -> FeedForwardRecord | None:
    """The layer of a list; None, with a sentence, where the model has no feed-forward layers."""
    records = {record.name: record for record in seen.trace.feed_forward}
    if not records and seen.trace.experts:
        st.info(
            "The feed-forward layers of this model are made of experts, each with neurons of its own, which "
            "are not recorded. The view Experts shows which of them read each token."
        )
        return None
    if not records:
        st.info(
            "This model has attention only: no feed-forward layers. Stories and MiniLM have them."
        )
        return None
    return records[one_sublayer("Layer", list(records), seen, "feed-forward-layer")]


def tokens_of(seen: Look, record: FeedForwardRecord) -> list[str]:
    tokens = seen.trace.tokens_of(Place.named(record.name).stack)
    return [token.text for token in tokens]


def _check(activation: Activation, record: FeedForwardRecord) -> None:
    found = activation_check(activation, record.before, record.hidden)
    if found is None:
        st.caption(
            "The value of the gate is multiplied by that of a second map; the view “Contributions” "
            "checks both."
        )
        return
    st.caption(
        f"Check: the activation of all {record.before.size:,} recorded values, recomputed in double "
        f"precision, differs from the recorded one by at most {difference(found)}."
    )


@st.fragment
@error_boundary()
def on_the_curve(seen: Look) -> None:
    """The model's own activation over the values it met in this sentence."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        record = chosen_layer(seen)
    if record is None:
        return
    activation = seen.model.config.activation
    curve, met = CURVES[activation], histogram(record.before)
    found = neuron_statistics(record)
    look_for(
        f"{found.below_zero:.1%} of the values arrive below 0, where "
        f"{plain(curve.title.partition(',')[0])} lets little or nothing through.",
        said,
    )
    with picture:
        chart(curve_over_values(curve, met), "feed-forward-curve")
    with words:
        st.latex(curve.latex)
        st.markdown(
            "Where the slope is near 0, hardly any gradient comes back. The slope lies between −0.05 "
            f"and 0.05 at **{flat_share(activation, record.before):.1%}** of the values."
        )
    _check(activation, record)
    columns = {
        "from": met.edges[:-1],
        "to": met.edges[1:],
        "share of the values, %": 100 * met.shares,
    }
    table(columns, "feed-forward-curve")
