"""The sheets of a class: for every pupil the same kinds of exercises with other numbers. Pure.

A seed gives the same sheets again, and a pupil's sheet does not depend on how many pupils there are.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from viz.questions.exercises.exercise import Exercise, ExerciseKind, ExerciseSource
from viz.saving.offline_page import standalone

PUPILS = 40  # at most
_TRIES = 12  # drawings of an exercise that no pupil before has


@dataclass(frozen=True)
class ExerciseSheet:
    """One pupil's exercises."""

    pupil: int  # from 1
    kinds: tuple[ExerciseKind, ...]
    exercises: tuple[Exercise, ...]


@dataclass(frozen=True)
class SheetHead:
    """What stands at the head of every sheet; plain text."""

    model: str
    sentence: str
    seed: int
    link: str | None  # None where pupils cannot open the app


def sheets_of(
    source: ExerciseSource, kinds: Sequence[ExerciseKind], seed: int, pupils: int
) -> tuple[ExerciseSheet, ...]:
    """One sheet a pupil, no two alike.

    Raises ValueError with a sentence for no kind, for a number of pupils out of bounds, and where the
    sentence has too few numbers for so many sheets.
    """
    if not kinds:
        raise ValueError("Choose at least one kind of exercise.")
    if not 1 <= pupils <= PUPILS:
        raise ValueError(f"A class has 1 to {PUPILS} pupils, not {pupils:,}.")
    columns = [_different(source, kind, seed, pupils) for kind in kinds]
    rows = list(zip(*columns, strict=True))
    if (different := len(set(rows))) < pupils:
        raise ValueError(
            f"These kinds give {different} different sheets on this sentence, and {pupils} are asked for. "
            "Choose more kinds, fewer pupils or a longer sentence."
        )
    return tuple(ExerciseSheet(pupil, tuple(kinds), row) for pupil, row in enumerate(rows, 1))


def _different(
    source: ExerciseSource, kind: ExerciseKind, seed: int, pupils: int
) -> list[Exercise]:
    """One exercise a pupil: another than those before, as long as there is one."""
    random, drawn = Random(f"{seed} {kind.name}"), dict[Exercise, None]()
    exercises = []
    for _ in range(pupils):
        for _ in range(_TRIES):
            exercise = kind.drawn(source, random)
            if exercise not in drawn:
                break
        drawn[exercise] = None
        exercises.append(exercise)
    return exercises


def sheets_page(sheets: Sequence[ExerciseSheet], about: SheetHead) -> bytes:
    """The pupils' sheets as one file: each begins a page when it is printed."""
    title = f"Exercises for {len(sheets)} {'pupil' if len(sheets) == 1 else 'pupils'}"
    return standalone(title, "".join(_sheet(sheet, about, solved=False) for sheet in sheets), {})


def answers_page(sheets: Sequence[ExerciseSheet], about: SheetHead) -> bytes:
    """The same with working and answers, for whoever marks them."""
    return standalone("Answers", "".join(_sheet(sheet, about, solved=True) for sheet in sheets), {})


def _sheet(sheet: ExerciseSheet, about: SheetHead, *, solved: bool) -> str:
    head = {
        "Model": html.escape(about.model),
        "Sentence": html.escape(about.sentence),
    }
    if about.link is not None:
        head["Open it"] = f"<code>{html.escape(about.link)}</code>"
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in head.items())
    asked = zip(sheet.kinds, sheet.exercises, strict=True)
    tasks = "".join(
        f"<li><h3>{kind.name}</h3>{_exercise(kind, exercise, solved=solved)}</li>"
        for kind, exercise in asked
    )
    title = f"Sheet {sheet.pupil}"
    name = "<p>Name: <span class='line'></span></p>"
    if solved:  # a pupil who knows the seed could open the answers
        title, name = f"{title} · seed {about.seed}", ""
    return (
        f'<section class="sheet"><h2>{title}</h2>{name}<dl>{listed}</dl><ol>{tasks}</ol></section>'
    )


def _exercise(kind: ExerciseKind, exercise: Exercise, *, solved: bool) -> str:
    if solved:
        steps = "".join(f"<li>{html.escape(step)}</li>" for step in exercise.steps)
        answers = "; ".join(answer.written for answer in exercise.answers)
        own = f"<p class='own'>{html.escape(exercise.own)}</p>" if exercise.own else ""
        return f"<p><strong>{html.escape(answers)}</strong></p><ul>{steps}</ul>{own}"
    formula = html.escape(exercise.formula or kind.formula)
    return (
        f"<p>{html.escape(exercise.task)}</p>{table_of(exercise)}"
        f'<div class="formula" data-latex="{formula}">{formula}</div>'
    )


def table_of(exercise: Exercise) -> str:
    """The given numbers in HTML; "" where there are none."""
    if not exercise.given:
        return ""
    labels = "".join(f"<th>{html.escape(label)}</th>" for label in exercise.labels)
    rows = "".join(
        f"<tr><th>{html.escape(given.name)}</th>"
        f"{''.join(f'<td>{number}</td>' for number in given.written)}</tr>"
        for given in exercise.given
    )
    return f"<table class='given'><tr><th></th>{labels}</tr>{rows}</table>"
