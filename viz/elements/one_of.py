"""A choice of one among a few, side by side."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

Option = TypeVar("Option")


def one_of(
    label: str,
    options: Sequence[Option],
    key: str,
    *,
    default: Option | None = None,
    named: Callable[[Option], str] = str,
    box: DeltaGenerator | None = None,
    quiet: bool = False,
) -> Option:
    """The option that is chosen: `default`, or the first, until another one is.

    quiet: the label is there for screen readers only.
    """
    draw = st.segmented_control if box is None else box.segmented_control
    return draw(
        label,
        options,
        default=options[0] if default is None else default,
        required=True,
        format_func=named,
        key=key,
        label_visibility="collapsed" if quiet else "visible",
    )
