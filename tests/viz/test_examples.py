"""What an example says is to be seen there holds on the model itself."""

from functools import cache

import numpy as np
import pytest

from model import Model, load_model
from viz.examples import EXAMPLES, Example


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text)
def test_the_cell_that_an_example_opens_on_is_the_largest_of_its_row(example: Example) -> None:
    trace = loaded(example.model).trace(example.text)
    row = trace.find(example.place).weights(example.head)[example.query]
    assert row.argmax() == example.key
    assert row[example.key] > 0.5


@pytest.mark.parametrize(
    ("offset", "words"),
    [(-1, "the one before it"), (1, "at the next one")],
)
def test_a_line_beside_the_diagonal_is_there_where_an_example_claims_it(
    offset: int, words: str
) -> None:
    claimed = [example for example in EXAMPLES if words in example.look_for]
    assert claimed
    for example in claimed:
        weights = (
            loaded(example.model).trace(example.text).find(example.place).weights(example.head)
        )
        along = np.diagonal(weights, offset)
        assert np.median(along) > 0.5, example


def test_the_first_example_goes_on_as_it_says() -> None:
    example = EXAMPLES[0]
    following = loaded(example.model).generate(example.text, limit=1)
    assert following[0].text == " Hill"
