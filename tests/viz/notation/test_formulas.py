"""Formulas name their slots from a known list and say what this layer really does."""

import math
import re
from itertools import product
from typing import Any

from model.nn.config import Projection
from tests.cases import cases
from viz.notation.formulas import StageName, StepFormula, formulas

SLOT = re.compile(r"@\(?((?:ink:)?[a-z_]+\d*)\)?@")
NUMBERS = {"row", "column", "query_position", "key_position", "value", "length", "scale"} | {
    *("scores", "scaled", "masked", "weights", "largest", "sum", "exponential"),
    *("capped", "bias", "biased", "sink", "sink_weight"),
    *(f"{name}{n}" for name in ("q", "k", "w", "v", "product") for n in range(2)),
}
INKS = {f"ink:{name}" for name in ("query", "key", "value", "score", "weight", "output")}


def made(
    scale: float = 0.125,
    width: int = 64,
    keys: int = 9,
    mask_value: float = -math.inf,
    **later: Any,
) -> dict[StageName, StepFormula]:
    return formulas(scale=scale, key_width=width, keys=keys, mask_value=mask_value, **later)


ALL: dict[str, Any] = {
    "later": ("capped", "biased", "masked"),
    "needs": {"cap": 50.0, "bias": True, "sinks": True},
}


def test_each_later_step_reads_the_one_before_it_that_the_layer_has() -> None:
    found = made(**ALL)
    assert r"\tanh" in found["capped"].general
    assert "capped" in found["biased"].general
    assert "biased" in found["masked"].general
    assert "sink" in found["weights"].general
    assert all("@sink_weight@" in found["weights"].numeric[case] for case in ("cell", "forbidden"))
    assert "scaled" in made(later=("biased",), needs={"bias": True})["biased"].general
    assert "biased" in made(later=("biased",), needs={"bias": True})["weights"].general
    assert "not capped" in made(later=("capped", "masked"))["capped"].general
    assert "no bias" in made(later=("biased", "masked"))["biased"].general
    assert "sink" not in made()["weights"].general


def templates(formula: StepFormula) -> list[str]:
    return [formula.general, *formula.numeric.values()]


@cases("case", [{}, {"scale": 1.0}, {"scale": 0.3}, {"width": 1, "keys": 1}, ALL])
def test_every_slot_is_one_the_browser_can_fill(case) -> None:
    for formula in made(**case).values():
        for template in templates(formula):
            assert set(SLOT.findall(template)) <= NUMBERS | INKS
            assert SLOT.sub("", template).count("@") == 0
            assert template.count("{") == template.count("}")
            assert template.count(r"\begin") == template.count(r"\end")


def test_a_general_formula_has_no_number_to_fill() -> None:
    for formula in made().values():
        assert set(SLOT.findall(formula.general)) <= INKS


def test_the_models_own_factor_is_written_as_a_root_and_any_other_as_a_factor() -> None:
    assert r"\sqrt{d_k}" in made(scale=0.125, width=64)["scaled"].general
    assert "8.0000" in made(scale=0.125, width=64)["scaled"].numeric["cell"]
    assert r"\sqrt" not in made(scale=0.2)["scaled"].general
    assert "not scaled" in made(scale=1.0)["scaled"].general


@cases(
    "mask_value, latex",
    [(-math.inf, r"-\infty"), (-1e9, "-10^{9}"), (-1e20, "-10^{20}"), (0.0, "0"), (-2.5, "-2.5")],
)
def test_a_masked_score_becomes_the_mask_value(mask_value, latex) -> None:
    assert latex in made(mask_value=mask_value)["masked"].general
    assert latex in made(mask_value=mask_value)["masked"].numeric["forbidden"]


def test_a_sum_shows_two_terms_and_dots_only_where_more_follow() -> None:
    assert r"\cdots" in made(width=3)["scores"].numeric["cell"]
    assert r"\cdots" not in made(width=2)["scores"].numeric["cell"]
    assert "@(q1)@" not in made(width=1)["scores"].numeric["cell"]
    assert r"\cdots" not in made(keys=2)["output"].numeric["cell"]


@cases("biased, turned, normed", product([True, False], [True, False], [True, False]))
def test_vectors_are_written_as_this_layer_makes_them(biased, turned, normed) -> None:
    found = formulas(
        scale=1,
        key_width=4,
        keys=3,
        mask_value=-math.inf,
        projection=Projection(biased, normed, turned),
    )
    for name in ("query", "key"):
        for text in (found[name].general, found[name].plain):
            assert ("b_" in text) == biased
            assert ("R_i" in text) == turned
            assert ("norm" in text) == normed
    assert ("b_V" in found["value"].general) == biased
    assert "R_i" not in found["value"].general
