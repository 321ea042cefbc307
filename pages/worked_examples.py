"""Worked examples: every example of the notes, step by step, with inputs to change; and the notes' errata."""

from functools import partial

import streamlit as st

from model.worked import DOCUMENTS, Erratum, errata
from model.worked import examples as worked
from viz.notation.markdown import plain
from viz.shell import page
from viz.shell.frame import frame
from viz.views.worked.by_hand import one_erratum, step_of, work_through, worked_example
from viz.views.worked.choice import (
    FAILING,
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
from viz.views.worked.failing_code import code_that_fails
from viz.views.worked.inputs import with_own_numbers


def examples() -> None:
    # Above the numbers they are computed from: the picture first.
    steps = st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="worked-row"
    )
    with steps:
        choice()
    try:
        example = with_own_numbers(chosen())
    except ValueError as refusal:
        steps.error(plain(str(refusal)))
    else:
        with steps:
            work_through(example, write_link)


def every_erratum() -> None:
    st.markdown(
        f"The notes contain {len(errata())} errata. This app computes every number itself and "
        "shows its own result. This list shows where the two differ. Errata of code can be run under "
        f"“{FAILING}”."
    )
    for topic, title in TOPICS.items():
        found = [erratum for erratum in errata() if erratum.section == topic]
        if found:
            st.header(f"{topic[1:]} · {title}", anchor=False)
        for number, erratum in enumerate(found):
            label = f"See it in “{plain(worked_example(erratum.example).title)}”"
            key = f"erratum-{topic}-{number}"
            one_erratum(erratum, key, label, partial(open_erratum, erratum))


def open_erratum(erratum: Erratum) -> None:
    choose(erratum.example, step_of(erratum, worked_example(erratum.example)))
    st.session_state[TAB] = STEPS


def about() -> None:
    st.caption(frame().page.line)
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


page.open_page("pages/worked_examples.py")
adopt_link()
with st.container(key="parts"):
    tabs = st.tabs(TABS, key=TAB, on_change="rerun")
for tab, beat in zip(tabs, (examples, every_erratum, code_that_fails, about), strict=True):
    if tab.open:
        with tab:
            beat()
