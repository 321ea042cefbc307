"""Worked examples: every example of the notes, step by step, with inputs to change; and the notes' slips."""

import streamlit as st

from model.worked import DOCUMENTS, Slip, slips
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


def every_slip() -> None:
    st.markdown(
        f"The notes hold {len(slips())} slips. This app computes every figure itself and shows its own "
        "result; here is where the two differ."
    )
    for topic, title in TOPICS.items():
        found = [slip for slip in slips() if slip.section == topic]
        if found:
            st.header(f"{topic[1:]} · {title}", anchor=False)
        for number, slip in enumerate(found):
            one_slip(slip, f"slip-{topic}-{number}")


def one_slip(slip: Slip, key: str) -> None:
    example = worked_example(slip.example)
    with st.container(border=True):
        notes, arithmetic, why = st.columns([3, 3, 4])
        notes.markdown(f"**The notes say**  \n{plain(slip.notes_say)}")
        notes.caption(plain(str(slip.source)))
        arithmetic.markdown(f"**The arithmetic gives**  \n{plain(slip.arithmetic_gives)}")
        why.markdown(plain(slip.why))
        why.button(
            f"See it in “{plain(example.title)}”",
            key=key,
            type="tertiary",
            on_click=open_slip,
            args=(slip,),
        )


def open_slip(slip: Slip) -> None:
    titles = [step.title for step in worked_example(slip.example).steps]
    choose(slip.example, titles.index(slip.step) if slip.step else 0)
    st.session_state[TAB] = STEPS


def about() -> None:
    st.markdown(
        "This app began with five sets of study notes on the transformer. The notes are not part of "
        "it: their examples are worked again here. Where the notes print the result of a step, the step "
        "shows it in their digits, with the document, its part and the words around it."
    )
    printed = [step.notes for example in worked() for step in example.steps if step.notes]
    for document in DOCUMENTS:
        shown = sum(notes.source.document is document for notes in printed)
        found = sum(slip.source.document is document for slip in slips())
        st.markdown(
            f"**{plain(document.title)}**. {plain(document.about)} "
            f"Steps with figures from it: {shown}; slips: {found}."
        )


page.open_page("pages/worked_examples.py")
adopt_link()
tabs = st.tabs(TABS, key=TAB, on_change="rerun")
for tab, beat in zip(tabs, (examples, every_slip, about), strict=True):
    if tab.open:
        with tab:
            beat()
