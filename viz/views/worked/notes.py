"""The errata of the notes, and what the notes are."""

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from model.worked import DOCUMENTS, Erratum, errata
from model.worked import examples as worked
from viz.notation.words import sentences_of
from viz.shell.panel import Panel
from viz.state.navigation import html_link
from viz.views.worked.by_hand import SHOW, STEPS, WORKED_PAGE, step_of, worked_example
from viz.views.worked.choice import EXAMPLE, STEP, TOPICS, chosen

say = sentences_of("worked.notes")

STYLE = Path(__file__).with_name("errata.css")


def errata_of_the_notes() -> Panel:
    """Every erratum: those of the open example first, then topic by topic; at the end what the notes are."""
    of_example = [one for one in errata() if one.example == chosen()]
    return Panel(
        "errata",
        look_for=say("errata_notes_print", errata=len(errata())),
        picture=partial(_drawn, of_example),
    )


def _drawn(of_example: Sequence[Erratum]) -> None:
    st.html(STYLE)
    if of_example:
        _listed(worked_example(chosen()).title, of_example)
    for topic, title in TOPICS.items():
        found = [one for one in errata() if one.section == topic and one not in of_example]
        if found:
            _listed(title, found)
    _about()


def _listed(title: str, some: Sequence[Erratum]) -> None:
    st.html(
        f'<section class="errata"><h2>{html.escape(title)}</h2>{"".join(map(_erratum, some))}</section>'
    )


def _erratum(erratum: Erratum) -> str:
    """HTML: an erratum with the notes' own words, and the way to the step that holds it."""
    example = worked_example(erratum.example)
    at = str(step_of(erratum, example) + 1)
    to = {SHOW: STEPS, EXAMPLE: erratum.example, STEP: at}
    quoted = f"{erratum.source}: “{erratum.quotation}”"
    return (
        f"<article><p><b>The notes say</b><br>{html.escape(erratum.notes_say)}"
        f"<small>{html.escape(quoted)}</small></p>"
        f"<p><b>The arithmetic gives</b><br>{html.escape(erratum.arithmetic_gives)}</p>"
        f"<p>{html.escape(erratum.why)}<br>{html_link(WORKED_PAGE, f'{example.title} →', to)}</p></article>"
    )


def _about() -> None:
    st.header(say("notes"), anchor=False)
    st.markdown(say("app_began_five_sets"))
    printed = [step.notes for example in worked() for step in example.steps if step.notes]
    for document in DOCUMENTS:
        shown = sum(notes.source.document is document for notes in printed)
        found = sum(erratum.source.document is document for erratum in errata())
        st.markdown(
            say(
                "steps_numbers_errata",
                document=document.title,
                about=document.about,
                shown=shown,
                found=found,
            )
        )
