"""The errata of the notes: what they say, what is right, and why; those of an example stand below it."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from model.worked import Erratum, errata
from model.worked.example import Example
from viz.notation.markdown import plain


def errata_of(example: Example, opened: Callable[[int], None]) -> None:
    """The errata about an example, behind a click.

    opened: is called with the number of a step, counted from 0, to open the one that holds an erratum.
    """
    found = [erratum for erratum in errata() if erratum.example == example.name]
    if not found:
        return
    label = f"Errata in the notes about this example: {len(found)}"
    row = st.expander(label, key=f"errata-{example.name}", on_change="rerun")
    if not row.open:
        return
    with row:
        for number, erratum in enumerate(found):
            at = step_of(erratum, example)
            button = f"Open step {at + 1}" if erratum.step else ""
            key = f"erratum-{example.name}-{number}"
            one_erratum(erratum, key, button, partial(opened, at))


def one_erratum(erratum: Erratum, key: str, button: str, leads: Callable[[], None]) -> None:
    """An erratum with the notes' own words, and a button that leads on where one is named."""
    with st.container(border=True):
        notes, arithmetic, why = st.columns([3, 3, 4])
        notes.markdown(f"**The notes say**  \n{plain(erratum.notes_say)}")
        notes.caption(plain(f"{erratum.source}: “{erratum.quotation}”"))
        arithmetic.markdown(f"**The arithmetic gives**  \n{plain(erratum.arithmetic_gives)}")
        why.markdown(plain(erratum.why))
        if button:
            why.button(button, key=key, type="tertiary", on_click=leads)


def step_of(erratum: Erratum, example: Example) -> int:
    """The step of its example that an erratum belongs to, counted from 0: the first for one of words."""
    titles = [step.title for step in example.steps]
    return titles.index(erratum.step) if erratum.step else 0
