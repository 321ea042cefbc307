"""Exercises for a class: how many sheets, of which kinds, a look at each exercise, and the files."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st

from model.loading.registry import models
from model.nn.intervention import UNCHANGED
from model.serving.engine import Request
from viz.notation.markdown import plain
from viz.questions.exercises.exercise import Exercise, ExerciseKind, ExerciseSource
from viz.questions.exercises.kinds import KINDS, TEN_MINUTES, kinds_of
from viz.questions.exercises.sheets import (
    PUPILS,
    ExerciseSheet,
    SheetHead,
    answers_page,
    sheets_of,
    sheets_page,
    table_of,
)
from viz.saving.save import page_address
from viz.shell.panel import Caption, Panel, refusals
from viz.state.link import address, short_link
from viz.state.look import Look, loaded, traced
from viz.state.session import current
from viz.views.for_a_class.reach import warn_of_a_local_address

STYLE = "<style>.given td, .given th { padding: 0 0.8rem 0 0; text-align: left; }</style>"
_FIRST = "Softmax of a row"  # the exercise that is shown first
_KEPT = 8  # classes whose sheets are kept: 40 sheets take a megabyte


def exercises(look: Look) -> Panel:
    """Numbers of the open model on the open sentence, other ones on each pupil's sheet."""
    request = look.request
    names = [kind.name for kind in kinds_of(_source(request))]
    pupils = st.number_input("Pupils", 1, PUPILS, 30, key="class-pupils", width=120)
    seed = st.number_input(
        "Seed",
        0,
        9999,
        1,
        key="class-seed",
        help="Another seed gives the whole class other numbers. Take one that your pupils do not know: "
        "whoever knows it can open the answers here.",
        width=120,
    )
    with st.popover("Kinds"):
        label = "Exercises on each sheet"
        short = [name for name in names if name in TEN_MINUTES]
        pills = st.pills(label, names, selection_mode="multi", default=short, key="class-kinds")
        st.caption(f"These {len(short)} take about ten minutes. The others are spare.")
    chosen = tuple(name for name in names if name in pills)
    with refusals():
        sheets = _sheets(request, chosen, seed, pupils)
    pupil = st.number_input("Sheet", 1, len(sheets), 1, key="class-sheet", width=120)
    sheet = sheets[pupil - 1]
    listed = [kind.name for kind in sheet.kinds]
    first = listed.index(_FIRST) if _FIRST in listed else 0
    name = st.selectbox("Exercise", listed, index=first, key="class-exercise", width=220)
    at = listed.index(name)
    about = SheetHead(models[request.model].title, look.trace.text, seed, _link())
    return Panel(
        "class-exercises",
        below=[
            warn_of_a_local_address,
            partial(_preview, sheet.kinds[at], sheet.exercises[at], f"class-answer-{pupil}-{at}"),
            partial(_downloads, request, chosen, seed, pupils, about),
            Caption(
                "Each file can be printed and works offline. The same seed, sentence and model give the same "
                "sheets again."
            ),
        ],
    )


def _preview(kind: ExerciseKind, exercise: Exercise, key: str) -> None:
    """One exercise of one sheet; its answer is hidden until it is opened."""
    with st.container(border=True, key="class-preview"):
        st.markdown(f"**{kind.name}.** {plain(exercise.task)}")
        if exercise.given:
            st.html(STYLE + table_of(exercise))
        st.latex(exercise.formula or kind.formula)
        answer = st.expander("Answer and working", key=key, on_change="rerun")
        if answer.open:
            with answer:
                for line in exercise.answers:
                    st.markdown(f"**{plain(line.written)}**")
                for step in exercise.steps:
                    st.markdown(f"- {plain(step)}")
                if exercise.own:
                    st.caption(plain(exercise.own))


def _downloads(
    request: Request, chosen: tuple[str, ...], seed: int, pupils: int, about: SheetHead
) -> None:
    """The files of the class's sheets. Each is made when it is asked for, so it holds no trace."""

    def content(page: Callable[[tuple[ExerciseSheet, ...], SheetHead], bytes]) -> bytes:
        return page(_sheets(request, chosen, seed, pupils), about)

    with st.container(horizontal=True):
        for label, page, file in (
            ("Pupils' sheets", sheets_page, "exercises"),
            ("Answers and working", answers_page, "answers"),
        ):
            st.download_button(
                label,
                partial(content, page),
                file_name=f"{file}-{seed}.html",
                mime="text/html",
                key=f"class-save-{file}",
                icon=":material/download:",
                on_click="ignore",
            )


def _link() -> str:
    """Where the pupils see the sentence in the model: not this page, which has the answers."""
    return address(
        page_address("."),
        short_link(replace(current(), show="", intervention=UNCHANGED))[0],
    )


def _source(request: Request) -> ExerciseSource:
    model = loaded(request.model)
    return ExerciseSource(traced(request), model.config, model.tokenizer.named)


@lru_cache(maxsize=_KEPT)
def _sheets(
    request: Request, chosen: tuple[str, ...], seed: int, pupils: int
) -> tuple[ExerciseSheet, ...]:
    """The class's sheets with these kinds. Raises ValueError as `sheets_of` does."""
    kinds = [kind for kind in KINDS if kind.name in chosen]
    return sheets_of(_source(request), kinds, seed, pupils)
