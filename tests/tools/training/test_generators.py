"""The generators of training data: what they promise, and that a seed gives the same data again."""

from itertools import pairwise

import numpy as np

from model.run.tokenizers import WordTokenizer, gpt2
from model.training import grammar
from model.training.grammar import ADJECTIVES, NOUNS, Phrase
from model.training.induction import InductionTask, in_context_bigrams
from model.training.recipe import IGNORED, Random
from tests.cases import cases
from tools.training import micro_stories, translate
from tools.training.stories import StoriesTask, repeated_lists
from tools.training.translate import TranslateTask


def seeded(seed: int) -> Random:
    return np.random.default_rng(seed)


@cases("task", [InductionTask(), StoriesTask(), TranslateTask()])
def test_a_seed_gives_the_same_batch_and_another_seed_another(task) -> None:
    first, again, other = (task.batch(seeded(seed), 0) for seed in (3, 3, 4))
    assert first.inputs.equal(again.inputs)
    assert first.targets.equal(again.targets)
    assert not (first.inputs.shape == other.inputs.shape and first.inputs.equal(other.inputs))


@cases("task", [InductionTask(), StoriesTask(), TranslateTask()])
def test_targets_are_the_inputs_shifted_by_one(task) -> None:
    batch = task.batch(seeded(0), 0)
    scored = batch.targets[:, :-1] != IGNORED
    real = batch.targets[:, :-1] != task.tokenizer.end
    both = scored & real
    assert both.any()
    assert batch.inputs[:, 1:][both].equal(batch.targets[:, :-1][both])


def test_a_bigram_is_scored_exactly_where_it_was_shown_before() -> None:
    inputs, targets = in_context_bigrams(seeded(1), np.arange(32), count=8, length=40)
    for row, wanted in zip(inputs, targets, strict=True):
        shown: set[tuple[int, int]] = set()
        for at in range(39):
            pair = (int(row[at]), int(row[at + 1]))
            assert wanted[at] == (pair[1] if pair in shown else IGNORED)
            shown.add(pair)


def test_each_row_of_bigrams_mostly_follows_one_map_of_its_own() -> None:
    inputs, _ = in_context_bigrams(seeded(2), np.arange(32), count=20, length=200)
    faithful = []
    for row in inputs:
        table = np.zeros((32, 32))
        np.add.at(table, (row[:-1], row[1:]), 1)
        assert 6 <= len(set(row.tolist())) <= 24
        faithful.append(table.max(1).sum() / table.sum())
    assert 0.7 < np.mean(faithful) < 0.9


def test_a_repeated_list_is_scored_from_the_second_time_on() -> None:
    inputs, targets = repeated_lists(seeded(0), np.arange(100), count=6, length=50)
    for row, wanted in zip(inputs, targets, strict=True):
        period = int(np.argmax(wanted != IGNORED))
        assert period >= 4
        assert (row[period:] == row[:-period]).all()
        assert (wanted[period:-1] == row[period + 1 :]).all()


def test_every_word_of_the_stories_is_one_token_after_a_space() -> None:
    assert [word for word in micro_stories.vocabulary() if len(gpt2().encode(f" {word}")) > 1] == []


def test_every_word_that_can_begin_a_story_is_one_token() -> None:
    firsts = {template.split()[0].strip(",.") for template in micro_stories.TEMPLATES}
    words = {first for first in firsts if "{" not in first}
    words |= {*micro_stories.WOMEN, *micro_stories.MEN, "He", "She"}
    assert [word for word in words if len(gpt2().encode(word)) > 1] == []


def test_the_stories_tokenizer_spells_no_story_in_bytes() -> None:
    tokenizer = StoriesTask().tokenizer
    random = seeded(5)
    for _ in range(200):
        assert tokenizer.new_words(micro_stories.story(random)) == ()


def test_every_template_begins_a_story_now_and_then() -> None:
    random = seeded(6)
    stories = [micro_stories.story(random) for _ in range(1000)]
    literals = {template.split("{")[0] for template in micro_stories.TEMPLATES}
    unseen = [start for start in literals if not any(story.startswith(start) for story in stories)]
    assert unseen == []


def test_a_person_with_a_surname_is_never_named_without_it() -> None:
    random = seeded(7)
    for _ in range(300):
        words = micro_stories.story(random).replace(".", " ").replace(",", " ").split()
        following: dict[str, set[bool]] = {}
        for name, after in zip(words, [*words[1:], ""], strict=True):
            if name in micro_stories.WOMEN + micro_stories.MEN:
                following.setdefault(name, set()).add(after in micro_stories.SURNAMES)
        assert all(len(kinds) == 1 for kinds in following.values())


def sentences(count: int) -> list[Phrase]:
    random = seeded(8)
    return [grammar.sentence(random) for _ in range(count)]


def test_every_french_word_is_linked_to_english_words_of_its_sentence() -> None:
    for phrase in sentences(500):
        assert len(phrase.links) == len(phrase.french)
        assert all(links for links in phrase.links)
        assert {at for links in phrase.links for at in links} <= set(range(len(phrase.english)))


def test_the_same_english_is_always_the_same_french() -> None:
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for phrase in sentences(2000):
        assert known.setdefault(phrase.english, phrase.french) == phrase.french


def test_swapped_words_stand_the_other_way_round_in_french() -> None:
    swapped = [phrase for phrase in sentences(500) if phrase.swapped]
    assert len(swapped) > 100
    for phrase in swapped:
        for noun, adjective in zip(phrase.swapped[::2], phrase.swapped[1::2], strict=True):
            assert noun < adjective
            assert phrase.links[noun] > phrase.links[adjective]


def test_every_word_of_the_grammar_is_one_token_and_reads_back() -> None:
    tokenizer = WordTokenizer(translate.words())
    for phrase in sentences(500):
        for said in (phrase.english, phrase.french):
            ids = tokenizer.encode(" ".join(said))
            assert tuple(tokenizer.words[id_] for id_ in ids) == said


def test_the_translator_never_learns_what_is_held_out() -> None:
    task = TranslateTask()
    adjectives = {adjective.english for adjective in ADJECTIVES}
    nouns = {noun.english for noun in NOUNS}
    for seed in range(5):
        batch = task.batch(seeded(seed), 0)
        for ids, real in zip(batch.source, batch.padding, strict=True):
            english = tuple(task.tokenizer.words[id_] for id_ in ids[real].tolist())
            assert not translate.is_held_out_sentence(Phrase(english, (), ()))
            for adjective, noun in pairwise(english):
                described = adjective in adjectives and noun in nouns
                assert not (described and translate.is_held_out_pair(adjective, noun))
