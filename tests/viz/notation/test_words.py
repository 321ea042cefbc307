"""Tokens of one word have one number."""

import pytest

from tests.model.tiny import loaded
from viz.notation.labels import word_numbers


@pytest.mark.parametrize(
    ("tokens", "numbers"),
    [
        (["The", " un", "account", "able", " cat", "."], [0, 1, 1, 1, 2, 3]),
        (["[CLS]", "un", "##account", "##able", "cat", "##", "[SEP]"], [0, 1, 1, 1, 2, 3, 4]),
        (["the", "black", "cat"], [0, 1, 2]),
        (["a", " 12", "34", "\n", "b"], [0, 1, 1, 2, 3]),
        (["a", " ", "b", "c", " d"], [0, 1, 1, 1, 2]),
        (["", "##x", ""], [0, 1, 2]),
        ([], []),
    ],
)
def test_a_word_is_one_number(tokens: list[str], numbers: list[int]) -> None:
    assert word_numbers(tokens) == numbers


@pytest.mark.parametrize("name", ["house-gpt", "minilm"])
def test_the_words_of_a_sentence_are_those_that_spaces_part(name: str) -> None:
    text = "the unaccountable bookkeeper quietly rearranged everything"
    tokens = [token for token in loaded(name).tokenizer.tokens(text) if not token.special]
    assert len(tokens) > len(text.split())
    words = dict[int, str]()
    for token, number in zip(tokens, word_numbers([one.text for one in tokens]), strict=True):
        words[number] = words.get(number, "") + token.text.strip().removeprefix("##")
    assert list(words.values()) == text.split()
