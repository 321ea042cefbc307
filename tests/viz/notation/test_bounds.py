"""A bound that is printed is never smaller than what it bounds."""

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.model.tiny import loaded
from viz.notation.numbers import difference

HOME = Path(__file__).resolve().parents[3] / "pages" / "home.py"


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (1.49e-6, "2e−6"), (7e-7, "7e−7"), (9.01e-7, "1e−6"), (np.float32(0.5), "5e−1")],
)
def test_a_bound_is_rounded_up_to_one_digit(value: float, said: str) -> None:
    assert difference(value) == said


def test_a_bound_holds_and_is_the_least_of_one_digit() -> None:
    for value in 10 ** np.random.default_rng(0).uniform(-12, 0, 1000):
        bound = float(difference(value).replace("−", "-"))
        digit = 10.0 ** np.floor(np.log10(value))
        assert value <= bound < value + digit * (1 + 1e-9)


def test_a_page_says_no_less_than_the_check_of_its_run() -> None:
    text = "the black cat sleeps"
    app = AppTest.from_file(str(HOME), default_timeout=120)
    app.query_params.update({"model": "translate-en-fr", "text": text})
    app.run()
    (said,) = [one.value for one in app.caption if one.value.startswith("Check:")]
    found = re.search(r"at most (\de−\d+)\.", said)
    assert found is not None
    check = loaded("translate-en-fr").trace(text).check()
    assert check <= float(found[1].replace("−", "-"))
