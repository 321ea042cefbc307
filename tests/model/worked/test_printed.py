"""What the notes print: read as printed, judged to the digits printed, dropped when inputs change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.worked import DOCUMENTS, examples
from model.worked.notes import Printed

DISAGREEING = {
    ("the-cat-sat", "Scaled scores"),
    ("the-cat-sat", "The rows that enter the softmax"),
    ("the-cat-sat", "Weights"),
    ("the-cat-sat", "Output"),
    ("one-hot-picture", "Output"),
    ("softmax-of-ten-and-one", "Weights"),
    ("softmax-of-three", "Exponentials"),
    ("softmax-of-three", "Weights"),
    ("twice-the-score", "Weights"),
    ("four-by-four-masked", "Scores"),
    ("four-by-four-masked", "Scaled scores"),
    ("four-by-four-masked", "Weights"),
    ("sinusoidal-table", "Exponent of each dimension"),
    ("sinusoidal-table", "Positional encoding"),
    ("embedding-plus-position", "Positional encoding of positions 0, 1, 2"),
    ("layer-norm-by-hand", "Normalized"),
}
SOURCE = DOCUMENTS[0].at("a part")
STEPS = [(example, step) for example in examples() for step in example.steps]
JUDGED = [(example, step) for example, step in STEPS if step.printed is not None]


def test_the_notes_differ_in_exactly_these_steps() -> None:
    assert {(e.name, s.title) for e, s in STEPS if s.agrees is False} == DISAGREEING


@pytest.mark.parametrize(
    ("text", "result", "agrees"),
    [
        (".12", 0.1249, True),
        (".12", 0.1251, False),
        (".99 .01", [0.9899, 0.0101], True),
        (".99 .01", [0.9999, 0.0001], False),
        ("2", 2.0, True),
        ("2", 2.0001, False),
        ("7x", 7.389, True),
        ("7x", 7.51, False),
        ("-1.36", -1.3416, False),
        ("30%", 30.0, True),
        ("30%", 30.01, False),
        ("2/4", 0.5, True),
        ("2/4", 0.0, False),
        ("False", 0, True),
        ("False", 1, False),
        ("1 _; _ 1", [[1, 7], [7, 1]], True),
        ("2 _; _ 1", [[1, 7], [7, 1]], False),
        ("1 0; 0 1", [[1, 0], [0, 1]], True),
        ("1 0; 0 1", [[1, 0], [1, 0]], False),
    ],
)
def test_a_figure_agrees_when_the_result_rounds_to_it(text, result, agrees) -> None:
    differing = Printed(text, SOURCE, "").differing(np.array(result, dtype=np.float64))
    assert bool(differing.any()) is not agrees


def test_printed_figures_of_another_number_than_the_result_are_refused() -> None:
    with pytest.raises(ValueError, match="2 figures, not 3"):
        Printed("1 2", SOURCE, "").differing(np.zeros(3))


@pytest.mark.parametrize(("example", "step"), JUDGED, ids=lambda part: getattr(part, "title", ""))
def test_the_verdict_follows_the_result(example, step) -> None:
    """A result moved away from what is printed no longer agrees; one moved onto it does."""
    printed = np.where(np.isnan(step.printed), step.result, step.printed)
    assert replace(step, result=printed + 1.0).agrees is False
    assert replace(step, result=printed).agrees is True


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_printed_and_verdict_come_together_and_a_difference_has_a_reason(example) -> None:
    for step in example.steps:
        assert (step.printed is None) == (step.agrees is None)
        if step.printed is not None:
            assert step.printed.shape == step.result.shape
            assert not step.printed.flags.writeable
        if step.agrees is False:
            assert step.notes.erratum
        if step.remark is not None:
            assert step.remark.rstrip(")").endswith(".")


def test_the_notes_figures_are_there_whether_they_agree_or_not() -> None:
    assert sum(step.agrees is True for _, step in JUDGED) >= 30


@pytest.mark.parametrize("name", ["the-cat-sat", "softmax-of-three", "layer-norm-by-hand"])
def test_what_the_notes_print_goes_with_their_inputs_only(name: str) -> None:
    given = next(example for example in examples() if example.name == name)
    first = given.inputs[0]
    changed = given.with_inputs(**{first.name: first.value + 0.5})
    assert all(step.printed is None and step.agrees is None for step in changed.steps)
    back = changed.with_inputs(**{first.name: first.value})
    assert [step.agrees for step in back.steps] == [step.agrees for step in given.steps]
