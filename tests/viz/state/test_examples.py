"""What an example says is to be seen there holds on the model itself."""

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from model import Intervention, Model, Trace, load_model
from model.analysis.heads.contributions import parts_of_logit
from model.loading.registry import models
from model.nn.places import Head
from model.profile.shipped import shipped_profile
from model.trace.arrays import Array
from tests.cases import cases
from tools import weights
from viz.figures.svg import LEVELS
from viz.state.link import from_link, to_link
from viz.state.presets import EXAMPLES, SentenceExample, example_claim
from viz.views.examples.cards import thumbnails

LEAST = 0.5  # of a row's weight: more than all other keys together


@dataclass(frozen=True)
class Line:
    """A line beside the diagonal that an example claims."""

    beside: int  # key - query: -1 the one before
    rows: tuple[int, int]  # the first and the last
    exceptions: tuple[tuple[int, int], ...] = ()  # (query, its largest key): rows said to differ


BY_TITLE = {example.title: example for example in EXAMPLES}
CIRCUITS = {example.title: example for example in EXAMPLES if example.without}
LINES = {
    "The word before": Line(-1, (1, 8)),
    "Circuit: two heads that see the word before": Line(-1, (1, 8)),
    "Circuit: a head that sees only itself": Line(0, (0, 9)),
    "Circuit: the word before, for induction": Line(-1, (1, 8)),
    "Circuit: the letter before": Line(-1, (1, 9)),
    "A repeated list of words": Line(-2, (4, 7), ((3, 3),)),
    "Only itself": Line(0, (0, 13)),
    "An induction head": Line(-4, (6, 10), ((5, 2),)),
    "What an induction head needs": Line(-1, (1, 7)),
    "Rows of letters": Line(-6, (7, 13)),
    "The word before, in an encoder": Line(-1, (1, 11)),
    "The word after": Line(1, (1, 4), ((5, 0),)),
    "The word before, in a deep model": Line(-1, (1, 9)),
}
NEXT = {
    "A repeated name": " Hill",
    "A repeated list of words": " garden",
    "A family name, in a smaller GPT": " Gray",
    "Rows of letters": "m",
    "Who gets the milk": " Mary",
}  # the next token that an example claims
GIVER = "Who gets the milk"  # its cell is the other name, which is made less likely
COLUMN = "Nothing to look for"  # the example whose every row rests on its chosen key


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def traced(example: SentenceExample) -> Trace:
    return loaded(example.view.model).trace(example.view.text)


def weights_of(example: SentenceExample) -> Array:
    return traced(example).find(example.view.place).weights(example.view.head)


def test_there_are_enough_examples_and_no_two_are_one() -> None:
    assert len(EXAMPLES) >= 12
    assert len({example.title for example in EXAMPLES}) == len(EXAMPLES)
    assert len({(example.view.model, example.view.text) for example in EXAMPLES}) == len(EXAMPLES)


def test_every_listed_model_that_a_test_can_load_has_examples() -> None:
    assert {example.view.model for example in EXAMPLES} == {*models, *weights.NAMES}


@pytest.mark.slow
@cases("example", EXAMPLES)
def test_the_small_picture_on_a_card_is_the_head_of_the_model(example) -> None:
    rows = [list(bytes.fromhex(row)) for row in thumbnails()[example.title]]
    expected = np.array(weights_of(example)) * LEVELS
    assert (
        np.abs(np.array(rows) - expected).max() < 1
    )  # `python -m tools.thumbnails` makes them anew


@pytest.mark.slow
@cases("example", EXAMPLES)
def test_the_cell_that_an_example_opens_on_is_the_largest_of_its_row(example) -> None:
    row = weights_of(example)[example.view.query]
    assert row.argmax() == example.view.key
    assert row[example.view.key] > LEAST


@cases("title", LINES)
def test_a_line_beside_the_diagonal_is_there_where_an_example_claims_it(title) -> None:
    """Every row of it, one by one; and the rows that are said to differ do."""
    line, weights = LINES[title], weights_of(BY_TITLE[title])
    first, last = line.rows
    assert first < last < len(weights)
    for query in range(first, last + 1):
        key = query + line.beside
        assert (query, weights[query].argmax()) == (query, key)
        assert weights[query, key] > LEAST
    for query, key in line.exceptions:
        assert not first <= query <= last
        assert weights[query].argmax() == key


@cases("title", LINES)
def test_no_row_of_words_is_left_out_of_a_line_in_silence(title) -> None:
    """A row that could have a cell of the line is on it, is said to differ, or has no such claim:
    a list that is said again speaks of its second round alone."""
    line, trace = LINES[title], traced(BY_TITLE[title])
    first, last = line.rows
    words = [token.text.strip() for token in trace.tokens]
    for query, token in enumerate(trace.tokens):
        if first <= query <= last or query in dict(line.exceptions) or token.special:
            continue
        if line.beside in (-1, 0, 1):
            assert query == 0  # no one stands before the first token
        elif words[query] in words[:query]:
            assert query > last  # said again, and described in words of its own


@pytest.mark.slow
@cases("title, least", [(COLUMN, LEAST), ("The first token takes what is left", 0.9)])
def test_every_row_rests_on_the_column_that_an_example_claims(title, least) -> None:
    example = BY_TITLE[title]
    rows = np.delete(weights_of(example), example.view.key, axis=0)
    assert (rows.argmax(-1) == example.view.key).all()
    assert (rows[:, example.view.key] > least).all()


def test_what_the_examples_of_a_deep_model_name_stands_where_they_say() -> None:
    for title, query, key in (
        ("A pronoun and its noun", "them", "keys"),
        ("A verb and its subject", "was", "door"),
        ("Who gets the milk", "to", "John"),
    ):
        example = BY_TITLE[title]
        words = [token.text.strip() for token in traced(example).tokens]
        assert (words[example.view.query], words[example.view.key]) == (query, key)
        assert len(words) == example.view.query + 1 or query == "them"
    pronoun, verb = BY_TITLE["A pronoun and its noun"], BY_TITLE["A verb and its subject"]
    assert weights_of(pronoun)[pronoun.view.query, pronoun.view.key] > 0.9
    house = [token.text for token in traced(verb).tokens].index(" house")
    assert verb.view.key < house
    assert weights_of(verb)[verb.view.query, house] < 0.1
    assert len(loaded(verb.view.model).attention_names) == 30


def test_the_head_that_looks_at_the_giver_makes_that_name_less_likely() -> None:
    example = BY_TITLE[GIVER]
    (place, head), model = (example.view.place, example.view.head), loaded(example.view.model)
    tokens = [token.text for token in traced(example).tokens]
    assert [at for at, text in enumerate(tokens) if text == " John"][1:] == [example.view.key]
    ids = [traced(example).tokens[tokens.index(name)].id for name in (" Mary", " John")]
    leads = []
    for off in (frozenset[Head](), frozenset({(place, head)})):
        run = model.trace(example.view.text, intervention=Intervention(ablated=off))
        right, wrong = run.require_prediction().after(example.view.query)[ids]
        leads.append(float(right - wrong))
    with_it, without = leads
    assert re.search(rf"“Mary” .*\b{without:.1f} .*“John”.* {with_it:.1f}\.", example.look_for)
    parts = parts_of_logit(model, traced(example), example.view.query, ids[1])
    (effect,) = [part.effect for part in parts if (part.name, part.head) == (place, head)]
    assert effect < -1
    profile = shipped_profile(example.view.model)
    labels = profile.labels
    mine = labels[(labels["layer"] == place) & (labels["head"] == head)].set_index("label")
    assert mine["does"]["names"] == "raises"  # over all prompts of names too
    assert mine["left_out"]["names"] < -1


def test_a_head_that_finds_nothing_rests_where_the_value_is_shortest() -> None:
    example = BY_TITLE[COLUMN]
    lengths = np.linalg.norm(
        traced(example).find(example.view.place).value[example.view.head], axis=-1
    )
    assert lengths[example.view.key] < np.delete(lengths, example.view.key).min() / 10


def test_letters_that_come_a_third_time_look_at_both_places() -> None:
    example = BY_TITLE["Rows of letters"]
    weights = weights_of(example)
    for query, places in ((14, (1, 8)), (15, (2, 9))):
        assert (weights[query, list(places)] > 0.3).all()
        assert weights[query, list(places)].sum() > 0.75


def test_a_word_without_its_space_is_another_token() -> None:
    for title in ("A repeated list of words", "An induction head"):
        example = BY_TITLE[title]
        ((query, _),) = LINES[title].exceptions
        tokens = traced(example).tokens
        assert tokens[query].text == " " + tokens[0].text
        assert tokens[query].id != tokens[0].id


def test_the_last_word_has_no_next_one_and_rests_on_three_others() -> None:
    example = BY_TITLE["The word after"]
    tokens, row = traced(example).tokens, weights_of(example)[5]
    assert [tokens[at].text for at in (0, 5, 6)] == ["[CLS]", "cat", "[SEP]"]
    assert row[[0, 5, 6]].min() > 0.25
    assert row[[0, 5, 6]].sum() > 0.95


def test_the_heads_of_the_next_layer_lean_on_the_word_before() -> None:
    example = BY_TITLE["The word before"]
    off = Intervention(ablated=frozenset({(example.view.place, example.view.head)}))
    with_it, without = (
        run.find("decoder.1.self")
        for run in (
            traced(example),
            loaded(example.view.model).trace(example.view.text, intervention=off),
        )
    )
    for head in range(with_it.heads):
        assert without.weights(head)[8, 1] < with_it.weights(head)[8, 1] - 0.05
    row = with_it.weights(example.view.head)[
        8
    ]  # the head stays the same where the layer is changed
    assert (row.argmax(), row[1] > LEAST) == (1, True)


def test_the_head_for_them_is_the_head_for_it() -> None:
    it, them = (one for one in EXAMPLES if "stands for" in one.title)
    assert (it.view.model, it.view.place, it.view.head) == (
        them.view.model,
        them.view.place,
        them.view.head,
    )
    assert weights_of(them)[them.view.query, them.view.key] > 0.9
    assert traced(it).tokens[it.view.key].text == "animal"


def test_a_smaller_gpt_has_fewer_weights() -> None:
    smaller = next(one for one in EXAMPLES if "smaller GPT" in one.title)
    counts = [
        sum(weight.numel() for weight in loaded(name).module.parameters())
        for name in (smaller.view.model, "house-gpt")
    ]
    assert counts[0] < counts[1]


@cases("title", NEXT)
def test_the_model_goes_on_as_an_example_says(title) -> None:
    example = BY_TITLE[title]
    following = loaded(example.view.model).generate(example.view.text, limit=1)
    assert following[0].text == NEXT[title]


@cases("title", [title for title in NEXT if title != GIVER])
def test_what_comes_next_is_what_the_chosen_cell_looks_at_or_follows(title) -> None:
    """The claim is about this head: the token that comes next is the one it looks at."""
    example = BY_TITLE[title]
    keys = [token.text for token in traced(example).tokens]
    assert keys[example.view.key].strip() == NEXT[title].strip()


def test_the_crossing_of_words_that_change_places_is_there() -> None:
    example = BY_TITLE["Words that change places"]
    weights = weights_of(example)
    assert (weights[1].argmax(), weights[2].argmax()) == (2, 1)
    assert min(weights[1, 2], weights[2, 1]) > LEAST


def test_another_head_looks_at_the_article_where_one_looks_at_the_noun_to_come() -> None:
    example = next(one for one in EXAMPLES if "gender" in one.title)
    translator, sentence = traced(example), example.view.text.split()
    assert translator.target_tokens[example.view.query].text == "mange"
    assert translator.target_tokens[example.view.query + 1].text == "une"
    others = translator.find(example.view.place).weights(0)[example.view.query]
    assert sentence[others.argmax()] == "a"


def test_the_same_words_look_at_each_other() -> None:
    example = BY_TITLE["One word, two meanings"]
    weights, words = weights_of(example), [token.text for token in traced(example).tokens]
    for word in ("bank", "was"):
        first, second = (place for place, one in enumerate(words) if one == word)
        assert weights[first, second] > LEAST
        assert weights[second, first] > LEAST
    rest = [at for at, word in enumerate(words) if words.count(word) == 1 and word != "[SEP]"]
    assert (weights[rest].argmax(-1) == 0).all()


def test_the_diagonal_line_is_of_each_token_alone() -> None:
    example = BY_TITLE["Only itself"]
    assert (np.diagonal(weights_of(example)) > 0.99).all()


@cases("example", EXAMPLES)
def test_a_link_to_an_example_opens_it_and_says_what_to_look_for(example) -> None:
    opened, trouble = from_link(to_link(example.view))
    assert (opened, trouble) == (example.view, ())
    assert example_claim(opened) == example.look_for
