"""What a step or an erratum says that the notes have, held against quotations from them.

`quotations.json` and `quotations_of_words.json` were made from the documents: every fragment was
found in its document, in the part named here, word for word (blanks and line ends apart). For each
step the first gives each run of figures with the words they stand among: `_` is a cell that the
document leaves out. The second gives the words of each erratum that is not of figures.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.worked import DOCUMENTS, Step, errata, examples
from model.worked.notes import printed_steps

QUOTATIONS: dict[tuple[str, str], dict[str, Any]] = {
    (entry["example"], entry["step"]): entry
    for entry in json.loads(Path(__file__).with_name("quotations.json").read_text("utf-8"))
}
OF_WORDS = [
    tuple(entry)
    for entry in json.loads(Path(__file__).with_name("quotations_of_words.json").read_text("utf-8"))
]
STEPS = {(example.name, step.title): step for example in examples() for step in example.steps}
BOTH = sorted(QUOTATIONS.keys() & STEPS.keys())


def figures_of(quoted: list[list[str]]) -> list[str]:
    return " ".join(figures for _, figures in quoted).split()


def number(figure: str) -> float:
    if figure == "_":
        return float("nan")
    return 0.0 if figure == "False" else float(Fraction(figure.strip("%x")))


def same(figure: str, value: float) -> bool:
    """Whether a result, rounded to the digits of a figure, is the figure."""
    if figure in ("_", "False"):
        return figure == "_" or value == 0
    if figure.endswith("x"):
        return round(value) == int(figure[:-1])
    if "." in figure:
        digits = Decimal(figure.strip("%"))
        return Decimal(value).quantize(digits) == digits
    return bool(abs(number(figure) - value) <= 5e-5)


def test_a_step_says_that_the_notes_print_something_just_where_they_do() -> None:
    assert {key for key, step in STEPS.items() if step.printed is not None} == QUOTATIONS.keys()
    assert printed_steps().keys() == QUOTATIONS.keys()


@pytest.mark.parametrize("key", BOTH)
def test_the_figures_are_those_of_the_quotation(key: tuple[str, str]) -> None:
    figures = figures_of(QUOTATIONS[key]["quoted"])
    step = STEPS[key]
    assert step.printed is not None
    np.testing.assert_array_equal(
        step.printed, np.array([number(each) for each in figures]).reshape(step.result.shape)
    )
    assert list(step.notes.figures) == figures


@pytest.mark.parametrize("key", BOTH)
def test_a_step_names_the_document_and_quotes_it(key: tuple[str, str]) -> None:
    entry, notes = QUOTATIONS[key], STEPS[key].notes
    assert notes.source.document.title == entry["document"]
    assert notes.source.document in DOCUMENTS
    assert notes.source.part == entry["part"]
    assert notes.quotation in [fragment for fragment, _ in entry["quoted"]]


@pytest.mark.parametrize("key", BOTH)
def test_the_verdict_is_that_of_the_quoted_digits(key: tuple[str, str]) -> None:
    step = STEPS[key]
    pairs = zip(figures_of(QUOTATIONS[key]["quoted"]), step.result.ravel(), strict=True)
    fits = [same(figure, float(value)) for figure, value in pairs]
    assert step.agrees is all(fits)
    assert [not each for each in fits] == step.differing.ravel().tolist()


@pytest.mark.parametrize("key", sorted(QUOTATIONS))
def test_a_quotation_holds_its_figures(key: tuple[str, str]) -> None:
    """A quotation is short, and its figures stand in it in this order, digit for digit."""
    for fragment, figures in QUOTATIONS[key]["quoted"]:
        if fragment is None:
            assert set(figures.split()) == {"_"}
            continue
        assert len(re.findall(r"[A-Za-z]{3,}", fragment)) <= 7
        assert re.search(".*?".join(map(re.escape, figures.split())), fragment)


def test_every_erratum_of_figures_quotes_the_notes() -> None:
    for erratum in errata():
        if erratum.step is not None:
            quoted = figures_of(QUOTATIONS[erratum.example, erratum.step]["quoted"])
            said = erratum.notes_say.removeprefix(erratum.step)
            values = re.sub(r"\([^)]*\)|\w+:", " ", said)
            found = re.findall(r"-?\d[\d./]*", values)
            assert found
            assert set(found) <= set(quoted)


def test_every_erratum_of_words_quotes_the_notes() -> None:
    """Each has its own words there, few of them, in the document and the part that it names."""
    said = [
        (each.example, each.source.document.title, each.source.part, each.quotation)
        for each in errata()
        if each.step is None
    ]
    assert sorted(said) == sorted(OF_WORDS)
    assert len(set(said)) == len(said)
    for *_, quotation in said:
        assert len(re.findall(r"[A-Za-z]{3,}", quotation)) <= 9


def step(example: str, title: str) -> Step:
    return STEPS[example, title]


def test_what_the_notes_leave_out_is_not_claimed() -> None:
    assert step("fill-values", "Weights with −∞").printed is None
    assert step("embedding-plus-position", "Embedding plus position").printed is None
    drawing = step("embedding-plus-position", "Positional encoding of positions 0, 1, 2").printed
    assert np.isnan(drawing[2]).all()
    assert step("houses", "Batch norm: each column").printed is None
    assert step("houses", "Layer norm: each row").printed is None
    assert step("gelu-minimum", "GELU there").printed is None
    assert step("one-hot-picture", "Sum of each output row").printed is None
    for example, title in (("the-cat-sat", "Output"), ("the-cat-sat", "Scaled scores")):
        assert np.isnan(step(example, title).printed[1:]).all()
    assert np.isnan(step("sinusoidal-table", "Positional encoding").printed[2]).all()
