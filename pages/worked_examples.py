"""Worked examples: every example of the notes, step by step, with inputs to change; and the notes' errata."""

import streamlit as st

from model.worked import DOCUMENTS, Erratum, errata
from model.worked import examples as worked
from viz.notation.markdown import plain
from viz.shell import page
from viz.views.worked.by_hand import introduce, work_through, worked_example
from viz.views.worked.choice import (
    STEPS,
    TAB,
    TABS,
    TOPICS,
    adopt_link,
    choice,
    choose,
    chosen,
    write_link,
)
from viz.views.worked.inputs import with_own_numbers


def examples() -> None:
    choice()
    introduce(worked_example(chosen()))
    try:
        example = with_own_numbers(chosen())
    except ValueError as refusal:
        st.error(plain(str(refusal)))
    else:
        work_through(example, write_link)


def every_erratum() -> None:
    st.markdown(
        f"The notes contain {len(errata())} errata. This app computes every number itself and "
        "shows its own result. This list shows where the two differ."
    )
    for topic, title in TOPICS.items():
        found = [erratum for erratum in errata() if erratum.section == topic]
        if found:
            st.header(f"{topic[1:]} · {title}", anchor=False)
        for number, erratum in enumerate(found):
            one_erratum(erratum, f"erratum-{topic}-{number}")


def one_erratum(erratum: Erratum, key: str) -> None:
    example = worked_example(erratum.example)
    with st.container(border=True):
        notes, arithmetic, why = st.columns([3, 3, 4])
        notes.markdown(f"**The notes say**  \n{plain(erratum.notes_say)}")
        notes.caption(plain(str(erratum.source)))
        arithmetic.markdown(f"**The arithmetic gives**  \n{plain(erratum.arithmetic_gives)}")
        why.markdown(plain(erratum.why))
        why.button(
            f"See it in “{plain(example.title)}”",
            key=key,
            type="tertiary",
            on_click=open_erratum,
            args=(erratum,),
        )


def open_erratum(erratum: Erratum) -> None:
    titles = [step.title for step in worked_example(erratum.example).steps]
    choose(erratum.example, titles.index(erratum.step) if erratum.step else 0)
    st.session_state[TAB] = STEPS


def about() -> None:
    st.markdown(
        "This app began with five sets of study notes on the transformer. The notes themselves are "
        "not part of it; their examples are worked out again here. Where the notes give the result "
        "of a step, the step shows it as they print it, with the document, its part and the words "
        "around it."
    )
    printed = [step.notes for example in worked() for step in example.steps if step.notes]
    for document in DOCUMENTS:
        shown = sum(notes.source.document is document for notes in printed)
        found = sum(erratum.source.document is document for erratum in errata())
        st.markdown(
            f"**{plain(document.title)}**. {plain(document.about)} Steps with numbers from it: "
            f"{shown}; errata: {found}."
        )


page.open_page("pages/worked_examples.py")
adopt_link()
tabs = st.tabs(TABS, key=TAB, on_change="rerun")
for tab, beat in zip(tabs, (examples, every_erratum, about), strict=True):
    if tab.open:
        with tab:
            beat()
