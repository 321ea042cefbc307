"""Exercises for a class: how many sheets, of which kinds, a look at each exercise, and the files."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count, zip_longest
from typing import NamedTuple

import streamlit as st

from model.loading.registry import models
from model.nn.intervention import UNCHANGED
from model.serving.engine import Request
from viz.elements.one_of import one_listed, one_of
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.questions.exercises.exercise import ExerciseSource
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
from viz.shell.panel import Caption, Panel, refusals
from viz.state.link import address, short_link
from viz.state.look import Look, loaded, traced
from viz.state.session import current
from viz.views.for_a_class.lesson import STYLE
from viz.views.for_a_class.reach import HOW_TO_SHARE, class_address

say = sentences_of("for_a_class.exercises")

_ASKED, _SOLVED = "Sheet", "Answers"
_KEPT = 8  # classes whose sheets are kept: 40 sheets take a megabyte


class SheetsAsked(NamedTuple):
    """What makes the sheets of a class."""

    request: Request
    chosen: tuple[str, ...]
    seed: int
    pupils: int


def exercises(look: Look) -> Panel:
    """Numbers of the open model on the open sentence, other ones on each pupil's sheet."""
    request = look.request
    names = [kind.name for kind in kinds_of(_source(request))]
    with st.popover("Class"):
        pupils = st.number_input("Pupils", 1, PUPILS, 30, key="class-pupils")
        seed = st.number_input(
            "Seed",
            0,
            9999,
            1,
            key="class-seed",
            help=say("another_seed_gives"),
        )
        short = [name for name in names if name in TEN_MINUTES]
        pills = st.pills(
            "On each sheet", names, selection_mode="multi", default=short, key="class-kinds"
        )
        st.caption(say("take_about_ten_minutes", short=len(short)))
    chosen = tuple(name for name in names if name in pills)
    with refusals():
        sheets = _sheets(request, chosen, seed, pupils)
    at = one_listed("Sheet", [f"{sheet.pupil}" for sheet in sheets], "class-sheet")
    shown = one_of("Shown", [_ASKED, _SOLVED], "class-shown", quiet=True)
    root = class_address("./")
    # Where the pupils see the sentence in the model: not this page, which has the answers.
    seen, _ = short_link(replace(current(), show="", intervention=UNCHANGED))
    link = None if root is None else address(root, seen)
    about = SheetHead(models[request.model].title, look.trace.text, seed, link)
    asked = SheetsAsked(request, chosen, seed, pupils)
    return Panel(
        "class-exercises",
        picture=partial(_sheet, sheets[at], asked, about, solved=shown == _SOLVED),
        below=[
            Caption(say("same_seed_sentence")),
            *([] if root else [Caption(say("sheets_name_address", how_to_share=HOW_TO_SHARE))]),
        ],
    )


def _sheet(sheet: ExerciseSheet, asked: SheetsAsked, about: SheetHead, *, solved: bool) -> None:
    """A pupil's sheet, two exercises side by side; solved: with answers and working."""
    st.html(STYLE)
    with st.container(horizontal=True, vertical_alignment="center", key="class-files"):
        st.markdown(
            say("sheet_numbers", pupil=sheet.pupil, pupils=asked.pupils, model=about.model),
            width="stretch",
        )
        _downloads(asked, about)
    tasks = [*zip(count(1), sheet.kinds, sheet.exercises, strict=False)]
    for pair in zip_longest(tasks[::2], tasks[1::2]):
        for column, task in zip(st.columns(2, gap="large"), pair, strict=True):
            if task is None:
                continue
            number, kind, exercise = task
            with column, st.container(key=f"class-exercise-{number}", gap="small"):
                st.subheader(f"{number}. {kind.name}", anchor=False)
                st.markdown(plain(exercise.task))
                if exercise.given:
                    st.html(table_of(exercise))
                st.latex(exercise.formula or kind.formula)
                if solved:
                    answers = "; ".join(line.written for line in exercise.answers)
                    st.markdown(f"**{plain(answers)}**")
                    st.caption(
                        "  \n".join(map(plain, filter(None, (*exercise.steps, exercise.own))))
                    )


def _downloads(asked: SheetsAsked, about: SheetHead) -> None:
    """The files of the class's sheets. Each is made when it is asked for, so it holds no trace."""

    def content(page: Callable[[tuple[ExerciseSheet, ...], SheetHead], bytes]) -> bytes:
        return page(_sheets(*asked), about)

    for label, page, file in (
        ("All sheets", sheets_page, "exercises"),
        ("All answers", answers_page, "answers"),
    ):
        st.download_button(
            label,
            partial(content, page),
            file_name=f"{file}-{about.seed}.html",
            mime="text/html",
            key=f"class-save-{file}",
            icon=":material/download:",
            on_click="ignore",
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
