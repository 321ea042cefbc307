"""What an example says is to be seen there holds on the model itself."""

from functools import cache

import numpy as np
import pytest

from model import Model, Trace, load_model
from model.trace import Array
from viz.examples import EXAMPLES, Example
from viz.view import example_view, from_link, to_link

LEAST = 0.5  # of a row's weight: more than all other keys together


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def traced(example: Example) -> Trace:
    return loaded(example.model).trace(example.text)


def weights_of(example: Example) -> Array:
    return traced(example).find(example.place).weights(example.head)


def named(examples: list[Example]) -> pytest.MarkDecorator:
    assert examples  # a claim that no example makes any more is no test
    return pytest.mark.parametrize("example", examples, ids=lambda example: example.title)


def test_there_are_enough_examples_and_no_two_are_one() -> None:
    assert len(EXAMPLES) >= 12
    assert len({example.title for example in EXAMPLES}) == len(EXAMPLES)
    assert len({(example.model, example.text) for example in EXAMPLES}) == len(EXAMPLES)


@named(list(EXAMPLES))
def test_the_cell_that_an_example_opens_on_is_the_largest_of_its_row(example: Example) -> None:
    row = weights_of(example)[example.query]
    assert row.argmax() == example.key
    assert row[example.key] > LEAST


@named([example for example in EXAMPLES if example.line is not None])
def test_a_line_beside_the_diagonal_is_there_where_an_example_claims_it(example: Example) -> None:
    along = np.diagonal(weights_of(example), example.line or 0)
    if example.line is not None and example.line < -1:  # it begins where the list is said again
        along = along[-(len(along) // 2) :]
    assert np.median(along) > LEAST


@named([example for example in EXAMPLES if example.column])
def test_every_row_rests_on_the_column_that_an_example_claims(example: Example) -> None:
    rows = np.delete(weights_of(example), example.key, axis=0)
    assert (rows.argmax(-1) == example.key).all()
    assert np.median(rows[:, example.key]) > LEAST


@named([example for example in EXAMPLES if example.goes_on])
def test_the_model_goes_on_as_an_example_says(example: Example) -> None:
    following = loaded(example.model).generate(example.text, limit=1)
    assert following[0].text == example.goes_on


@named([example for example in EXAMPLES if example.goes_on])
def test_what_comes_next_is_what_the_chosen_cell_looks_at_or_follows(example: Example) -> None:
    """The claim is about this head: the token that comes next is the one it looks at."""
    keys = [token.text for token in traced(example).tokens]
    assert keys[example.key].strip() == (example.goes_on or "").strip()


def test_the_crossing_of_words_that_change_places_is_there() -> None:
    example = next(one for one in EXAMPLES if one.title == "Words that change places")
    weights = weights_of(example)
    assert (weights[1].argmax(), weights[2].argmax()) == (2, 1)
    assert min(weights[1, 2], weights[2, 1]) > LEAST


def test_another_head_looks_at_the_article_where_one_looks_at_the_noun_to_come() -> None:
    example = next(one for one in EXAMPLES if "gender" in one.title)
    translator, sentence = traced(example), example.text.split()
    assert translator.target_tokens[example.query].text == "mange"
    assert translator.target_tokens[example.query + 1].text == "une"
    others = translator.find(example.place).weights(0)[example.query]
    assert sentence[others.argmax()] == "a"


def test_the_same_words_look_at_each_other() -> None:
    example = next(one for one in EXAMPLES if one.title == "One word, two meanings")
    weights, words = weights_of(example), [token.text for token in traced(example).tokens]
    for word in ("bank", "was"):
        first, second = (place for place, one in enumerate(words) if one == word)
        assert weights[first, second] > LEAST
        assert weights[second, first] > LEAST


def test_the_diagonal_line_is_of_each_token_alone() -> None:
    example = next(one for one in EXAMPLES if one.title == "Only itself")
    assert np.median(np.diagonal(weights_of(example))) > 0.9


@named(list(EXAMPLES))
def test_a_link_to_an_example_opens_it_and_says_what_to_look_for(example: Example) -> None:
    opened, trouble = from_link(to_link(example_view(example)))
    assert (opened, trouble) == (example_view(example), ())
    assert opened.look_for == example.look_for
