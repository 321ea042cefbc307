"""Every slip of the notes: those of figures, derived from the steps, beside those of words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.worked.example import Array, Example, Step
from model.worked.slip import Slip
from model.worked.wording import OF_WORDS

_MOST_CELLS = 4


def _plain(value: float) -> str:
    for places in range(4, 7):
        text = f"{value:.{places}f}".rstrip("0").rstrip(".")
        if float(text) != round(value) or value == round(value):
            return text
    return text


def _row(values: Array) -> str:
    return "[" + ", ".join(_plain(float(value)) for value in values) + "]"


def _cell(step: Step, where: tuple[int, ...]) -> str:
    axes = (step.rows, step.columns)[-len(where) :] if where else ()
    return ", ".join(labels[i] for labels, i in zip(axes, where, strict=True) if labels)


def _figures(step: Step, values: Array) -> str:
    """The figures in question: the differing cells by name, or whole rows where there are many."""
    differing = np.argwhere(step.differing if step.differing is not None else [])
    if values.ndim == 0:
        return _plain(float(values))
    if len(differing) <= _MOST_CELLS:
        cells = (tuple(int(i) for i in where) for where in differing)
        return "; ".join(f"({_cell(step, cell)}): {_plain(float(values[cell]))}" for cell in cells)
    if values.ndim == 1:
        return _row(values)
    rows = sorted({int(where[0]) for where in differing})
    return "; ".join(f"{_cell(step, (i, 0)).split(', ')[0]}: {_row(values[i])}" for i in rows)


def of_figures(examples: Iterable[Example]) -> tuple[Slip, ...]:
    """One slip for every step whose printed figures are not its result."""
    return tuple(
        Slip(
            example.section,
            f"{step.title}: {_figures(step, step.printed)}",
            _figures(step, step.result),
            step.remark,
            example.name,
            step.title,
        )
        for example in examples
        for step in example.steps
        if step.printed is not None and step.agrees is False and step.remark is not None
    )


def slips(examples: Iterable[Example]) -> tuple[Slip, ...]:
    """All slips, section by section."""
    found = (*of_figures(examples), *OF_WORDS)
    return tuple(sorted(found, key=lambda slip: int(slip.section.removeprefix("§"))))
