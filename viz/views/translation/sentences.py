"""English sentences for the translator: good ones to start from, and made-up ones by their seed."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from model.loading.registry import models
from model.training import grammar
from model.training.alignment import aligning_head
from viz.notation.markdown import plain
from viz.state.session import arrived, change_view, current, kept_view, lend_view, open_view
from viz.state.view import View
from viz.views.translation.words import TRANSLATOR, advise, english_groups, known_words, unknown

SHAPE = "encoder-decoder"
_SEED, _DRAWN = "encoder-seed", "encoder-drawn"
_SHOWN = 60  # characters of a sentence that is kept


@dataclass(frozen=True)
class Sentence:
    """An English sentence, and what is to be seen in its translation."""

    english: str
    look_for: str


SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        "the black cat sleeps",
        "“black cat” becomes “chat noir”: the two lines cross.",
    ),
    Sentence(
        "the tired doctor opens the red door",
        "Two pairs change places: “tired doctor” and “red door”.",
    ),
    Sentence(
        "the old house",
        "“vieille” stays before its noun, so no lines cross; but “la” and “vieille” are feminine "
        "because of “house”.",
    ),
    Sentence(
        "the beautiful white dress",
        "One adjective stays before the noun, the other goes behind it.",
    ),
    Sentence(
        "the student does not read the letter.",
        "“ne” and “pas” both come from “not”; “does” has no word in French.",
    ),
    Sentence(
        "an old man and a young woman are not very tired",
        "“vieil” instead of “vieux” before a vowel; “fatigués” agrees with both.",
    ),
    Sentence(
        "my white dog eats a small apple.",
        "“blanc” goes behind its noun, “petite” stays before it.",
    ),
    Sentence(
        "this young woman sees the old tree",
        "“this” becomes “cette”: the choice needs “woman”, two words on.",
    ),
    Sentence(
        "these three brown dogs",
        "Not a phrase that the grammar makes: it has no gold, and the model leaves a word out.",
    ),
)
FIRST = SENTENCES[0].english


def made_up(seed: int) -> str:
    """A sentence of the grammar; the same for the same seed."""
    phrase = grammar.sentence(np.random.default_rng(seed))
    return " ".join(phrase.english).replace(" .", ".")


def look_for(text: str, model: str) -> str:
    """What is to be seen in a sentence of the list; "" for others, and in another model."""
    known = SENTENCES if model == TRANSLATOR else ()
    return next((found.look_for for found in known if found.english == text), "")


def translated_here(name: str) -> bool:
    """Whether a model is an encoder–decoder, or may be: of some that is known only once loaded."""
    entry = models.found(name)
    return entry is None or entry.shape in (None, SHAPE)


def sentence_row() -> None:
    """Sentences to choose, one made up, and the words that can be used."""
    listed, number, draw, words = st.columns([3, 1, 1.4, 2.2], vertical_alignment="bottom")
    listed.selectbox(
        "Sentences that show something",
        SENTENCES,
        index=None,
        format_func=lambda sentence: sentence.english,
        placeholder="Choose an English sentence",
        key="encoder-sentence",
        on_change=_open_listed,
    )
    st.session_state.setdefault(_SEED, 1)
    number.number_input("Seed", 0, 999_999, step=1, key=_SEED)
    draw.button("A made-up sentence", key="encoder-made-up", on_click=_draw, width="stretch")
    if current().model == TRANSLATOR:
        with words:
            known_words(english_groups(), "English")
    drawn: tuple[int, str] = st.session_state.get(_DRAWN, (0, ""))
    if drawn[1] and drawn[1] == current().text:
        st.caption(f"Drawn from the grammar with seed {drawn[0]}.")
    if current().model == TRANSLATOR:
        advise(current().text, english_groups(), "English")


def translator_view(text: str = FIRST) -> View:
    """A sentence in the translator, at the head that aligned best when it was examined."""
    place, head = aligning_head(TRANSLATOR) or ("", 0)
    show = current().show
    return View(text=text, model=TRANSLATOR, place=place, head=head, query=1, key=2, show=show)


def open_on_translator() -> None:
    """Whoever comes with a model of another shape finds the translator open, and the own sentence
    kept for the other pages."""
    if arrived() and not translated_here(current().model):
        lend_view(translator_view(sentence_to_open()))
    kept = kept_view()
    if kept is not None:
        st.caption(
            plain(
                f"This page needs an encoder and a decoder, so it opened the translator. "
                f"“{_short(kept.text)}” and {_title(kept.model)} are kept for the other pages."
            )
        )


def sentence_to_open() -> str:
    """What was typed, if the translator can read it; else a sentence that it can."""
    text = current().text
    return text if text.strip() and not unknown(text, english_groups()) else FIRST


def offer_translator(name: str) -> None:
    """Says that a model is no encoder–decoder, and opens one that is."""
    text = sentence_to_open()
    st.info(
        plain(
            f"{name} has one stack only. This page needs an encoder, which reads the sentence, "
            "and a decoder, which writes another one: the translator has both."
        )
    )
    st.button(
        f"Open “{plain(text)}” in the translator",
        key="encoder-open-translator",
        on_click=lambda: open_view(translator_view(text)),
    )


def _open_listed() -> None:
    sentence: Sentence | None = st.session_state["encoder-sentence"]
    if sentence is not None:
        _open(sentence.english)
        st.session_state["encoder-sentence"] = None


def _draw() -> None:
    seed = st.session_state[_SEED]
    text = made_up(seed)
    st.session_state[_DRAWN] = (seed, text)
    st.session_state[_SEED] = seed + 1
    _open(text)


def _open(text: str) -> None:
    """The sentence in the encoder–decoder that is looked at, which writes its own French again."""
    if translated_here(current().model):
        change_view(replace(current(), text=text, target=None))
    else:
        open_view(translator_view(text))


def _title(model: str) -> str:
    entry = models.found(model)
    return model if entry is None else entry.title


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
