"""Equations with numbers on real pages: "=" stands where the digits printed give the result."""

import re

import pytest

from tests.model.worked.test_equality import equations, holds, value_of
from tests.pages.reading import visit

SENTENCES = ("The animal did not cross the street because it was too tired.", "Anna saw a red ball")
PLACES = (
    ("layer_norm", "This norm", 1),
    ("layer_norm", "Two variances", 2),
    ("feed_forward", "Neurons", 1),
    ("feed_forward", "Dropout", 1),
    ("prediction", "The next token", 1),
)


def lines(latex: str) -> list[str]:
    """The equations of aligned rows, each in one line, and without what only dresses it."""
    plain = re.sub(r"\\(?:begin|end)\{aligned\}|\\text\{then\}|\\;|\\mathbf(?=\{)", "", latex)
    plain = re.sub(r"\\\\\s*&(?==|\\approx)", "", plain)
    rows = (re.sub(r"[&$]|\\!", "", row).strip() for row in plain.split(r"\\"))
    return [re.sub(r"\{(-?[\d.]+)\}$", r"\1", row) for row in rows]


def shown(page: str, view: str, text: str, model: str) -> list[str]:
    app = visit(page, show=view, text=text, model=model)
    return [line for written in app.latex for line in lines(written.value)]


@pytest.mark.parametrize(("page", "view", "least"), PLACES)
def test_an_equals_sign_stands_where_the_digits_give_the_result(
    page: str, view: str, least: int
) -> None:
    for text in SENTENCES:
        for model in ("house-gpt", "stories"):
            worked = [
                (line, sign, fits)
                for line in shown(page, view, text, model)
                for left, sign, right in equations(line)
                if re.search(r"\d", right)
                and (value := value_of(left, {})) is not None
                and (fits := holds(value, right)) is not None
            ]
            assert [line for line, sign, fits in worked if (sign == "=") != fits] == []
            assert len(worked) >= least
