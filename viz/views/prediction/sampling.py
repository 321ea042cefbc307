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
        help="Every logit is divided by it. Below 1 the likely tokens gain, above 1 the others.",
    )
    count = st.number_input(
        "Top-k: how many tokens stay",
        1,
        value=None,
        step=1,
        placeholder="all",
        key="prediction-top-k",
        bind="query-params",
        help="Only the k likeliest tokens stay. Leave it empty to keep them all.",
    )
    share = st.slider(
        "Top-p: the share that stays",
        0.05,
        1.0,
        value=1.0,
        step=0.05,
        key="prediction-top-p",
        bind="query-params",
        help="The fewest likely tokens that together hold this share stay. 1 keeps them all.",
    )
    chosen = Sampling(divisor, None if count is None else min(int(count), vocabulary), share)
    if chosen != UNCHANGED:
        st.button("Back to the model's own", key="prediction-back", on_click=_back)
    return chosen


def in_words(chosen: Sampling, logits: Array, error: float) -> list[str]:
    """A sentence for each of the three: what it does to this row of logits, (vocabulary,). error: how
    far rounding may move the logarithm of what is drawn with."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    return [
        _temperature_in_words(chosen.temperature),
        _top_k_in_words(chosen.top_k, warmed, cut, error),
        _top_p_in_words(chosen.top_p, cut, chosen.of(logits), error),
    ]


def _temperature_in_words(divisor: float) -> str:
    if divisor == 1:
        return "Temperature 1 leaves the probabilities as they are."
    gain = "Likely tokens gain" if divisor < 1 else "Unlikely tokens gain"
    return f"Temperature {divisor:g} divides every logit by {divisor:g}. {gain}."


def _top_k_in_words(
    count: int | None, before: Distribution, after: Distribution, error: float
) -> str:
    if count is None:
        return "Top-k is off: all tokens stay."
    held = probability(before[after > 0].sum(), error)
    return f"Top-k keeps {_kept(after):,} of {len(after):,} tokens. They held {held} together."


def _top_p_in_words(share: float, before: Distribution, after: Distribution, error: float) -> str:
    if share == 1:
        return "Top-p is off: no share is cut."
    held = probability(before[after > 0].sum(), error)
    return (
        f"Top-p keeps the fewest likely tokens that hold at least {share:g}: "
        f"{_kept(after):,} of {_kept(before):,}, which held {held}."
    )


def _kept(distribution: Distribution) -> int:
    return int(np.count_nonzero(distribution))


def _back() -> None:
    st.session_state.update(_DEFAULTS)
