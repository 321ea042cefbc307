"""The words of the English–French grammar, and what each can be combined with. They stand in lexicon.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

VOWELS = "aeiouyàâéèêëîïôùûœ"


@dataclass(frozen=True)
class Noun:
    """`kinds`: "person", "animal", "food", "drink", "text", …"""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kinds: frozenset[str]


@dataclass(frozen=True)
class Adjective:
    """French forms by gender and number. `before`: it stands before the noun."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before: bool
    of: frozenset[str]  # kinds of nouns that it usually describes
    masculine_vowel: str  # before a masculine word that begins with a vowel: "vieil homme"

    def french(self, *, feminine: bool, plural: bool) -> str:
        if plural:
            return self.feminine_plural if feminine else self.masculine_plural
        return self.feminine if feminine else self.masculine


@dataclass(frozen=True)
class Verb:
    """Third person, present. `by`: kinds of subjects. `of`: kinds of objects, empty: none."""

    english: str
    english_plural: str  # also the bare form: "does not sleep"
    french: str
    french_plural: str
    by: frozenset[str]
    of: frozenset[str]


def begins_with_vowel(french: str) -> bool:
    """Whether the word before a French word loses its vowel. Every h here is silent."""
    return french[0] in VOWELS + "h"


_BEFORE_VOWEL = {"vieux": "vieil", "beau": "bel", "nouveau": "nouvel"}


def _plural(french: str) -> str:
    if french[-1] in "sx":
        return french
    return french + ("x" if french.endswith("eau") else "s")


def _both(word: str, plural: str) -> tuple[str, str]:
    """Singular and plural of "one/many", or of "one" with the regular plural."""
    one, _, many = word.partition("/")
    return one, many or plural


def _noun(entry: str, kind: str) -> Noun:
    english, french = entry.split()
    feminine = french.startswith("-")
    french = french.removeprefix("-")
    ending = "es" if english.endswith(("x", "s", "ch")) else "s"
    return Noun(
        *_both(english, english + ending),
        *_both(french, _plural(french)),
        feminine,
        frozenset({kind}),
    )


def _adjective(entry: str, *, before: bool) -> Adjective:
    english, french, *kinds = entry.split()
    masculine, feminine = _both(french, french + "e")
    return Adjective(
        english,
        masculine,
        feminine,
        _plural(masculine),
        _plural(feminine),
        before,
        frozenset(kinds),
        _BEFORE_VOWEL.get(masculine, masculine),
    )


def _verb(entry: str) -> Verb:
    words, subjects, *objects = entry.split("|")
    english, english_plural, french, french_plural = words.split()
    by, of = frozenset(subjects.split()), frozenset(" ".join(objects).split())
    return Verb(english, english_plural, french, french_plural, by, of)


_WRITTEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NOUNS = tuple(
    _noun(entry, kind) for kind, lines in _WRITTEN["nouns"].items() for entry in lines.splitlines()
)
ADJECTIVES = tuple(
    _adjective(entry, before=place == "before")
    for place, lines in _WRITTEN["adjectives"].items()
    for entry in lines.splitlines()
)
VERBS = tuple(map(_verb, _WRITTEN["verbs"].splitlines()))
DETERMINERS = {  # English: French masculine, feminine, before a vowel (None: by gender), plural
    "the": ("le", "la", "l'", "les"),
    "a": ("un", "une", None, None),
    "my": ("mon", "ma", "mon", "mes"),
    "your": ("ton", "ta", "ton", "tes"),
    "his": ("son", "sa", "son", "ses"),
    "our": ("notre", "notre", "notre", "nos"),
    "this": ("ce", "cette", None, None),
    "these": (None, None, None, "ces"),
    "two": (None, None, None, "deux"),
    "three": (None, None, None, "trois"),
}
PRONOUNS = {"he": ("il", False), "she": ("elle", True), "they": ("ils", False)}
PREPOSITIONS = {"in": "dans", "on": "sur", "under": "sous", "behind": "derrière", "with": "avec"}
