"""Every erratum of the notes: those of figures, found by comparing the steps, and those of words and code,
which stand in wording.toml."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.worked.example import Example, Step
from model.worked.notes import NotesPlace, Printed, quoted

_MOST_CELLS = 4
Texts = NDArray[np.str_]


@dataclass(frozen=True)
class Erratum:
    """One erratum: what the notes say, what the arithmetic gives, why, and the example that shows it.

    `source` is where the notes say it, `quotation` their own words there; `step` is the title of the
    step that holds both figures, None for an erratum of words or code.
    """

    section: str
    source: NotesPlace
    quotation: str
    notes_say: str
    arithmetic_gives: str
    why: str
    example: str
    step: str | None = None


def _plain(value: float, decimals: int) -> str:
    """The number to `decimals` places, or to more where it would otherwise look whole."""
    for places in range(decimals, decimals + 3):
        text = f"{value:.{places}f}".rstrip("0").rstrip(".")
        if float(text) != round(value) or value == round(value):
            return text
    return text


def _computed(step: Step, notes: Printed) -> Texts:
    """The result, to at least as many decimals as the notes print."""
    pairs = zip(step.result.ravel(), notes.decimals, strict=True)
    return np.array(
        [_plain(float(value), max(4, decimals)).replace("-", "−") for value, decimals in pairs]
    )


def _row(texts: Texts) -> str:
    return "[" + ", ".join(texts) + "]"


def _cell(step: Step, where: tuple[int, ...]) -> str:
    axes = (step.rows, step.columns)[-len(where) :] if where else ()
    return ", ".join(labels[i] for labels, i in zip(axes, where, strict=True) if labels)


def _figures(step: Step, flat: Texts) -> str:
    """The figures that differ: cell by cell with their labels, or whole rows where there are many."""
    texts = flat.reshape(step.result.shape)
    differing = np.argwhere(step.differing if step.differing is not None else [])
    if texts.ndim == 0:
        return str(texts)
    if len(differing) <= _MOST_CELLS:
        cells = (tuple(int(i) for i in where) for where in differing)
        return "; ".join(f"({_cell(step, cell)}): {texts[cell]}" for cell in cells)
    if texts.ndim == 1:
        return _row(texts)
    rows = sorted({int(where[0]) for where in differing})
    return "; ".join(f"{_cell(step, (i, 0)).split(', ')[0]}: {_row(texts[i])}" for i in rows)


def of_figures(examples: Iterable[Example]) -> tuple[Erratum, ...]:
    """One erratum for every step whose printed figures are not its result."""
    return tuple(
        Erratum(
            example.section,
            step.notes.source,
            step.notes.quotation,
            f"{step.title}: {_figures(step, np.array(step.notes.figures))}",
            _figures(step, _computed(step, step.notes)),
            step.remark,
            example.name,
            step.title,
        )
        for example in examples
        for step in example.steps
        if step.notes is not None and step.agrees is False and step.remark is not None
    )


def of_words(sections: Mapping[str, str]) -> Iterator[Erratum]:
    """The errata of wrong signs, letters, shapes and names. sections: of the examples, by name."""
    return (Erratum(sections[one["example"]], **one) for one in quoted("wording.toml"))


def all_errata(examples: Sequence[Example]) -> tuple[Erratum, ...]:
    """All errata, section by section; those of words and code after those of figures."""
    sections = {example.name: example.section for example in examples}
    found = (*of_figures(examples), *of_words(sections))
    return tuple(sorted(found, key=lambda erratum: int(erratum.section.removeprefix("§"))))
