"""The words of the English–French grammar, and what each can be combined with."""

from dataclasses import dataclass

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


_NOUNS = {
    "person": "man/men homme; boy garçon; doctor médecin; student étudiant; teacher professeur; "
    "friend ami; king roi; father père; brother frère; baker boulanger; neighbour voisin; "
    "woman/women -femme; girl -fille; queen -reine; mother -mère; sister -sœur; aunt -tante; "
    "child/children enfant",
    "animal": "cat chat; dog chien; fox renard; horse cheval/chevaux; bird oiseau; rabbit lapin; "
    "mouse/mice -souris; cow -vache; wolf/wolves loup; lion lion; bear ours; duck canard; hen -poule",
    "food": "apple -pomme; bread pain; cheese fromage; cake gâteau; soup -soupe; pear -poire; egg œuf",
    "drink": "water -eau; milk lait; coffee café; tea thé",
    "text": "book livre; letter -lettre; newspaper journal/journaux; story/stories -histoire; "
    "poem poème; message message",
    "closed": "door -porte; window -fenêtre; box -boîte; bag sac; drawer tiroir",
    "place": "house -maison; garden jardin; street -rue; bridge pont; school -école; church -église; "
    "village village; city/cities -ville; castle château; forest -forêt; kitchen -cuisine",
    "thing": "car -voiture; chair -chaise; table -table; tree arbre; flower -fleur; boat bateau; "
    "hat chapeau; dress -robe; shirt -chemise; coat manteau; key -clé; lamp -lampe; bed lit",
}
_EVERYTHING = "person animal food drink text closed place thing"
_OBJECTS = "text closed thing"

# English, French masculine and feminine (one form: add "e"), the kinds it usually describes.
_BEFORE = (
    f"old vieux/vieille {_EVERYTHING}; young jeune/jeune person animal; small petit {_EVERYTHING}; "
    f"big grand {_EVERYTHING}; beautiful beau/belle {_EVERYTHING}; good bon/bonne {_EVERYTHING}; "
    f"bad mauvais {_EVERYTHING}; new nouveau/nouvelle person {_OBJECTS} place; "
    f"pretty joli person animal thing place closed"
)
_AFTER = (
    f"black noir animal {_OBJECTS} drink; white blanc/blanche animal {_OBJECTS} place; "
    f"red rouge/rouge {_OBJECTS} food; green vert {_OBJECTS} food; blue bleu {_OBJECTS}; "
    f"yellow jaune/jaune {_OBJECTS} food; brown brun animal {_OBJECTS}; grey gris animal {_OBJECTS}; "
    f"tired fatigué person animal; happy heureux/heureuse person animal; sad triste/triste person "
    f"animal text; strong fort person animal drink; cold froid food drink place; "
    f"warm chaud food drink place; heavy lourd {_OBJECTS}; clean propre/propre {_OBJECTS} place; "
    f"dirty sale/sale {_OBJECTS} place animal; dangerous dangereux/dangereuse animal place; "
    f"interesting intéressant text person place; round rond closed thing; empty vide/vide closed place"
)
_BEFORE_VOWEL = {"vieux": "vieil", "beau": "bel", "nouveau": "nouvel"}

# English singular and plural, French singular and plural, subjects, objects.
_VERBS = (
    "sleeps sleep dort dorment|person animal|; runs run court courent|person animal|; "
    "walks walk marche marchent|person animal|; sings sing chante chantent|person|; "
    "works work travaille travaillent|person|; laughs laugh rit rient|person|; "
    "cries cry pleure pleurent|person|; falls fall tombe tombent|person animal text thing|; "
    "arrives arrive arrive arrivent|person animal|; dances dance danse dansent|person|; "
    "eats eat mange mangent|person animal|food; drinks drink boit boivent|person animal|drink; "
    f"sees see voit voient|person animal|{_EVERYTHING}; "
    "opens open ouvre ouvrent|person|closed text; closes close ferme ferment|person|closed text; "
    "reads read lit lisent|person|text; writes write écrit écrivent|person|text; "
    f"loves love aime aiment|person animal|{_EVERYTHING}; buys buy achète achètent|person|{_OBJECTS} food "
    f"drink; sells sell vend vendent|person|{_OBJECTS} food drink; finds find trouve trouvent|person animal|"
    f"person animal food {_OBJECTS}; takes take prend prennent|person|{_OBJECTS} food; "
    f"cleans clean nettoie nettoient|person|{_OBJECTS} place; washes wash lave lavent|person|thing animal; "
    "follows follow suit suivent|person animal|person animal; "
    "hears hear entend entendent|person animal|person animal; "
    "chases chase chasse chassent|person animal|animal; knows know connaît connaissent|person|person place; "
    f"paints paint peint peignent|person|person animal {_OBJECTS} place; "
    "brings bring apporte apportent|person|food drink text thing"
)


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
    words, subjects, objects = entry.split("|")
    english, english_plural, french, french_plural = words.split()
    by, of = frozenset(subjects.split()), frozenset(objects.split())
    return Verb(english, english_plural, french, french_plural, by, of)


NOUNS = tuple(
    _noun(entry, kind) for kind, entries in _NOUNS.items() for entry in entries.split("; ")
)
ADJECTIVES = tuple(
    _adjective(entry, before=entries is _BEFORE)
    for entries in (_BEFORE, _AFTER)
    for entry in entries.split("; ")
)
VERBS = tuple(_verb(entry) for entry in _VERBS.split("; "))
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
