"""What a model is asked on: texts, lists of words said twice, and sentences of known structure, each as the
tokens that it reads. A model that cannot read them is not asked."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from model.profile.prompt_library import (
    NAMES,
    WRITTEN,
    PromptWords,
    agreeing_sentences,
    drawn_words,
    known_tokens,
    moving_sentences,
    places_of,
    words_of,
)
from model.trace.records import Token
from model.training import grammar
from model.training.induction import in_context_bigrams
from model.training.micro_stories import WORDS

if TYPE_CHECKING:
    from model.run.model import Model

SEEDS = 12  # of each draw by chance
PROMPTS = 24  # sentences of known structure: one half chooses a head, the other half tries it
PERIOD = 10  # words of a list that is said twice
SHORTEST = 4  # words of such a list
SHORT, LONG = 12, 64  # tokens of a text
FEW = 3  # words of a text that may be spelled in bytes


class NotAskedError(ValueError):
    """Why a claim cannot be asked of a model, in a sentence."""


class Passage(NamedTuple):
    """What one pass reads. target: by the decoder of two stacks."""

    tokens: tuple[Token, ...]
    target: tuple[Token, ...] = ()


class PlacedSentence(NamedTuple):
    """A text and where the words stand in it that matter, by what they are."""

    tokens: tuple[Token, ...]
    places: dict[str, int]

    def id(self, word: str) -> int:
        """The id of one of these words."""
        return self.tokens[self.places[word]].id


def require_decoder(model: "Model") -> None:
    """Raises NotAskedError for a model that does not continue the text that it reads."""
    if model.config.shape != "decoder":
        raise NotAskedError(
            "This model does not continue the text that it reads, and the claim is about models that do."
        )


def passages(model: "Model", most: int = SHORT) -> tuple[Passage, ...]:
    """SEEDS texts of at most so many tokens: the passages, else stories, else rows of the symbols that the
    model knows, of which each has its own successors. Raises NotAskedError where it reads none of them."""
    for texts in (WRITTEN["passages"], list(islice(_stories(), SEEDS)), _sentences()):
        read = [_read(model, text, most) for text in texts]
        readable = [passage for passage in read if passage is not None]
        if len(readable) == SEEDS:
            return tuple(readable)
    if model.config.shape != "decoder":
        raise NotAskedError("This model reads none of the texts.")
    words = words_of(model)
    length = min(most, model.config.n_ctx) - len(words.before) - len(words.after)
    known = {token.id: token for token in words.words}
    if length < SHORTEST or len(known) < 6:
        raise NotAskedError("This model knows too few words for a text.")
    rows, _ = in_context_bigrams(
        np.random.default_rng(0), np.array(list(known)), count=SEEDS, length=length
    )
    return tuple(
        Passage((*words.before, *(known[int(id_)] for id_ in row), *words.after)) for row in rows
    )


def _read(model: "Model", text: str, most: int) -> Passage | None:
    """A text as the model reads it, cut after so many tokens; None where it cannot, or where little is left.
    The decoder of two stacks reads the first half of its own output."""
    try:
        if len(model.new_words(text)) > FEW:
            return None
        most = min(most, model.config.n_ctx)
        if len(model.tokens(text)) > most:
            text = model.tokenizer.beginning(text, most)
        tokens = model.tokens(text)
        if len(tokens) < SHORTEST:
            return None
        if model.config.shape != "encoder-decoder":
            return Passage(tokens)
        target = model.trace(text).target_tokens
    except ValueError:
        return None
    return Passage(tokens, target[: max(len(target) // 2, 2)])


def _stories() -> Iterator[str]:
    """Stories of the closed vocabulary: the same people, things and places in each sentence."""
    for number in range(SEEDS):
        random = np.random.default_rng(number)
        kinds = ("women", "men", "surnames", "things", "adjectives", "places", "seats", "animals")
        woman, man, name, thing, quality, place, seat, animal = (
            str(random.choice(WORDS[kind])) for kind in kinds
        )
        hero = f"{woman} {name}"
        yield (
            f"{hero} found a {quality} {thing} in the {place}. {hero} gave the {quality} {thing} to {man}. "
            f"{man} liked the {quality} {thing}. {hero} went to the {place} with {man}. {man} saw the "
            f"{animal} near the {place}. {hero} put the {quality} {thing} on the {seat}. When {hero} came "
            f"home, the {thing} was on the {seat}. {man} asked {hero} about the {quality} {thing}."
        )


def _sentences() -> list[str]:
    """Sentences of the translator's grammar, of eight words or more."""
    random = np.random.default_rng(0)
    texts: list[str] = []
    while len(texts) < SEEDS:
        words = grammar.sentence(random).english
        if len(words) >= 8:
            texts.append(" ".join(words))
    return texts


class Lists(NamedTuple):
    """Lists of different words, each said twice, and as many words said once. All have one length."""

    twice: tuple[Passage, ...]
    once: tuple[Passage, ...]
    start: int  # where the first list begins
    period: int  # words of a list

    @property
    def ids(self) -> tuple[int, ...]:
        """Numbers of the words of a list, in the order in which they are said, with those of the frame."""
        length = len(self.twice[0].tokens)
        frame = range(length, 2 * length)
        words = [*range(self.period)] * 2
        after = length - self.start - len(words)
        return (*frame[: self.start], *words, *frame[length - after :])


def lists(model: "Model", count: int = SEEDS, first: int = 0) -> Lists:
    """So many lists. first: the seed of the first one. Raises NotAskedError for another model than a decoder,
    and where it knows too few words."""
    require_decoder(model)
    words = words_of(model)
    room = model.config.n_ctx - len(words.before) - len(words.after)
    period = min(PERIOD, room // 2, len(words.words) // 2)
    if period < SHORTEST:
        raise NotAskedError("This model has no room, or no words, for a list that is said twice.")
    drawn = [drawn_words(words, first + number, 2 * period) for number in range(count)]
    return Lists(
        tuple(_framed(words, one[:period] * 2) for one in drawn),
        tuple(_framed(words, one) for one in drawn),
        len(words.before),
        period,
    )


class Needle(NamedTuple):
    """A text in which some words in a row, the needle, begin again at the end."""

    passage: Passage
    start: int  # where the needle begins
    again: int  # where it begins again
    length: int  # words of the needle

    @property
    def rows(self) -> list[int]:
        """Where its words are predicted the second time, from the second word on."""
        return [*range(self.again, self.again + self.length - 1)]

    @property
    def keys(self) -> list[int]:
        """Where they stand the first time."""
        return [*range(self.start + 1, self.start + self.length)]


def needles(model: "Model", length: int = 6) -> tuple[Needle, ...]:
    """SEEDS of them, each with the needle at another depth. Raises NotAskedError as `lists` does."""
    require_decoder(model)
    words = words_of(model)
    room = min(LONG, model.config.n_ctx) - len(words.before) - len(words.after)
    others = len(words.words) - length
    around = min(room - 2 * length, 4 * others)
    if around < 2 * length:
        raise NotAskedError("This model has no room, or no words, to hide a needle among.")
    texts = []
    for number in range(SEEDS):
        random = np.random.default_rng(number)
        shuffled = [words.words[at] for at in random.permutation(len(words.words))]
        needle, rest = shuffled[:length], shuffled[length:]
        hay = [rest[at] for at in random.integers(0, len(rest), around)]
        depth = 1 + number * (around - 2) // SEEDS
        middle = (*hay[:depth], *needle, *hay[depth:], *needle)
        start = len(words.before) + depth
        again = len(words.before) + around + length
        texts.append(Needle(_framed(words, middle), start, again, length))
    return tuple(texts)


def _framed(words: PromptWords, middle: Sequence[Token]) -> Passage:
    return Passage((*words.before, *middle, *words.after))


def _placed(
    model: "Model", written: Iterable[tuple[str, dict[str, str]]], least: int, what: str
) -> tuple[PlacedSentence, ...]:
    """PROMPTS sentences of which the model reads each named word as one token, with the last place of each.
    Raises NotAskedError for fewer than `least`. what: the sentences, in words."""
    sentences: list[PlacedSentence] = []
    for text, named in written:
        tokens = known_tokens(model, text)
        places = {what_for: places_of(tokens, word) for what_for, word in named.items()}
        if all(places.values()) and len(sentences) < PROMPTS:
            last = {word: where[-1] for word, where in places.items()}
            sentences.append(PlacedSentence(tokens, last))
    if len(sentences) < least:
        raise NotAskedError(f"This model does not read {what} as whole tokens.")
    return tuple(sentences)


def giving(model: "Model", *, third: bool = False) -> tuple[PlacedSentence, ...]:
    """Two people, of whom one gives something to … (Wang et al. 2022). places: `other`, who gets it, and
    `giver`. third: a third person gives, so that neither name follows. Raises NotAskedError."""
    require_decoder(model)
    different = 2 * len(WRITTEN["moving"]) * len(NAMES)
    written = (
        (one.text, dict(zip(("other", "giver"), one.words, strict=False)))
        for one in moving_sentences(different, third=third)
    )
    return _placed(model, written, PROMPTS // 2, "the names of these sentences")


def verbs_with_objects(model: "Model") -> tuple[PlacedSentence, ...]:
    """Sentences with a `verb` and its `object`, one to four words apart. Raises NotAskedError."""
    kinds = ("who", "verb", "determiner", "noun", "one", "two", "place")
    written = []
    for number in range(6 * PROMPTS):
        random = np.random.default_rng(number)
        words = {kind: str(random.choice(WRITTEN[kind].split())) for kind in kinds}
        text = WRITTEN["objects"][number % len(WRITTEN["objects"])].format(**words)
        written.append((text, {"verb": words["verb"], "object": words["noun"]}))
    return _placed(model, written, PROMPTS, "these sentences")


def agreeing(model: "Model") -> tuple[PlacedSentence, ...]:
    """Sentences of a `subject`, another noun of the other number, and the verb (Linzen et al. 2016). places:
    also `expects`, where the verb is expected: the token before it, or of an encoder itself. What follows is
    cut off where a decoder reads it. Raises NotAskedError."""
    if model.config.shape == "encoder-decoder":
        raise NotAskedError("This model reads and writes two texts; the claim is about one.")
    written = (
        (one.text, dict(zip(("subject", "other", "verb"), one.words, strict=True)))
        for one in agreeing_sentences(5 * PROMPTS, past=False)
    )
    sentences = []
    for one in _placed(model, written, PROMPTS // 2, "these sentences"):
        back = model.config.shape == "decoder"
        row = one.places["verb"] - back
        tokens = one.tokens[: row + 1] if back else one.tokens
        sentences.append(PlacedSentence(tokens, one.places | {"expects": row}))
    return tuple(sentences)


class YearSentence(NamedTuple):
    """A text that ends within a year. later, others: ids of the next digits that make it a later year than
    the one that was named, and of those that make it that year or an earlier one. both: whether they are the
    two last digits; else the first of them, where the same digit is neither."""

    passage: Passage
    later: tuple[int, ...]
    others: tuple[int, ...]
    both: bool


def year_sentences(model: "Model") -> tuple[YearSentence, ...]:
    """SEEDS texts (Hanna et al. 2023). Raises NotAskedError where the next digits are no tokens."""
    require_decoder(model)
    random = np.random.default_rng(0)
    sentences = []
    for number in range(SEEDS):
        century, year = int(random.integers(12, 19)), int(random.integers(20, 80))
        frame = WRITTEN["years"][number % len(WRITTEN["years"])]
        if unknown := model.new_words(frame.format(year="", century="")):
            raise NotAskedError(
                f"This model does not know the word “{unknown[0]}” of these sentences."
            )
        text = frame.format(year=f"{century}{year:02d}", century=century)
        try:
            sentences.append(_year_sentence(model, text, year))
        except ValueError as refusal:
            raise NotAskedError(
                "This model does not read the years of these sentences."
            ) from refusal
    return tuple(sentences)


def _year_sentence(model: "Model", text: str, year: int) -> YearSentence:
    """The same with the next tokens: both last digits at once, or the first of them."""
    tokens = model.tokens(text)

    def following(digits: str) -> int | None:
        longer = model.tokens(text + digits)
        fits = longer[: len(tokens)] == tokens and len(longer) == len(tokens) + 1
        return longer[-1].id if fits and longer[-1].text.strip() == digits else None

    for width in (2, 1):
        ids = [following(f"{value:0{width}d}") for value in range(10**width)]
        known = [one for one in ids if one is not None]
        if len(set(known)) == 10**width:
            both = width == 2
            named = year if both else year // 10
            later, others = known[named + 1 :], known[: named + both]
            return YearSentence(Passage(tokens), tuple(later), tuple(others), both)
    raise NotAskedError("This model has no tokens for the digits that follow.")


class Order(NamedTuple):
    """Words in the order that everybody knows. before: the tokens that stand before a text."""

    words: tuple[Token, ...]
    before: tuple[Token, ...]

    @property
    def texts(self) -> tuple[tuple[Token, ...], ...]:
        """Each word as a text of its own."""
        return tuple((*self.before, word) for word in self.words)


def orders(model: "Model") -> tuple[Order, ...]:
    """Days, months and numbers, as far as each word of them is one token. Raises NotAskedError for none."""
    require_decoder(model)
    before = words_of(model).before
    known = []
    for order in WRITTEN["orders"]:
        texts = [(word, known_tokens(model, f"and {word}")) for word in order.split()]
        places = [(tokens, places_of(tokens, word)) for word, tokens in texts]
        if all(len(where) == 1 for _, where in places):
            known.append(Order(tuple(tokens[where[0]] for tokens, where in places), before))
    if not known:
        raise NotAskedError("This model has no days, months or numbers as whole tokens.")
    return tuple(known)
