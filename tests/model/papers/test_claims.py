"""The list of claims, and the rules by which figures are judged."""

import re

import pytest

from model.papers.asking import MEASUREMENTS
from model.papers.claims import HOLDS, PaperQuantity, VerdictRule, brief, claims, distance
from model.papers.stored import read_stored
from tests.cases import cases


def test_each_claim_is_measured_and_each_measurement_belongs_to_a_claim() -> None:
    assert list(MEASUREMENTS) == list(claims())
    assert len(claims()) >= 16


def test_each_claim_names_its_paper_with_the_year() -> None:
    for claim in claims().values():
        source = claim.figure_of_the_paper.source
        assert re.search(r" \d{4}, [A-Z“i]", source), claim.name
        words, _, how = claim.figure_of_the_paper.words.rpartition(" (")
        assert re.fullmatch(r"(Direction only|Compared: .*|Not compared: .*)[^)]*\.\)", how), (
            claim.name
        )
        has_number = re.search(r"\d+(\.\d+)? (%|nats|billion|times)|\d\.\d\d| of the \d", words)
        assert bool(has_number) != how.startswith("Direction only"), claim.name


@cases(
    "rule, meets, fails",
    [
        ({"at_least": 0.5}, (0.5, 9.0), (0.49, 0.0)),
        ({"at_most": 0.5}, (0.5, 0.0), (0.51, 9.0)),
        ({"times": 2.0}, (0.4, 0.2), (0.39, 0.2)),
        ({"times": 2.0}, (0.1, -1.0), (-1.5, -1.0)),  # under a negative control it is not met
        ({"share": 0.5}, (0.1, 0.2), (0.11, 0.2)),
        ({"above": 0.1}, (0.5, 0.25), (0.3, 0.25)),
        ({"below": 0.1}, (0.25, 0.5), (0.45, 0.5)),
    ],
)
def test_each_condition_decides(rule, meets, fails) -> None:
    assert VerdictRule(**rule).holds(*meets)
    assert not VerdictRule(**rule).holds(*fails)
    met = (
        VerdictRule(at_least=-100.0, **rule)
        if "at_least" not in rule
        else VerdictRule(at_most=100.0, **rule)
    )
    assert met.holds(*meets)
    assert not met.holds(*fails)


def test_each_answer_that_does_not_hold_leaves_a_condition_unmet_and_the_others_none() -> None:
    for _, results in read_stored().values():
        for one in results:
            if one.figure is None or one.control is None:
                continue
            rule = claims()[one.name].rule
            unmet = rule.unmet(one.figure.value, one.control.value)
            if one.verdict == HOLDS:
                assert not unmet, one
            else:
                assert unmet or rule.errors is not None, one
            assert all(words in rule.words for words in unmet)


def test_a_distance_within_its_standard_errors_is_none() -> None:
    rule = VerdictRule(above=0.1, errors=2.0)
    assert rule.holds(0.6, 0.3, 0.1)
    assert not rule.holds(0.6, 0.3, 0.2)
    with pytest.raises(ValueError, match="none is known"):
        rule.holds(0.6, 0.3)


def test_what_rounding_sets_apart_is_not_apart() -> None:
    assert distance(0.1 + 0.2, 0.3) == 0 != (0.1 + 0.2) - 0.3
    assert distance(0.3, 0.1) == 0.3 - 0.1
    assert distance(2e-5, -1e-5) == 2e-5 + 1e-5


def test_a_rule_without_a_condition_is_refused() -> None:
    with pytest.raises(ValueError, match="judges nothing"):
        VerdictRule()


def test_the_words_of_a_rule_name_its_bounds() -> None:
    words = VerdictRule(at_least=0.5, times=2.0).words
    assert "0.5" in words
    assert "2 times the control" in words


@cases(
    "value, written",
    [(0.9144, "0.914"), (12.34, "12.3"), (1540.2, "1,540"), (-0.02, "−0.020"), (0.0, "0.000")],
)
def test_numbers_have_three_digits(value, written) -> None:
    assert brief(value) == written
    assert str(PaperQuantity(value, "nats")) == f"{written} nats"
    assert float(PaperQuantity(value, "nats")) == value
