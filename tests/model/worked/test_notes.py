"""What the notes print and say, held against quotations from them, digit by digit, and tried out.

`quotations.json` and `quotations_of_words.json` were made from the documents: every fragment was
found in its document, in the part named here, word for word (blanks and line ends apart). For each
step the first gives each run of figures with the words they stand among: `_` is a cell that the
document leaves out. The second gives the words of each erratum that is not of figures.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import e, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from model.arithmetic import attention
from model.worked import DOCUMENTS, Erratum, Step, errata, examples
from model.worked.notes import Printed, printed_steps
from tests.cases import cases

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


@cases("key", BOTH)
def test_figures_source_and_verdict_are_those_of_the_quotation(key) -> None:
    entry, step = QUOTATIONS[key], STEPS[key]
    figures, notes = figures_of(entry["quoted"]), step.notes
    assert list(notes.figures) == figures
    np.testing.assert_array_equal(
        step.printed, np.array([number(each) for each in figures]).reshape(step.result.shape)
    )
    assert notes.source.document.title == entry["document"]
    assert notes.source.document in DOCUMENTS
    assert notes.source.part == entry["part"]
    assert notes.quotation in [fragment for fragment, _ in entry["quoted"]]
    pairs = zip(figures, step.result.ravel(), strict=True)
    fits = [same(figure, float(value)) for figure, value in pairs]
    assert step.agrees is all(fits)
    assert [not each for each in fits] == step.differing.ravel().tolist()


def test_a_quotation_holds_its_figures() -> None:
    """A quotation is short, and its figures stand in it in this order, digit for digit."""
    every = [pair for entry in QUOTATIONS.values() for pair in entry["quoted"]]
    for fragment, figures in every:
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


SOURCE = DOCUMENTS[0].at("a part")

ALL_STEPS = [(example, step) for example in examples() for step in example.steps]

JUDGED = [(example, step) for example, step in ALL_STEPS if step.printed is not None]


@cases("text, result, agrees", [
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
])  # fmt: skip
def test_a_figure_agrees_when_the_result_rounds_to_it(text, result, agrees) -> None:
    differing = Printed(text, SOURCE, "").differing(np.array(result, dtype=np.float64))
    assert bool(differing.any()) is not agrees


def test_printed_figures_of_another_number_than_the_result_are_refused() -> None:
    with pytest.raises(ValueError, match="2 figures, not 3"):
        Printed("1 2", SOURCE, "").differing(np.zeros(3))


def test_the_verdict_follows_the_result(monkeypatch) -> None:
    """A result moved away from what is printed no longer agrees; one moved onto it does."""
    for _, step in JUDGED:
        printed = np.where(np.isnan(step.printed), step.result, step.printed)
        assert replace(step, result=printed + 1.0).agrees is False
        assert replace(step, result=printed).agrees is True
    given = next(example for example in examples() if example.name == "two-keys-scaled")
    softmax = attention.softmax
    monkeypatch.setattr(attention, "softmax", lambda scores, axis=-1: softmax(scores * 2, axis))
    assert given.with_inputs().steps[3].agrees is False


def test_printed_and_verdict_come_together_and_a_difference_has_a_reason() -> None:
    for _, step in ALL_STEPS:
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


@cases("name", ["the-cat-sat", "softmax-of-three", "layer-norm-by-hand"])
def test_what_the_notes_print_goes_with_their_inputs_only(name) -> None:
    given = next(example for example in examples() if example.name == name)
    first = given.inputs[0]
    changed = given.with_inputs(**{first.name: first.value + 0.5})
    assert all(step.printed is None and step.agrees is None for step in changed.steps)
    back = changed.with_inputs(**{first.name: first.value})
    assert [step.agrees for step in back.steps] == [step.agrees for step in given.steps]


ERRATA_OF_WORDS = [each for each in errata() if each.step is None]

BATCH, LENGTH, WIDTH, CONTEXT = 2, 3, 4, 8


def erratum(quotation: str) -> Erratum:
    """The one erratum that quotes these words of the notes."""
    (found,) = [each for each in ERRATA_OF_WORDS if quotation in " ".join(each.quotation.split())]
    return found


def refusal(code: str, **names: object) -> str:
    """What PyTorch says to a line of the notes."""
    with pytest.raises(RuntimeError) as refused:
        eval(code, {"torch": torch}, names)
    return str(refused.value)


def quoted_in(text: str) -> str:
    (found,) = re.findall("“(.*?)”", text)
    return found


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
def test_a_transpose_of_all_axes_does_not_fit_a_batch() -> None:
    told = erratum("queries @ keys.T")
    queries, keys = torch.ones(2, BATCH, LENGTH, WIDTH).unbind()
    said = refusal(told.notes_say, queries=queries, keys=keys)
    assert said.startswith(quoted_in(told.why))
    mended = eval(told.arithmetic_gives, {}, {"queries": queries, "keys": keys})
    assert mended.shape == (BATCH, LENGTH, LENGTH)


def test_a_mask_of_the_context_does_not_fit_fewer_tokens() -> None:
    told = erratum("torch.ones(context_length, context_length)")
    mask = torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=1).bool()
    scores = torch.zeros(LENGTH, LENGTH)
    said = refusal("scores.masked_fill(mask, -torch.inf)", scores=scores, mask=mask)
    assert said.startswith(quoted_in(told.why))
    cut = eval(told.arithmetic_gives, {}, {"mask": mask, "n": LENGTH})
    assert scores.masked_fill(cut, -torch.inf).isinf().sum() == 3


def test_four_numbers_do_not_fit_three_rows() -> None:
    refusal("torch.ones(1, 4) @ torch.eye(3)")
    assert "4 × 4" in erratum("Wq[3*3]").arithmetic_gives


def test_a_row_without_a_key_and_a_mask_of_plus_infinity_are_not_numbers() -> None:
    assert "NaN" in erratum("replace all 0's").arithmetic_gives
    assert torch.softmax(torch.full((3,), -torch.inf), -1).isnan().all()
    assert "NaN" in erratum("infite numbers").why
    assert torch.softmax(torch.tensor([1, torch.inf]), -1).isnan().any()


def rounded(values: torch.Tensor) -> str:
    """As the errata write numbers: `.7311`."""
    return "[" + ", ".join(f"{value:.4f}".lstrip("0") for value in values.tolist()) + "]"


def test_the_softmax_of_a_softmax_is_another() -> None:
    told = erratum("softmax(E^3/E^3+E^2")
    once = torch.softmax(torch.tensor([3.0, 2.0]), -1)
    assert rounded(once) in told.arithmetic_gives
    assert rounded(torch.softmax(once, -1)) in told.why
    assert once.tolist() == pytest.approx([e**3 / (e**3 + e**2), e**2 / (e**3 + e**2)])


def test_weights_keep_while_the_proportions_of_the_scores_change() -> None:
    assert "Add 10" in erratum("proportionally").why
    scores = torch.tensor([2.0, 4.0, 1.0])
    torch.testing.assert_close(torch.softmax(scores + 10, -1), torch.softmax(scores, -1))


def test_slopes_of_the_softmax_lie_between_a_quarter_below_and_above_zero() -> None:
    assert "Between −.25 and .25" in erratum("between **0 and 0.25**").arithmetic_gives
    scores = torch.linspace(-8, 8, 401, dtype=torch.float64)
    slopes = torch.stack(
        [
            torch.autograd.functional.jacobian(lambda row: row.softmax(-1), row)
            for row in torch.stack([scores, torch.zeros_like(scores)], -1)[::20]
        ]
    )
    assert slopes.max() == pytest.approx(0.25)
    assert slopes.min() == pytest.approx(-0.25)
    assert slopes[-1].abs().max() < 0.001  # a lead of 8: saturated


def test_without_brackets_the_division_comes_first() -> None:
    told = erratum("2-5/2.236")
    assert f"{eval(told.notes_say):.4f}".replace("-0", "−") in told.why
    assert f"{(2 - 5) / 5**0.5:.4f}".replace("-", "−") in told.arithmetic_gives


def test_epsilon_is_no_power_of_e() -> None:
    told = erratum("le^-5")
    assert f"{exp(-5):.4f}".lstrip("0") in told.why
    assert f"{5 + 1e-5:.5f}" in told.why


def test_the_two_forms_of_gelu_differ_by_half_a_thousandth() -> None:
    told = erratum("nn.GELU()")
    points = torch.linspace(-5, 5, 10_001, dtype=torch.float64)
    exact = torch.nn.GELU()(points)
    torch.testing.assert_close(exact, functional.gelu(points))
    gap = (exact - torch.nn.GELU(approximate="tanh")(points)).abs()
    assert f"{gap.max():.4f}".lstrip("0") in told.why
    assert f"{points[gap.argmax()].abs():.1f}" in told.why


def test_the_houses_are_not_scaled_to_what_stands_in_their_place() -> None:
    told = erratum("0.45 0.55 45 L")
    houses = torch.tensor([[1200, 2], [1500, 3], [2000, 3.5]], dtype=torch.float64)
    centred = houses - houses.mean(0)
    for score in (centred / houses.std(0, correction=0))[0]:
        assert f"{score:.4f}".replace("-", "−") in told.arithmetic_gives
    assert (houses - houses.amin(0))[0].tolist() == [0, 0]


def test_an_output_matrix_of_its_own_takes_more_than_124_million() -> None:
    told = erratum("GPT_CONFIG_124M")
    vocabulary, context, width, layers = 50_257, 1_024, 768, 12
    block = (
        12 * width**2 + width + 5 * width + 4 * width
    )  # W_O and the two linear layers have biases
    tied = (vocabulary + context) * width + layers * block + 2 * width
    assert f"{tied:,}" in told.arithmetic_gives
    assert f"{tied + vocabulary * width:,}" in told.arithmetic_gives
    assert f"{vocabulary * width:,}" in told.why


def test_dropout_meets_a_tenth_on_average_only() -> None:
    assert "probability of 10 %" in erratum("10% of neurons").arithmetic_gives
    torch.manual_seed(0)
    lost = torch.stack([(torch.nn.Dropout(0.1)(torch.ones(10)) == 0).sum() for _ in range(400)])
    assert lost.min() == 0
    assert lost.max() >= 3
    assert lost.double().mean() == pytest.approx(1, abs=0.2)
