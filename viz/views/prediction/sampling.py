"""Temperature, top-k and top-p as controls, and what they do in words."""

import numpy as np
import streamlit as st

from model.analysis.tokens.prediction import Distribution, Sampling, temperature, top_k
from model.trace.arrays import Array
from viz.notation.numbers import probability

UNCHANGED = Sampling()
_DEFAULTS = {
    "prediction-temperature": UNCHANGED.temperature,
    "prediction-top-k": UNCHANGED.top_k,
    "prediction-top-p": UNCHANGED.top_p,
}


def sampling_controls(vocabulary: int) -> Sampling:
    """The three controls in the order in which they apply, and the way back. The link holds them."""
    divisor = st.slider(
        "Temperature",
        0.1,
        3.0,
        value=1.0,
        step=0.1,
        key="prediction-temperature",
        bind="query-params",
        help="Divides every logit. Below 1 the likely tokens gain, above 1 the unlikely ones.",
    )
    count = st.number_input(
        "Top-k: number of tokens to keep",
        1,
        value=None,
        step=1,
        placeholder="all",
        key="prediction-top-k",
        bind="query-params",
        help="Keeps only the k most likely tokens. Leave it empty to keep all.",
    )
    share = st.slider(
        "Top-p: share to keep",
        0.05,
        1.0,
        value=1.0,
        step=0.05,
        key="prediction-top-p",
        bind="query-params",
        help=(
            "Keeps the smallest set of likely tokens whose probabilities add up to this share. "
            "1 keeps all."
        ),
    )
    chosen = Sampling(divisor, None if count is None else min(int(count), vocabulary), share)
    if chosen != UNCHANGED:
        st.button("Reset to the model's own distribution", key="prediction-back", on_click=_back)
    return chosen


def in_words(chosen: Sampling, logits: Array, error: float) -> list[str]:
    """A sentence for each of the three: what it does to this row of logits, (vocabulary,). error: how
    far rounding may move the logarithm of what is drawn with."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    said = [
        "Temperature 1 leaves the probabilities as they are.",
        "Top-k is off: all tokens are kept.",
        "Top-p is off: no share is cut.",
    ]
    if chosen.temperature != 1:
        divisor, gain = (
            f"{chosen.temperature:g}",
            "Likely" if chosen.temperature < 1 else "Unlikely",
        )
        said[0] = f"Temperature {divisor} divides every logit by {divisor}. {gain} tokens gain."
    if chosen.top_k is not None:
        kept, held = _kept(warmed, cut, error)
        said[1] = (
            f"Top-k keeps {kept} of {len(cut):,} tokens. Together they had a probability of {held}."
        )
    if chosen.top_p != 1:
        kept, held = _kept(cut, chosen.of(logits), error)
        said[2] = (
            f"Top-p keeps the smallest set of likely tokens that has at least {chosen.top_p:g}: "
            f"{kept} of {np.count_nonzero(cut):,}, which have {held}."
        )
    return said


def _kept(before: Distribution, after: Distribution, error: float) -> tuple[str, str]:
    """How many tokens stay, and what they held before."""
    stays = after > 0
    return f"{np.count_nonzero(stays):,}", probability(before[stays].sum(), error)


def _back() -> None:
    st.session_state.update(_DEFAULTS)
