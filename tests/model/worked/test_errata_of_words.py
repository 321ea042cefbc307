"""Errata of words and code, tried out: what PyTorch says of the code, and what the formulas give."""

from __future__ import annotations

import re
from math import e, exp

import pytest
import torch
from torch.nn import functional

from model.worked import Erratum, errata

OF_WORDS = [each for each in errata() if each.step is None]
BATCH, LENGTH, WIDTH, CONTEXT = 2, 3, 4, 8


def erratum(quotation: str) -> Erratum:
    """The one erratum that quotes these words of the notes."""
    (found,) = [each for each in OF_WORDS if quotation in " ".join(each.quotation.split())]
    return found


def refusal(code: str, **names: object) -> str:
    """What PyTorch says to a line of the notes."""
    with pytest.raises(RuntimeError) as refused:
        eval(code, {"torch": torch}, names)
    return str(refused.value)


def quoted(text: str) -> str:
    (found,) = re.findall("“(.*?)”", text)
    return found


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
def test_a_transpose_of_all_axes_does_not_fit_a_batch() -> None:
    told = erratum("queries @ keys.T")
    queries, keys = torch.ones(2, BATCH, LENGTH, WIDTH).unbind()
    said = refusal(told.notes_say, queries=queries, keys=keys)
    assert said.startswith(quoted(told.why))
    mended = eval(told.arithmetic_gives, {}, {"queries": queries, "keys": keys})
    assert mended.shape == (BATCH, LENGTH, LENGTH)


def test_a_mask_of_the_context_does_not_fit_fewer_tokens() -> None:
    told = erratum("torch.ones(context_length, context_length)")
    mask = torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=1).bool()
    scores = torch.zeros(LENGTH, LENGTH)
    said = refusal("scores.masked_fill(mask, -torch.inf)", scores=scores, mask=mask)
    assert said.startswith(quoted(told.why))
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
