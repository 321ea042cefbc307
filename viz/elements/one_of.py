"""A choice of one: among a few side by side, in a list, or in a table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import streamlit as st

from viz.notation.csv_safe import sheltered_table
from viz.state.session import choice, switch

if TYPE_CHECKING:
    import pandas as pd

Option = TypeVar("Option")


def one_of(
    label: str,
    options: Sequence[Option],
    key: str,
    *,
    default: Option | None = None,
    named: Callable[[Option], str] = str,
    quiet: bool = False,
    bind: Literal["query-params"] | None = None,
) -> Option:
    """The option that is chosen: `default`, or the first, until another one is.

    quiet: the label is there for screen readers only. bind: the choice stands in the link.
    """
    return st.segmented_control(
        label,
        options,
        default=options[0] if default is None else default,
        required=True,
        format_func=named,
        key=key,
        label_visibility="collapsed" if quiet else "visible",
        bind=bind,
    )


def one_listed(
    label: str,
    names: Sequence[str],
    key: str,
    *,
    first: int = 0,
    disabled: bool = False,
    quiet: bool = False,
) -> int:
    """The place of the chosen name in a list: `first` until another one is chosen.

    Each run tells the browser which one it is: it knows the choice by its name, and another sentence has
    others.
    """
    keep_within(key, len(names), first)
    place: int = st.selectbox(
        label,
        range(len(names)),
        format_func=names.__getitem__,
        key=key,
        disabled=disabled,
        label_visibility="collapsed" if quiet else "visible",
    )
    return place


def one_step(key: str, last: int, take: Callable[[int], None] | None = None) -> int:
    """A step from 1 to the last, by a slider that the arrow keys move too.

    Args:
        key: of the session state, which holds the step. The slider has a key of its own: a request may tell
            where it stood before the last step.
        last: the last step.
        take: is told of the chosen step; by itself the session state holds it.
    """
    state = st.session_state
    step: int = min(state[key], last)
    state[key] = step
    if last > 1:
        take = take or partial(state.__setitem__, key)
        st.slider("Step", 1, last, **switch(f"{key}-slider", step, take))
    return step


def keep_within(key: str, count: int, first: int = 0) -> None:
    """Sets a numbered choice: what was chosen; `first` where nothing was, and where another sentence or
    model no longer has it."""
    chosen = st.session_state.get(key)
    st.session_state[key] = first if chosen is None or chosen >= count else chosen


def open_one(
    label: str,
    options: Sequence[Option],
    key: str,
    *,
    named: Callable[[Option], str] = str,
    placeholder: str,
    take: Callable[[Option], None],
    quiet: bool = False,
    width: int | Literal["stretch"] = "stretch",
) -> None:
    """Calls `take` with the option that is chosen, and shows the placeholder again.

    quiet: the label is there for screen readers only. width: in pixels.
    """

    def chosen() -> None:
        option = st.session_state[key]
        if option is not None:
            take(option)
            st.session_state[key] = None

    st.selectbox(
        label,
        options,
        index=None,
        format_func=named,
        placeholder=placeholder,
        key=key,
        label_visibility="collapsed" if quiet else "visible",
        on_change=chosen,
        width=width,
    )


def choosable_table(
    frame: "pd.DataFrame",
    key: str,
    take: Callable[[int], None],
    *,
    decimals: int = 4,
    helps: Mapping[str, str] | None = None,
    height: int | Literal["auto"] = "auto",
    hide_index: bool | None = None,
) -> None:
    """A table whose rows can be chosen. take: is told the number of the chosen row. helps: what the question
    mark of a column says."""

    def chosen() -> None:
        rows = st.session_state[key].selection.rows
        if rows:
            take(int(rows[0]))

    st.dataframe(
        sheltered_table(frame),
        key=key,
        hide_index=hide_index,
        height=height,
        column_config={
            name: st.column_config.NumberColumn(
                format=f"%.{decimals}f", help=(helps or {}).get(str(name))
            )
            for name in frame.select_dtypes("number").columns
        },
        on_select=choice(key, chosen),
        selection_mode="single-row",
    )
