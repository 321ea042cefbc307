"""The words that the translator knows, sentences of them to start from, and what is said of other words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache

import numpy as np
import streamlit as st

from model.loading.registry import models
from model.run.tokenizers import WordTokenizer
from model.training import grammar
from model.training.alignment import aligning_head
from model.training.grammar import ADJECTIVES, DETERMINERS, NOUNS, PREPOSITIONS, PRONOUNS, VERBS
from viz.elements.one_of import open_one
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.state.link import View
from viz.state.look import Look
from viz.state.session import (
    arrived,
    change_view,
    current,
    kept_view,
    open_view,
    push_temporary_view,
)

say = sentences_of("translation.sentences")

TRANSLATOR = "translate-en-fr"
Groups = dict[str, tuple[str, ...]]
NAMED = 6  # new words that are named
SHAPE = "encoder-decoder"
_SEED, _DRAWN = "encoder-seed", "encoder-drawn"
_SHOWN = 60  # characters of a sentence that is kept
SENTENCES = {  # English: what there is to see in its translation
    say("black_cat_sleeps"): say("black_cat_becomes"),
    say("tired_doctor_opens"): say("pairs_change_places"),
    "the old house": say("vieille_stays_before"),
    say("beautiful_white_dress"): say("adjective_stays_before"),
    say("student_not_read"): say("ne_pas_both_come"),
    say("old_man_young_woman"): say("vieil_instead_vieux"),
    say("my_white_dog_eats"): say("blanc_goes_after"),
    say("young_woman_sees"): say("becomes_cette_choice"),
    say("three_brown_dogs"): say("grammar_cannot_make"),
}
FIRST = next(iter(SENTENCES))


@cache
def english_groups() -> Groups:
    return {
        "Nouns": _each((noun.english, noun.english_plural) for noun in NOUNS),
        "Adjectives": _each((adjective.english,) for adjective in ADJECTIVES),
        "Verbs": _each((verb.english, verb.english_plural) for verb in VERBS),
        say("articles_like"): _each([(*DETERMINERS, "an")]),
        "Pronouns": tuple(PRONOUNS),
        "Places": tuple(PREPOSITIONS),
        "Small words": ("is", "are", "does", "do", "not", "very", "and", "."),
    }


@cache
def french_groups() -> Groups:
    """The French words, by kind: all that the model knows and that are not English alone."""
    forms = [(feminine, plural) for plural in (False, True) for feminine in (False, True)]
    kinds: dict[str, Iterable[tuple[str, ...]]] = {
        "Noms (nouns)": ((noun.french, noun.french_plural) for noun in NOUNS),
        "Adjectifs (adjectives)": (
            (
                *(one.french(feminine=feminine, plural=plural) for feminine, plural in forms),
                one.masculine_vowel,
            )
            for one in ADJECTIVES
        ),
        "Verbes (verbs)": ((verb.french, verb.french_plural) for verb in VERBS),
        say("articles_like"): (tuple(filter(None, forms)) for forms in DETERMINERS.values()),
        "Pronoms (pronouns)": ((french,) for french, _ in PRONOUNS.values()),
        "Lieux (places)": ((french,) for french in PREPOSITIONS.values()),
    }
    small = ("est", "sont", "ne", "n'", "pas", "de", "d'", "cet", "très", "et", ".")
    return {kind: _each(words) for kind, words in kinds.items()} | {"Small words": small}


def unknown(text: str, groups: Groups) -> tuple[str, ...]:
    """The words of a text that none of the groups holds, in order, each once."""
    return WordTokenizer(_each(groups.values())).new_words(text)


def near(word: str, groups: Groups) -> tuple[str, ...]:
    """Known words that are spelled much like this one, the nearest first; at most three."""
    return tuple(get_close_matches(word, _each(groups.values()), n=3, cutoff=0.72))


def advise(text: str, groups: Groups, language: str) -> None:
    """What to do about the words of a text that the translator cannot read in this language."""
    words = unknown(text, groups)
    if not words:
        return
    listed = ", ".join(f"“{word}”" for word in words[:NAMED])
    listed += " and more" if len(words) > NAMED else ""
    alike = [
        f"for “{word}”, perhaps " + " or ".join(f"“{found}”" for found in near(word, groups))
        for word in words[:NAMED]
        if near(word, groups)
    ]
    st.markdown(
        plain(
            say(
                "translator_not_know",
                language=language,
                listed=listed,
                each=len(_each(groups.values())),
            )
            + (f" Try {'; '.join(alike)}." if alike else "")
        )
    )


def known_words(groups: Groups, language: str) -> None:
    with st.popover(say("words_knows", language=language)):
        _listed(groups)


def _listed(groups: Groups) -> None:
    for kind, words in groups.items():
        st.markdown(f"**{plain(kind)}:** {plain(', '.join(words))}")


def _each(words: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for forms in words for word in forms))


def made_up(seed: int) -> str:
    """A sentence of the grammar; the same for the same seed."""
    phrase = grammar.sentence(np.random.default_rng(seed))
    return " ".join(phrase.english).replace(" .", ".")


def worth_seeing(text: str, model: str) -> str:
    """What there is to see in a sentence of the list; "" for others, and in another model."""
    return SENTENCES.get(text, "") if model == TRANSLATOR else ""


def translated_here(name: str) -> bool:
    """Whether a model is an encoder–decoder, or may be: of some that is known only once loaded."""
    entry = models.found(name)
    return entry is None or entry.shape in (None, SHAPE)


def readable() -> bool:
    """Whether the translator knows the words of the text, English or French; another model is asked when
    it runs."""
    text = current().text
    new = set(unknown(text, english_groups())) & set(unknown(text, french_groups()))
    return current().model != TRANSLATOR or (bool(text.strip()) and not new)


def other_sentences(look: Look | None = None) -> None:
    """In one box: sentences to choose, one made up, and the words that can be used. look: what the part of
    the page shows that this stands in; where the box changes the sentence, the whole page is drawn anew."""
    view = current()
    if look is not None and (
        view.model != look.request.model or look.model.truncate(view.text) != look.request.text
    ):
        st.rerun()
    with st.popover("Other sentences", icon=":material/translate:", key="encoder-sentences"):
        open_one(
            "Example sentences",
            list(SENTENCES),
            "encoder-sentence",
            placeholder=say("choose_english_sentence"),
            take=_open,
        )
        st.button("Make up a sentence", key="encoder-made-up", on_click=_draw)
        if view.model == TRANSLATOR:
            st.caption(say("english_words_knows"))
            _listed(english_groups())


def say_origin() -> None:
    """Whose sentence is shown: one that the grammar made, or one that a page opened beside the visitor's,
    which waits for the other pages."""
    number, drawn = st.session_state.get(_DRAWN, (0, ""))
    if drawn and drawn == current().text:
        st.caption(say("made_grammar_seed", number=number))
    waiting = kept_view()
    if waiting is not None:
        text = waiting.text
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        st.caption(plain(say("page_needs_encoder", text=text, title=models.title(waiting.model))))


def advise_on_english() -> None:
    """What to do about the words of the sentence that the translator cannot read."""
    if current().model == TRANSLATOR:
        advise(current().text, english_groups(), "English")


def translator_view(text: str = FIRST) -> View:
    """A sentence in the translator, at the head that aligned best when it was examined."""
    place, head = aligning_head(TRANSLATOR) or ("", 0)
    show = current().show
    return View(text=text, model=TRANSLATOR, place=place, head=head, query=1, key=2, show=show)


def open_on_translator() -> None:
    """Opens the translator where the visitor's model has another shape. The visitor's own sentence and
    model are kept for the other pages."""
    if arrived() and not translated_here(current().model):
        push_temporary_view(translator_view(sentence_to_open()))


def sentence_to_open() -> str:
    """What was typed, if the translator can read it; else a sentence that it can."""
    text = current().text
    return text if text.strip() and not unknown(text, english_groups()) else FIRST


def offer_translator(title: str) -> None:
    """Says that a model is no encoder–decoder, and opens one that is."""
    text = sentence_to_open()
    st.markdown(plain(say("stack_only_page", title=title)))
    st.button(
        say("open_translator", text=text),
        key="encoder-open-translator",
        on_click=lambda: open_view(translator_view(text)),
    )


def _draw() -> None:
    seed = st.session_state.get(_SEED, 1)
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
