"""The shape of the examples: names, topics, labels, formulas, and results a page can show."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from model.worked import DOCUMENTS, Example, Input, Step, errata, examples

ALL = examples()
QUANTITIES = {"query", "key", "value", "score", "weight", "output", "other"}


def test_names_are_unique_slugs() -> None:
    names = [example.name for example in ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_every_section_of_the_notes_has_an_example_in_order() -> None:
    sections = [int(example.section.removeprefix("§")) for example in ALL]
    assert sections == sorted(sections)
    assert set(sections) == set(range(1, 15))


def test_examples_are_made_once() -> None:
    assert examples() is examples()


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_an_example_says_what_it_is(example: Example) -> None:
    assert example.title
    assert example.idea.endswith(".")
    assert example.steps
    titles = Counter(step.title for step in example.steps)
    assert max(titles.values()) == 1
    assert max(Counter(item.name for item in example.inputs).values()) == 1


def assert_labelled(values: np.ndarray, of: Input | Step) -> None:
    """Each axis has as many labels as it is long."""
    labels = (of.rows, of.columns)[2 - values.ndim :]
    assert tuple(len(axis or ()) for axis in labels) == values.shape


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_a_result_is_finite_read_only_and_labelled(example: Example) -> None:
    for step in example.steps:
        assert step.result.dtype == np.float64
        assert step.result.ndim <= 2
        assert np.isfinite(step.result).all()
        assert step.quantity in QUANTITIES
        with pytest.raises(ValueError, match="read-only"):
            step.result[...] = 0
        assert_labelled(step.result, step)
        if step.blocked is not None:
            assert step.blocked.shape == step.result.shape
            assert step.blocked.dtype == np.bool_


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_formulas_are_latex_a_page_can_set(example: Example) -> None:
    for step in example.steps:
        for text in filter(None, (step.formula, step.numbers)):
            assert text.isascii(), text
            assert text.count("{") == text.count("}")
            assert len(re.findall(r"\\left\b", text)) == len(re.findall(r"\\right\b", text))
            assert text.count(r"\begin") == text.count(r"\end")
            assert "nan" not in text
            assert "$" not in text
            for words in re.findall(r"\\text\{([^{}]*)\}", text):
                assert not set(words) & set("_^&%#\\"), text


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_every_step_shows_its_own_numbers(example: Example) -> None:
    for step in example.steps:
        assert step.numbers


def test_weights_of_the_softmax_sum_to_one() -> None:
    """All weights of sections 1 and 6, but those under dropout."""
    for example in ALL:
        if example.section not in ("§1", "§6") or "dropout" in example.name:
            continue
        for step in example.steps:
            if step.quantity == "weight" and step.result.ndim == 2:
                np.testing.assert_allclose(step.result.sum(axis=-1), 1, rtol=1e-12)


def test_errata_belong_to_examples_and_stand_in_order() -> None:
    names = {example.name: example for example in ALL}
    for erratum in errata():
        assert erratum.example in names
        assert erratum.section == names[erratum.example].section
        assert erratum.why.endswith(".")
        assert erratum.notes_say != erratum.arithmetic_gives
        assert erratum.source.document in DOCUMENTS
    sections = [int(erratum.section.removeprefix("§")) for erratum in errata()]
    assert sections == sorted(sections)


def test_every_step_that_differs_is_an_erratum_and_says_both_figures() -> None:
    differing = {(e.name, s.title) for e in ALL for s in e.steps if s.agrees is False}
    assert {(erratum.example, erratum.step) for erratum in errata() if erratum.step} == differing


@pytest.mark.parametrize(
    ("says", "gives"),
    [
        ("(The, Cat): 1", "(The, Cat): 0"),
        ("1.2669", "0.8446"),
        ("0.5762", "0.5761"),
        ("0.9995", "0.99995"),
        ("0.22313016014", "0.22313016015"),
        ("0.090376136", "0.09037587"),
        ("same original", "not x"),
        ("-1.36", "−1.3416"),
        ("(y2, y2): 1.9", "(y2, y2): 1.74"),
        ("Z = A Xᵀ", "A X"),
        ("Z = A Vᵀ", "A V"),
        ("q(i) · v(j)", "q(i) · k(j)"),
        ("N × d_k", "d_in × d_k"),
        ("maks", "mask"),
        ("forward stands inside __init__", "method"),
        ("pdf", "discrete"),
        ("embedding + W_Q", "embedding · W_Q"),
        ("Linear(d_head, d_model)", "Linear(d_model, d_head)"),
    ],
)
def test_the_errata_of_the_notes_are_listed(says: str, gives: str) -> None:
    assert any(
        says in erratum.notes_say and gives in erratum.arithmetic_gives for erratum in errata()
    )
