"""Temperature, top-k and top-p as controls that stay as they are while their page is left."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import streamlit as st

from model.prediction import Distribution, Sampling, temperature, top_k
from model.trace import Array

_STATE = "prediction-sampling"
UNCHANGED = Sampling()


def sampling() -> Sampling:
    """What the reader has chosen, or the model's own probabilities."""
    chosen: Sampling = st.session_state.get(_STATE, UNCHANGED)
    return chosen


def sampling_controls(vocabulary: int) -> Sampling:
    """The three controls in the order in which they apply, and the way back."""
    chosen = sampling()
    key = _shown("temperature", chosen.temperature)
    st.slider(
        "Temperature",
        0.1,
        3.0,
        step=0.1,
        key=key,
        on_change=_changed("temperature"),
        help="Every logit is divided by it. Below 1 the likely tokens gain, above 1 the others.",
    )
    key = _shown("top_k", None if chosen.top_k is None else min(chosen.top_k, vocabulary))
    st.number_input(
        "Top-k: how many tokens stay",
        1,
        vocabulary,
        value=None,
        step=1,
        placeholder="all",
        key=key,
        on_change=_changed("top_k"),
        help="Only the k likeliest tokens stay. Leave it empty to keep them all.",
    )
    key = _shown("top_p", chosen.top_p)
    st.slider(
        "Top-p: the share that stays",
        0.05,
        1.0,
        step=0.05,
        key=key,
        on_change=_changed("top_p"),
        help="The fewest likely tokens that together hold this share stay. 1 keeps them all.",
    )
    if chosen != UNCHANGED:
        st.button("Back to the model's own", key="prediction-back", on_click=_back)
    return chosen


def in_words(chosen: Sampling, logits: Array) -> list[str]:
    """A sentence for each of the three: what it does to this row of logits, (vocabulary,)."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    return [
        _temperature_in_words(chosen.temperature),
        _top_k_in_words(chosen.top_k, warmed, cut),
        _top_p_in_words(chosen.top_p, cut, chosen.of(logits)),
    ]


def _temperature_in_words(divisor: float) -> str:
    if divisor == 1:
        return "Temperature 1 leaves the probabilities as they are."
    gain = "Likely tokens gain" if divisor < 1 else "Unlikely tokens gain"
    return f"Temperature {divisor:g} divides every logit by {divisor:g}. {gain}."


def _top_k_in_words(count: int | None, before: Distribution, after: Distribution) -> str:
    if count is None:
        return "Top-k is off: all tokens stay."
    held = before[after > 0].sum()
    return f"Top-k keeps {_kept(after):,} of {len(after):,} tokens. They held {held:.4f} together."


def _top_p_in_words(share: float, before: Distribution, after: Distribution) -> str:
    if share == 1:
        return "Top-p is off: no share is cut."
    held = before[after > 0].sum()
    return (
        f"Top-p keeps the fewest likely tokens that hold at least {share:g}: "
        f"{_kept(after):,} of {_kept(before):,}, which held {held:.4f}."
    )


def _kept(distribution: Distribution) -> int:
    return int(np.count_nonzero(distribution))


def _shown(field: str, value: float | None) -> str:
    """Puts a value into the widget of a field; its key."""
    key = f"prediction-{field}"
    st.session_state[key] = value
    return key


def _changed(field: str) -> Callable[[], None]:
    def change() -> None:
        value = st.session_state[f"prediction-{field}"]
        st.session_state[_STATE] = replace(sampling(), **{field: value})

    return change


def _back() -> None:
    st.session_state[_STATE] = UNCHANGED
