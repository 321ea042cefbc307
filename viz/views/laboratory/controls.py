"""Controls that show a field of the intervention and set it."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from viz.state.session import Control, current, intervene, shown, switch

CLICKED = 64  # up to so many options are buttons; more are a list


def field(name: str) -> Control:
    """The widget that shows a field of the intervention and sets it."""
    value = getattr(current().intervention, name)
    return switch(f"laboratory-{name}", value, lambda value: intervene(**{name: value}))


def value_or_number(
    name: str,
    words: str,
    named: Mapping[str, float | None],
    *,
    other: tuple[str, float],
    number: tuple[str, float, float],
) -> None:
    """One field of the intervention: one of some named values, or any number.

    other: what a number is called, and the first one. number: its label, bound and step.
    """
    value = getattr(current().intervention, name)
    names = {each: kind for kind, each in named.items()}
    label, bound, step = number

    def take_kind(kind: str) -> None:
        intervene(**{name: named.get(kind, other[1])})

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.radio(
            words,
            (*named, other[0]),
            horizontal=True,
            width="content",
            **switch(f"laboratory-{name}", names.get(value, other[0]), take_kind),
        )
        if value not in names:
            st.number_input(
                label,
                label_visibility="collapsed",
                min_value=-bound,
                max_value=bound,
                step=step,
                format="%g",
                width=160,
                **switch(
                    f"laboratory-{name}-number", value, lambda number: intervene(**{name: number})
                ),
            )


def several(
    label: str,
    options: Sequence[object],
    *,
    chosen: Sequence[object],
    name: Callable[..., str],
    key: str,
    take: Callable[[Sequence[object]], None],
) -> None:
    """Several of some options, as buttons to press; as a list where they are too many."""
    present = [option for option in chosen if option in options]
    control = shown(f"{key}-{len(options)}", present, take)
    if len(options) <= CLICKED:
        st.pills(label, options, selection_mode="multi", format_func=name, **control)
    else:
        st.multiselect(label, options, format_func=name, **control)
