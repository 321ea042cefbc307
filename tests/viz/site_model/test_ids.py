"""In the browser a text becomes the same ids as in Python, and is refused with the same sentence."""

import random
from unicodedata import category

import pytest

from model.run.tokenizers import WordTokenizer
from tests.hostile.attacks import ATTACKS
from tests.hostile.words import text_of
from tests.viz.site_model.in_node import Job, each_model, in_node, loaded

LONGEST = 2_000  # letters: a longer text is no other kind of text
TEXTS = 300
_CHOSEN = (
    "",
    " ",
    "\n\n  a\tb \u00a0c\u2003d\u3000e  ",
    "\x85\x1c\x1d\x1e\x1f \ufeff\u200b\u180e",  # spaces to some programs and not to others
    "it's IT'S we'll 've 'd ''s",
    "x²³ ½ Ⅷ ④ ៣ 三 〇 ௰",  # numbers of every kind
    "<|endoftext|> <start> <end>",
    "\ud83d a \udc00\ud800 \ud83d\ude00",  # halves of a character, and one whole
    "I\u0307 İ ẞ ΑΣ ΑΣΑ ’ſ",  # letters whose lower case is longer, or depends on the place
    "👩‍👩‍👧 e\u0301 🇫🇷 \U000e0041",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabababababababababababab",
    "a_b c' d'e <a> <ab_1> < a>",
)


def texts() -> list[str]:
    """Hostile ones, ordinary ones, and where programs count characters in different ways. Programs know
    different versions of Unicode, so without characters that Python's does not have."""
    dice = random.Random(5)
    drawn = (text_of(dice)[1][:LONGEST] for _ in range(TEXTS))
    known = ("".join(one for one in text if category(one) != "Cn") for text in drawn)
    return [*_CHOSEN, *ATTACKS, *known]


@each_model
def test_the_ids_of_any_text_are_pythons(name: str) -> None:
    tokenizer, asked = loaded(name).tokenizer, texts()
    refused = 0
    for text, got in zip(asked, in_node(name, Job(encoded=asked))["encoded"], strict=True):
        try:
            expected: object = tokenizer.encode(text)  # type: ignore[attr-defined]
        except ValueError as refusal:
            refused += 1
            expected = {"refusal": str(refusal)}
        assert got == expected, repr(text)
    assert refused < len(asked) / 2 or isinstance(tokenizer, WordTokenizer)


def refusal_of(name: str, text: str) -> str:
    with pytest.raises(ValueError, match="text") as refusal:
        loaded(name).trace(text)
    return str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stories", "induction", "translate-en-fr"])
def test_a_text_that_is_blank_or_too_long_is_refused_with_the_same_sentence(name: str) -> None:
    most = loaded(name).config.n_ctx
    blank, longest, longer = " \n\x1c", " ".join("a" * most), " ".join("a" * (most + 1))
    endless = "a" * 1_000_000  # whose tokens are not counted
    got = in_node(name, Job(ids=[blank, longest, longer, endless]))["ids"]
    assert got[0] == {"refusal": refusal_of(name, blank)}
    assert len(got[1]) == most
    assert got[2] == {"refusal": refusal_of(name, longer)}
    assert name != "stories" or f"more than {most} tokens" in got[3]["refusal"]
