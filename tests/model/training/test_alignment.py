"""Reference alignment: what the grammar says of a sentence, and how much of a head's weight lies on it."""

from itertools import product

import numpy as np
import pytest

from model import Model, load_model
from model.training import grammar
from model.training.alignment import (
    aligning_head,
    crossings,
    heads_by_reference,
    links_of,
    reference_links,
    reference_phrase,
    share_on_reference,
    shares_on_reference,
    target_words,
)
from tests.cases import cases


@pytest.fixture(scope="module")
def translator() -> Model:
    return load_model("translate-en-fr", device="cpu")


def test_every_sentence_of_the_grammar_is_read_back_as_it_was_made() -> None:
    random = np.random.default_rng(11)
    for _ in range(2000):
        phrase = grammar.sentence(random)
        assert reference_phrase(phrase.english) == phrase


@cases(
    "english, french",
    [
        ("the house reads .", "la maison lit ."),  # no sense, but a sentence
        ("the doctor reads", "le médecin lit"),
        ("the cat eats the apple in the garden", "le chat mange la pomme dans le jardin"),
        ("they do not see a dog", "ils ne voient pas de chien"),
        (
            "an old man and a young woman are not very tired",
            "un vieil homme et une jeune femme ne sont pas très fatigués",
        ),
    ],
)
def test_a_sentence_typed_by_hand_has_its_reference_too(english, french) -> None:
    phrase = reference_phrase(tuple(english.split()))
    assert " ".join(phrase.french) == french


@cases("english", [
    "", "cat", "the cats sleeps", "a old man", "these cat sleep", "the black", "cat the sleeps",
    "the cat sleeps sleeps", "hello", "the cat sleeps . .", "is black", "the cat does sleep",
])  # fmt: skip
def test_what_the_grammar_cannot_say_has_no_reference(english) -> None:
    assert reference_phrase(tuple(english.split())) is None


def test_the_reference_follows_the_words_of_another_translation() -> None:
    phrase = reference_phrase(("the", "black", "cat", "sees", "the", "dog"))
    assert reference_links(phrase, phrase.french) == phrase.links
    swapped = reference_links(phrase, ("le", "noir", "chat", "voit", "le", "grand", "chien"))
    assert swapped == ((0,), (1,), (2,), (3,), (4,), (), (5,))


def test_the_share_is_the_weight_on_the_reference_and_nothing_else() -> None:
    weights = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [1, 0, 0], [0, 1, 0]], np.float32)
    links = ((1,), (0, 2), ())
    assert shares_on_reference(weights, links) == pytest.approx((0.5, 0.9, None))
    assert share_on_reference(weights, links) == pytest.approx(0.7)
    assert share_on_reference(weights, ((), ())) is None
    with pytest.raises(ValueError, match="rows of weights"):
        shares_on_reference(weights[:2], links)


def test_a_crossing_is_two_neighbours_whose_sources_stand_the_other_way_round() -> None:
    assert crossings(((0,), (2,), (1,), (3,))) == ((1, 2),)
    assert crossings(((0,), (1,), (), (2,))) == ()


def test_the_translator_is_right_and_its_best_head_reads_the_the_reference_words(
    translator: Model, subtests: pytest.Subtests
) -> None:
    for (english, french), stop in product(
        [
            ("the black cat", "le chat noir"),
            ("the black cat sleeps", "le chat noir dort"),
            ("the old house", "la vieille maison"),
            ("the tired doctor opens the red door", "le médecin fatigué ouvre la porte rouge"),
        ],
        ["", "."],
    ):
        with subtests.test(english=english, stop=stop):
            trace = translator.trace(english + stop)
            assert " ".join(target_words(trace)) == f"{french} {stop}".strip()
            links = links_of(trace)
            ranked = heads_by_reference(trace, links)
            assert len(ranked) == 8
            assert [head.share for head in ranked] == sorted(
                (h.share for h in ranked), reverse=True
            )
            best = ranked[0]
            weights = trace.find(best.place).weights(best.number)
            assert best.share == share_on_reference(weights, links)
            assert best.share > 0.9
            for pair in crossings(links):
                assert all(weights[word].argmax() in links[word] for word in pair)


def test_the_card_names_a_head_that_the_model_has(translator: Model) -> None:
    named = aligning_head("translate-en-fr")
    assert named is not None
    place, head = named
    assert place in translator.attention_names
    assert 0 <= head < translator.config.heads
    assert aligning_head("stories") is None
    assert aligning_head("no-such-model") is None


def test_the_words_that_readers_start_with_are_known(translator: Model) -> None:
    words = (
        "the a my this black white old young small big red beautiful tired cat dog fox house door "
        "book letter doctor student woman man sleeps eats sees opens reads is not"
    )
    assert translator.new_words(words) == ()
