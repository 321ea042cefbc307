"""Every token has a label that can be seen, and none becomes markup; tokens of one word have one number."""

import html
import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.model.tiny import loaded
from viz.notation.labels import LABELS, plotly_label, tick_positions, token_label, word_numbers
from viz.notation.markdown import bold_token, plain

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)  # lone surrogates too


@cases("text, label", [
    (" cat", "·cat"),
    ("cat", "cat"),
    ("", "∅"),
    (" ", "␣"),
    ("  ", "␣␣"),
    ("a b", "a␣b"),
    ("\n", "⏎"),
    ("\t", "⇥"),
    ("\x00", "␀"),
    ("\x7f", "␡"),
    ("\u202eabc", "‹U+202E›abc"),
    ("a\u200bb", "a‹U+200B›b"),
    ("\xa0", "‹U+00A0›"),
    ("\ud800", "‹U+D800›"),
    ("\u0301", "◌\u0301"),
    ("Привет", "Привет"),
    ("<|endoftext|>", "<|endoftext|>"),
])  # fmt: skip
def test_each_kind_of_text_has_its_visible_label(text, label) -> None:
    assert token_label(text) == label


@given(ANY_TEXT)
def test_a_label_is_never_empty_and_holds_nothing_invisible(text: str) -> None:
    label = token_label(text)
    assert label.strip()
    assert all(unicodedata.category(character)[0] not in "CZ" for character in label)
    label.encode()  # no lone surrogate is left


@given(ANY_TEXT)
def test_a_plotly_label_is_the_same_text_without_any_markup(text: str) -> None:
    label = plotly_label(text)
    assert "<" not in label
    assert ">" not in label
    assert html.unescape(label).replace("\u2060", "") == token_label(text).replace("\u2060", "")


def test_a_token_that_looks_like_a_theme_colour_keeps_its_text() -> None:
    assert "#000001" not in plotly_label("#000001")


def test_a_long_label_ends_in_an_ellipsis_and_never_cuts_an_entity() -> None:
    assert token_label("internationalization", 14) == "international…"
    assert plotly_label("<" * 20, 14) == "&lt;" * 13 + "…"
    assert token_label("short", 14) == "short"


@given(st.integers(0, 5000), st.integers(1, 64))
def test_ticks_are_few_evenly_spaced_and_start_at_zero(count: int, limit: int) -> None:
    ticks = tick_positions(count, limit)
    assert len(ticks) <= limit
    assert all(0 <= tick < count for tick in ticks)
    assert len({b - a for a, b in pairwise(ticks)}) <= 1
    assert ticks[:1] == ((0,) if count else ())


def test_up_to_the_limit_every_position_has_its_tick() -> None:
    assert tick_positions(LABELS) == tuple(range(LABELS))
    assert len(tick_positions(LABELS + 1)) < LABELS


def test_a_right_to_left_token_keeps_its_place_in_a_sentence() -> None:
    """Unicode's isolate stands around it, as <bdi> does in HTML, and around nothing else."""
    hebrew, arabic = "\u05d0\u05d1", "\u0643\u062a\u0628 \u0643"
    for kept in (hebrew, arabic):
        assert plain(f"{kept} has 0.5") == f"\u2068{kept}\u2069 has 0\\.5"
        assert bold_token(f" {kept}") == f"**·\u2068{kept.replace(' ', '␣')}\u2069**"
    assert plain(f"{hebrew} → {arabic}") == f"\u2068{hebrew}\u2069 → \u2068{arabic}\u2069"
    assert plain("\u2068x") == "‹U\\+2068›x"  # what is typed hides nothing
    assert plain("Привет, 東京") == "Привет\\, 東京"


@cases(
    "tokens, numbers",
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
def test_a_word_is_one_number(tokens, numbers) -> None:
    assert word_numbers(tokens) == numbers


@cases("name", ["house-gpt", "minilm"])
def test_the_words_of_a_sentence_are_those_that_spaces_part(name) -> None:
    text = "the unaccountable bookkeeper quietly rearranged everything"
    tokens = [token for token in loaded(name).tokenizer.tokens(text) if not token.special]
    assert len(tokens) > len(text.split())
    words = dict[int, str]()
    for token, number in zip(tokens, word_numbers([one.text for one in tokens]), strict=True):
        words[number] = words.get(number, "") + token.text.strip().removeprefix("##")
    assert list(words.values()) == text.split()
