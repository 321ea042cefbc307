"""Numbers as text: exact to four decimals, never made to look like another number; who leads; bounds."""

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from model.analysis.tokens.prediction import probabilities
from tests.cases import cases
from tests.model.tiny import loaded
from viz.notation.numbers import (
    agreeing,
    counted,
    difference,
    fixed,
    leaders,
    led_by,
    moves,
    nats,
    number,
    numbers,
    probability,
    rounded,
    sign_of_sum,
    signed,
    significant,
)
from viz.views.all_heads.averages import ALL, _look_for


def test_a_number_is_written_so_that_it_can_be_read_back(subtests: pytest.Subtests) -> None:
    for value, text in [
        (3, "3"),
        (0, "0"),
        (0.5, "0.5000"),
        (-1.34164, "−1.3416"),
        (163_009_536, "163,009,536"),
        (0.9999999999999998, "1"),
        (np.cos(0.01), "0.99995"),
        (-1e9, "−1e9"),
        (-1e20, "−1e20"),
        (5.62e-17, "5.6e−17"),
        (4.2e-8, "4.2e−8"),
        (6e-5, "0.0001"),
    ]:
        with subtests.test(text=text):
            assert number(value) == text


def test_numbers_are_whole_only_where_all_are() -> None:
    assert numbers(np.array([[1.0, 2.0], [0.0, 3.0]])) == [["1", "2"], ["0", "3"]]
    assert numbers(np.array([1.0, 2.5])) == [[number(1.0), number(2.5)]] == [["1", "2.5000"]]
    assert numbers(np.array(7.0)) == [["7"]]


@given(st.floats(-1e5, 1e12, allow_nan=False))
def test_what_is_written_differs_from_the_number_by_half_a_unit_at_most(value: float) -> None:
    written = number(value)
    wrong = abs(float(written.replace(",", "").replace("−", "-")) - value)
    assert wrong <= (abs(value) * 0.05 if "e" in written else 0.5e-4 + abs(value) * 1e-15)


def test_a_change_below_the_digits_that_are_shown_is_said_to_be_none() -> None:
    assert moves(0.99996, 0.99999) == "stays at 1.000"
    assert moves(0.9949, 0.0121) == "goes from 0.995 to 0.012"


def test_things_are_counted_in_the_number_that_they_have() -> None:
    said = [counted(count, "token") for count in (0, 1, 2, 1234)]
    assert said == ["no tokens", "1 token", "2 tokens", "1,234 tokens"]


LOGITS = st.lists(st.floats(-8, 8), min_size=2, max_size=6)


@given(LOGITS, st.floats(-6, -2), st.randoms())
def test_the_last_digit_of_a_probability_is_known_to_within_one(
    logits: list[float], exponent: float, chance: Random
) -> None:
    size = 10.0**exponent
    moved = [logit + chance.choice((-size, size)) for logit in logits]
    ours, theirs = (probabilities(np.array(row)) for row in (logits, moved))
    error = float(np.abs(np.log(ours) - np.log(theirs)).max())
    for share, true in zip(ours, theirs, strict=True):
        written = probability(share, error, most=6)
        if written.startswith("<"):  # less than can be written
            assert share < float(written[1:])
            continue
        unit = 10.0 ** -len(written.partition(".")[2])
        # Half a unit is lost in writing, and the bound is of the first order.
        assert abs(float(written) - true) <= 1.5 * unit * (1 + error)
        digits = significant(error)
        unit = 10.0 ** (np.floor(np.log10(share)) + 1 - digits)
        assert abs(float(f"{share:.{digits}g}") - true) <= 1.5 * unit * (1 + error)


def test_a_probability_near_one_keeps_digits_that_one_of_a_half_loses() -> None:
    assert probability(0.99951, 0.004) == "0.9995"
    assert probability(0.5, 0.004) == "0.50"
    assert probability(0.5, 0.0) == "0.5000"


def test_what_is_not_0_is_never_written_as_0_and_0_has_no_sign() -> None:
    assert [fixed(value, 3) for value in (0.0, 0.0004, 0.0006)] == ["0.000", "<0.001", "0.001"]
    assert probability(3e-6, 1e-6) == "<0.0001"
    assert nats(-1e-9, 1e-4) == "0.0000"
    assert [signed(text) for text in ("-0.00", "-0.0%", "-0.01", "+0.00")] == [
        "0.00",
        "0.0%",
        "−0.01",
        "+0.00",
    ]


def test_two_computations_of_a_number_have_no_more_digits_than_are_certain() -> None:
    assert agreeing(-3.048131, -3.048121) == ("−3.0481", "−3.0481")
    assert agreeing(4096.0, 4096.001) == ("4096.00", "4096.00")
    assert agreeing(123456.789, 123456.789) == ("123456.79", "123456.79")  # float32: every .008


def test_printed_parts_equal_their_printed_total_or_are_about_it() -> None:
    assert sign_of_sum(("+0.66", "+8.75"), "9.40") == "≈"
    assert sign_of_sum(("+10.41", "−1.01"), "9.40") == "="
    assert sign_of_sum(("1.0000", "<0.0001"), "1.0000") == "≈"


def test_a_large_number_keeps_the_digits_that_hold() -> None:
    assert rounded(12_345.67, 300.0, 1) == "12,000"
    assert rounded(12_345.67, 0.7, 1) == "12,346"
    assert rounded(12.34, 0.001, 1) == "12.3"


NAMES = ["L0H0", "L0H1", "L0H2", "L0H3", "L1H0"]


@cases(
    "values, said, several",
    [
        ([0.1, 0.9, 0.2, 0.3, 0.4], "**L0H1**", False),
        ([0.1, 0.9001, 0.2, 0.9002, 0.4], "**L0H1** and **L0H3**", True),  # printed alike
        ([0.9, 0.9, 0.9, 0.9, 0.4], "**4 of 5 alike**", True),
        ([0.0] * 5, "**all 5 alike**", True),
    ],
)
def test_equal_values_share_the_first_place(values, said, several) -> None:
    assert led_by(NAMES, values, decimals=3) == (said, several)


def test_one_head_alone_leads() -> None:
    assert led_by(["L0H0"], [0.0], decimals=2) == ("**L0H0**", False)
    assert leaders([-0.0, 0.0, -1.0], decimals=2) == (0, 1)


def test_no_token_is_said_to_lead_where_several_are_equal() -> None:
    even = np.full(2, 0.5)
    assert "**" not in _look_for(ALL, even, ["a", "b"], False)
    first = np.array([1.0, 0.0])
    said = _look_for(ALL, first, ["a", "b"], False)
    assert re.match(r"\*\*a\*\* \(position 0\) .*\b1\.00", said)


ALL_HEADS = Path(__file__).resolve().parents[3] / "pages" / "all_heads.py"


def test_a_bound_is_rounded_up_to_one_digit(subtests: pytest.Subtests) -> None:
    for value, said in [
        (0, "0"),
        (1.49e-6, "2e−6"),
        (7e-7, "7e−7"),
        (9.01e-7, "1e−6"),
        (np.float32(0.5), "5e−1"),
    ]:
        with subtests.test(said=said):
            assert difference(value) == said


def test_a_bound_holds_and_is_the_least_of_one_digit() -> None:
    for value in 10 ** np.random.default_rng(0).uniform(-12, 0, 1000):
        bound = float(difference(value).replace("−", "-"))
        digit = 10.0 ** np.floor(np.log10(value))
        assert value <= bound < value + digit * (1 + 1e-9)


def test_a_page_says_no_less_than_the_check_of_its_run() -> None:
    text = "the black cat sleeps"
    app = AppTest.from_file(str(ALL_HEADS), default_timeout=120)
    app.query_params.update({"model": "translate-en-fr", "text": text})
    app.run()
    (said,) = [one.value for one in app.caption if one.value.startswith("Check:")]
    found = re.search(r"at most (\de−\d+)\.", said)
    check = loaded("translate-en-fr").trace(text).check()
    assert check <= float(found[1].replace("−", "-"))
