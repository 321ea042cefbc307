"""The steps in which a tokenizer cuts a word end with its own tokens, whatever the text."""

import random
from itertools import pairwise

import pytest
from tokenizers import Tokenizer as Library
from tokenizers import models, normalizers, pre_tokenizers

from model.hub.tokenizer_process import _words as words_and_places
from model.run.tokenizers import gpt2
from model.run.word_cuts import LONGEST, longest_first, merged, whole_gpt2, word_cut, words_of
from tests.cases import cases
from tests.hostile.attacks import ATTACKS
from tests.hostile.words import KINDS
from tests.model.hub_models import smollm2s_tokenizer
from tests.model.tiny import loaded

TEXTS = (
    "Tom Hill saw a red ball. Anna's embeddings weren't tokenised, naïvely: 1234567 café",
    "👩‍👩‍👧 🦊 e\u0301\u0302 \u202eabc\u200b 猫は 한국어 \x00\x07 ",
    "   \n\n\t  x  \r\n y   ",
    "Donaudampfschifffahrtsgesellschaft antidisestablishmentarianism zzzzxq'll",
    *ATTACKS,
    *(writer(random.Random(0))[:200] for writer, _ in KINDS.values()),
)
MODELS = ("house-gpt", "stories", "minilm", "smollm2")


@cases("name", MODELS)
def test_the_last_row_is_the_tokenizers_own_and_the_words_make_its_text(name) -> None:
    tokenizer = smollm2s_tokenizer() if name == "smollm2" else loaded(name).tokenizer
    tried = 0
    for text in filter(str.strip, TEXTS):
        words = words_of(tokenizer, text)
        pieces = []
        for number, word in enumerate(words):
            if len(word.encode()) <= LONGEST:
                cut = word_cut(tokenizer, text, number)
                assert cut.agrees, (word, cut)
                pieces += cut.steps[-1].pieces
                tried += 1
        own = [token for token in tokenizer.tokens(text) if not token.special]
        if all(len(word.encode()) <= LONGEST for word in words):
            assert pieces == [token.raw or token.text for token in own]
    assert tried > 200


def test_gpt2_merges_one_pair_a_step_and_never_a_later_pair_before_an_earlier_one() -> None:
    """Where a pair with a lower rank appears later in the order, a merge has just made it."""
    text = " embeddings antidisestablishmentarianism unbelievable"
    for number, word in enumerate(words_of(whole_gpt2(), text)):
        steps = word_cut(whole_gpt2(), text, number).steps
        assert b"".join(steps[0].pieces) == word.encode()
        for before, after in pairwise(steps):
            assert len(after.pieces) == len(before.pieces) - 1
            pairs = [b"".join(before.pieces[at : at + 2]) for at in range(len(before.pieces) - 1)]
            ranks = [gpt2()._mergeable_ranks.get(pair) for pair in pairs]
            assert after.rank == min(rank for rank in ranks if rank is not None)
            assert ranks.index(after.rank) == after.at
            assert after.pieces[after.at] == pairs[after.at]


def test_merges_by_hand() -> None:
    ranks = {("l", "o"): 1, ("lo", "w"): 2, ("e", "r"): 0}
    steps = merged("lower", lambda left, right: ranks.get((left, right)))
    assert [step.pieces for step in steps] == [
        ("l", "o", "w", "e", "r"), ("l", "o", "w", "er"), ("lo", "w", "er"), ("low", "er"),
    ]  # fmt: skip
    assert [(step.at, step.rank) for step in steps[1:]] == [(3, 0), (0, 1), (0, 2)]


def test_the_longest_piece_first_is_the_librarys_word_piece() -> None:
    vocabulary = {"un": 0, "##aff": 1, "##able": 2, "una": 3, "##ffable": 4, "[UNK]": 5, "u": 6}
    library = Library(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    for word in ("unaffable", "un", "uu", "unax", "unaff", "u" * 101):
        assert list(longest_first(word, vocabulary)[-1].pieces) == library.encode(word).tokens
    assert [step.pieces for step in longest_first("unaffable", vocabulary)] == [
        ("unaffable",), ("una", "##ffable"), ("una", "##ffable"),
    ]  # fmt: skip


def test_a_list_of_whole_words_cuts_none_and_a_long_word_is_refused() -> None:
    assert words_of(loaded("translate-en-fr").tokenizer, "the black cat") == ()
    with pytest.raises(ValueError, match="at most 48 bytes; this one has 60"):
        word_cut(whole_gpt2(), "x" * 60, 0)


@cases(
    "text, places",
    [("我爱 cats dog", [(0, 1), (1, 2), (3, 7), (8, 11)]), ("cafe\u0301 Cats", [(0, 4), (6, 10)])],
)
def test_a_word_stands_where_it_was_typed_though_the_text_is_normalized(text, places) -> None:
    tokenizer = Library(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    assert [place for _, place in words_and_places(tokenizer, text)] == places


def test_a_tokenizer_without_a_known_rule_says_so() -> None:
    tokenizer = loaded("gpt").tokenizer
    assert words_of(tokenizer, "the cat") == ()
    with pytest.raises(ValueError, match="no rule that is known"):
        word_cut(tokenizer, "the cat", 0)
