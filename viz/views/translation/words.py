"""The words that the translator knows, in groups, and what is said of words that it does not know."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache

import streamlit as st

from model.run.tokenizers import Words
from model.training.lexicon import ADJECTIVES, DETERMINERS, NOUNS, PREPOSITIONS, PRONOUNS, VERBS
from viz.notation.markdown import plain

TRANSLATOR = "translate-en-fr"
Groups = dict[str, tuple[str, ...]]
NAMED = 6  # new words that are named


@cache
def english_groups() -> Groups:
    """The English words, by kind."""
    return {
        "Nouns": _each((noun.english, noun.english_plural) for noun in NOUNS),
        "Adjectives": _each((adjective.english,) for adjective in ADJECTIVES),
        "Verbs": _each((verb.english, verb.english_plural) for verb in VERBS),
        "Articles and the like": _each([(*DETERMINERS, "an")]),
        "Pronouns": tuple(PRONOUNS),
        "Places": tuple(PREPOSITIONS),
        "Small words": ("is", "are", "does", "do", "not", "very", "and", "."),
    }


@cache
def french_groups() -> Groups:
    """The French words, by kind: all that the model knows and that are not English alone."""
    kinds: dict[str, Iterable[tuple[str, ...]]] = {
        "Noms (nouns)": ((noun.french, noun.french_plural) for noun in NOUNS),
        "Adjectifs (adjectives)": (
            (
                *(
                    adjective.french(feminine=feminine, plural=plural)
                    for plural in (False, True)
                    for feminine in (False, True)
                ),
                adjective.masculine_vowel,
            )
            for adjective in ADJECTIVES
        ),
        "Verbes (verbs)": ((verb.french, verb.french_plural) for verb in VERBS),
        "Articles and the like": (
            tuple(form for form in forms if form) for forms in DETERMINERS.values()
        ),
        "Pronoms (pronouns)": ((french,) for french, _ in PRONOUNS.values()),
        "Lieux (places)": ((french,) for french in PREPOSITIONS.values()),
    }
    small = ("est", "sont", "ne", "n'", "pas", "de", "d'", "cet", "très", "et", ".")
    return {kind: _each(words) for kind, words in kinds.items()} | {"Small words": small}


def unknown(text: str, groups: Groups) -> tuple[str, ...]:
    """The words of a text that none of the groups holds, in order, each once."""
    return Words(_each(groups.values())).new_words(text)


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
        f"for “{word}” perhaps " + " or ".join(f"“{found}”" for found in near(word, groups))
        for word in words[:NAMED]
        if near(word, groups)
    ]
    st.info(
        plain(
            f"Not {language} words that the translator knows: {listed}. It was trained on "
            f"{len(_each(groups.values()))} {language} words; the list shows them all."
            + (f" Try {'; '.join(alike)}." if alike else "")
        )
    )


def known_words(groups: Groups, language: str) -> None:
    """The list of words, closed at first."""
    with st.popover(f"The {language} words it knows", width="stretch"):
        for kind, words in groups.items():
            st.markdown(f"**{plain(kind)}:** {plain(', '.join(words))}")


def _each(words: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All the words, each once, in order."""
    return tuple(dict.fromkeys(word for forms in words for word in forms))
