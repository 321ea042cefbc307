"""Whatever is typed is text: in labels, in Markdown, in Plotly, in tables and in every file."""

import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model import Model, load_model
from model.trace.arrays import matrix_csv
from tests.cases import cases
from tests.csv_reading import read_matrix_csv
from tests.hostile import laws
from tests.hostile.attacks import ATTACKS, FORMULAS, MARK, MARKDOWN, SHORT
from tests.hostile.hostile_models import hostile_folder
from tests.hostile.words import any_words
from tools import fuzz
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import LONGEST, MARKS, token_label, visible
from viz.notation.markdown import plain

WORD_JOINER = "\u2060"


@pytest.fixture(scope="module")
def hostile() -> Model:
    """A model whose tokens are whole attacks."""
    return load_model(str(hostile_folder("llama")), device="cpu")


@settings(max_examples=120)
@given(any_words)
@example("www.evil.test")
@example(":material/home:")
@example("a -> b <-> c -- d >= e ~= f")
@example("a" + "\u0301" * 300)
@example("W" * 10_000)
@example("\ud83d\x00\u2028\r\n")
def test_a_label_is_visible_text_wherever_it_is_read(text: str) -> None:
    laws.label_is_text(text)


@cases("attack", ATTACKS)
def test_each_attack_is_a_label_and_nothing_else(attack) -> None:
    laws.label_is_text(attack)
    if attack in MARKDOWN:
        assert not re.search(rf"(?<!\\){re.escape(attack)}", plain(attack))


@settings(max_examples=60)
@given(any_words)
def test_what_markdown_shows_is_what_was_typed(text: str) -> None:
    """Without the backslashes, which Markdown takes away, and what takes no room."""
    shown = re.sub(r"\\(.)", r"\1", plain(text)).replace(WORD_JOINER, "")
    assert shown == visible(" ".join(text.split())).replace(WORD_JOINER, "")


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_ordinary_letters_of_every_script_stay_as_they_are(text: str) -> None:
    seen = "".join(letter for letter in text if letter.isprintable())
    plain_letters = "".join(letter for letter in seen if unicodedata.category(letter)[0] in "LNPS")
    letters = plain_letters.translate(dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0\u2800")))
    assert visible(letters) == letters


def test_a_tower_of_accents_is_counted_and_a_script_with_marks_is_left_alone() -> None:
    assert visible("a" + "\u0301" * 100 + "b") == "a" + "\u0301" * MARKS + "‹+96 accents›b"
    for word in ("หนึ่ง", "שָׁלוֹם", "हिन्दी", "Việt", "❤\ufe0f"):
        assert visible(word) == word


def test_a_label_is_short_whatever_the_token_is() -> None:
    assert token_label("W" * 100_000).endswith("W…")
    assert len(token_label("\u202e" * 100_000)) == LONGEST


@settings(max_examples=30)
@given(st.lists(any_words, min_size=1, max_size=4, unique=True))
@example(list(FORMULAS))
def test_no_cell_of_a_saved_table_is_a_formula(words: list[str]) -> None:
    frame = sheltered_table(
        pd.DataFrame({word: words for word in words} | {"number": 1.5}, index=[*words])
    )
    cells = [*frame.columns, *frame.index, *frame.to_numpy().ravel()]
    assert not [cell for cell in cells if isinstance(cell, str) and cell.startswith(FORMULAS)]
    assert [str(cell).replace(WORD_JOINER, "") for cell in frame.index] == [
        word.replace(WORD_JOINER, "") for word in words
    ]
    assert frame["number"].sum() == 1.5 * len(words)


def test_numbers_that_are_written_out_stay_numbers() -> None:
    frame = pd.DataFrame({"a": ["-0.25", "+1,024", "-1e-5", "+3 %", "-", "--"]})
    assert list(sheltered_table(frame)["a"]) == ["-0.25", "+1,024", "-1e-5", "+3 %", "⁠-", "⁠--"]


@settings(max_examples=30)
@given(st.lists(any_words, min_size=1, max_size=3))
def test_a_matrix_comes_back_from_csv(names: list[str]) -> None:
    values = np.arange(len(names) ** 2, dtype=np.float32).reshape(len(names), -1)
    labels = [token_label(name) for name in names]
    written = matrix_csv({"changed": values}, rows=labels, columns=labels, corner="query \\ key")
    np.testing.assert_array_equal(read_matrix_csv(written)["changed"].values, values)


@settings(max_examples=25)
@given(any_words.filter(lambda text: bool(text.strip())))
@example(" ".join(SHORT))
def test_any_text_gives_numbers_whose_identities_hold(hostile: Model, text: str) -> None:
    trace = hostile.trace(hostile.truncate(text))
    laws.numbers_hold(hostile, trace)


def test_every_picture_message_and_file_of_attacks_is_text(hostile: Model) -> None:
    trace = hostile.trace(" ".join(SHORT))
    assert {token.text for token in trace.tokens} >= set(SHORT)
    place = hostile.attention_names[0]
    for which in range(3):
        laws.pictures_are_text(trace, place, 1, which)
    picture = laws.picture_of(trace, place, 1)
    laws.tables_are_text(picture)
    laws.files_are_text(trace, place, picture)


def test_the_laws_see_what_they_look_for() -> None:
    """Markup that got through would be found: each law fails on text as it was typed."""
    import plotly.graph_objects as go

    for bad in (f"<b>{MARK}</b> <a href=x>", "\u202eabc"):
        with pytest.raises(AssertionError):
            laws.figure_is_text(go.Figure(go.Bar(x=[1], text=[bad])))
    for raw in MARKDOWN:
        assert laws.UNESCAPED.search(raw) or laws.REPLACED.search(raw)
    assert laws.Tags("<p onclick=x><img src=y>").tags == {"p", "onclick", "img", "src"}


def test_the_first_inputs_of_the_fuzz_run_are_answers_or_refusals() -> None:
    tally = fuzz.Tally()
    for number in range(30):
        fuzz.through(number, 1, tally)
    assert tally.failures == []
    assert tally.answers > 5
    assert tally.refusals > 2
