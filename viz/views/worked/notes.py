"""The errata of the notes, and what the notes are."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from model.worked import DOCUMENTS, Erratum, errata
from model.worked import examples as worked
from viz.notation.markdown import plain
from viz.shell.panel import Panel
from viz.state.navigation import page_link
from viz.views.worked.by_hand import WORKED_PAGE, step_of, worked_example
from viz.views.worked.choice import EXAMPLE, STEP, TOPICS, chosen


def errata_of_the_notes() -> Panel:
    """Every erratum: those of the open example first, then topic by topic; at the end what the notes are."""
    of_example = [one for one in errata() if one.example == chosen()]
    return Panel(
        "errata",
        look_for=f"{len(errata())} errata: what the notes print, what the arithmetic gives, and why. The app "
        "computes every number itself and shows its own.",
        picture=partial(_drawn, of_example),
    )


def _drawn(of_example: Sequence[Erratum]) -> None:
    if of_example:
        st.header(plain(worked_example(chosen()).title), anchor=False)
        for erratum in of_example:
            _erratum(erratum)
    for topic, title in TOPICS.items():
        found = [one for one in errata() if one.section == topic and one not in of_example]
        if found:
            st.header(f"{topic[1:]} · {title}", anchor=False)
        for erratum in found:
            _erratum(erratum)
    _about()


def _erratum(erratum: Erratum) -> None:
    """An erratum with the notes' own words, and the way to the step that holds it."""
    example = worked_example(erratum.example)
    notes, arithmetic, why = st.columns([3, 3, 4], gap="large")
    notes.markdown(f"**The notes say**  \n{plain(erratum.notes_say)}")
    notes.caption(plain(f"{erratum.source}: “{erratum.quotation}”"))
    arithmetic.markdown(f"**The arithmetic gives**  \n{plain(erratum.arithmetic_gives)}")
    with why:
        st.markdown(plain(erratum.why))
        step = {STEP: str(step_of(erratum, example) + 1)}
        page_link(WORKED_PAGE, f"{plain(example.title)} →", **{EXAMPLE: erratum.example} | step)


def _about() -> None:
    st.header("What the notes are", anchor=False)
    st.markdown(
        "This app began with five sets of study notes on the transformer. The notes themselves are "
        "not part of it; their examples are worked out again here. Where the notes give the result "
        "of a step, the step shows it as they print it, with the document, its part and the words "
        "around it. Steps without a quotation and numbers marked “chosen here” are the app's own."
    )
    printed = [step.notes for example in worked() for step in example.steps if step.notes]
    for document in DOCUMENTS:
        shown = sum(notes.source.document is document for notes in printed)
        found = sum(erratum.source.document is document for erratum in errata())
        st.markdown(
            f"**{plain(document.title)}**. {plain(document.about)} Steps with numbers from it: "
            f"{shown}; errata: {found}."
        )
