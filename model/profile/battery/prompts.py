"""A prompt: what the model reads, and the cells of the weights whose mean is asked for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from model.nn.config import Stack
from model.profile.prompt_library import (
    PromptWords,
    WrittenSentence,
    agreeing_sentences,
    drawn_words,
    known_tokens,
    mark,
    moving_sentences,
    places_of,
    words_of,
)
from model.system.words import Words
from model.trace.arrays import BoolArray
from model.trace.records import Attention, Token

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("profile.battery_prompts")


WANTED = "wanted"
PROMPTS = 6  # of each kind: so many different lengths, orders and words
AnswerPair = tuple[
    int, int | None
]  # a token's id, and what its logit is compared with: another's, or None: the mean logit
FEWEST = 3  # prompts without which there is no evidence


class LabelCells(NamedTuple):
    """Some cells of one label. role: WANTED, or the name of a control."""

    label: str
    role: str
    mask: BoolArray  # (query, key)


@dataclass(frozen=True)
class WantedAnswers:
    """What should come next after some rows of a text, for some labels; and what comes next there in another
    text, which is the control."""

    labels: tuple[str, ...]
    rows: tuple[int, ...]
    wanted: tuple[AnswerPair, ...]  # of each row
    control: tuple[AnswerPair, ...] = ()

    @property
    def tokens(self) -> set[int | None]:
        """Every token that is wanted or compared with."""
        return {token for pair in self.wanted for token in pair}


@dataclass(frozen=True)
class PromptLine:
    """One text as tokens, the cells of self-attention over it, and what should come next."""

    tokens: tuple[Token, ...]
    cells: tuple[LabelCells, ...] = ()
    answers: WantedAnswers | None = None


@dataclass(frozen=True)
class LabelPrompt:
    """What one pass reads, and what is asked of it."""

    source: PromptLine
    target: PromptLine | None = None  # what the decoder of an encoder–decoder reads
    cross: tuple[LabelCells, ...] = ()  # (token of the target, token of the source)

    def asked(self, attention: Attention) -> tuple[LabelCells, ...]:
        """The cells that one sub-layer is asked for."""
        if attention.kind == "cross":
            return self.cross
        return self.line(attention.stack).cells

    def line(self, stack: Stack) -> PromptLine:
        """The text that a stack reads."""
        return self.target if self.target and stack == "decoder" else self.source


@dataclass(frozen=True)
class Prompts:
    """All prompts of some labels. refused: why others could not be asked, by stack and label."""

    made: tuple[LabelPrompt, ...] = ()
    refused: Mapping[tuple[Stack, str], str] = field(default_factory=dict)

    def __add__(self, other: "Prompts") -> "Prompts":
        return Prompts((*self.made, *other.made), {**self.refused, **other.refused})


def at(length: int, pairs: Iterable[tuple[int, int]]) -> BoolArray:
    """(length, length): True at some (query, key) that stand in the text."""
    mask: BoolArray = np.zeros((length, length), dtype=bool)
    for query, key in pairs:
        if 0 <= query < length and 0 <= key < length:
            mask[query, key] = True
    return mask


def from_other_rows(wanted: BoolArray) -> BoolArray:
    """A control: the same keys, seen from the rows that ask for no key and are no such key themselves. A head
    that attends to these keys whatever the query is, fails it."""
    keys = wanted.any(0)
    mask: BoolArray = np.outer(~wanted.any(1) & ~keys, keys)
    return mask


def decoder_prompt(model: "Model", tokens: tuple[Token, ...]) -> PromptLine | None:
    """The beginning of what a decoder writes, where a second stack does; nothing is asked of it."""
    return (
        PromptLine(model.decoder_prompt(tokens))
        if model.config.shape == "encoder-decoder"
        else None
    )


LONGEST, SHORTEST = 14, 4  # words that are said twice
NESTED = 19  # words and brackets, at the most
OF_REPEATS = ("previous", "self", "next", "first", "duplicate", "induction")
OFFSETS = {"previous": (-1, -2), "self": (0, -1), "next": (1, 2)}  # the wanted key, and the control


def random_prompts(model: "Model", count: int = PROMPTS) -> Prompts:
    """Those of repeats, of delimiters and of brackets, so many of each."""
    words = words_of(model)
    room = model.config.n_ctx - len(words.before) - len(words.after)
    return (
        _repeats(model, words, room, count)
        + _delimiters(model, words, room, count)
        + _brackets(model, words, room, count)
    )


def _following(
    labels: tuple[str, ...],
    tokens: tuple[Token, ...],
    other: tuple[Token, ...],
    rows: Iterable[int],
) -> WantedAnswers:
    """The token that follows each row; as the control, the one that follows it in another text."""
    asked = tuple(rows)
    mine, theirs = (tuple((text[row + 1].id, None) for row in asked) for text in (tokens, other))
    return WantedAnswers(labels, asked, mine, theirs)


def _refused(model: "Model", labels: tuple[str, ...], reason: str) -> Prompts:
    return Prompts((), {(stack, label): reason for stack in model.stacks() for label in labels})


def _repeats(model: "Model", words: PromptWords, room: int, count: int) -> Prompts:
    """Some words said twice, and as many words without a repeat. PROMPTS in a row have other lengths: in one
    of them a head that always looks as far back finds the same cells."""
    longest = min(LONGEST, room // 2, len(words.words) // 2)
    if longest < SHORTEST:
        few = say("takes_tokens_say", value=2 * SHORTEST, shortest=SHORTEST)
        return _refused(model, OF_REPEATS, few)
    frames = [(words.before, words.after)]
    if model.config.shape == "encoder-decoder":
        frames.append((model.decoder_prompt((*words.before, *words.after)), ()))
    made = []
    for number in range(count):
        period = max(SHORTEST, longest - number % PROMPTS)
        drawn = drawn_words(words, number, 2 * period)
        other = drawn_words(words, number + PROMPTS, 2 * period)[:period] * 2  # as long
        for middle in (drawn[:period] * 2, drawn):
            lines = [_halves(frame, middle, other) for frame in frames]
            cross = () if len(lines) == 1 else _on_first(lines[1].tokens, lines[0].tokens, 0)
            made.append(LabelPrompt(lines[0], lines[1] if len(lines) > 1 else None, cross))
    return Prompts(tuple(made))


def _halves(
    frame: tuple[tuple[Token, ...], tuple[Token, ...]],
    middle: tuple[Token, ...],
    other: tuple[Token, ...],
) -> PromptLine:
    """A text of two halves, equal or not. frame: what stands before and after it. other: equal halves of
    other words."""
    before, after = frame
    tokens, start, period = (*before, *middle, *after), len(before), len(middle) // 2
    twice = middle[:period] == middle[period:]
    role = WANTED if twice else "other words"
    first = range(start, start + period)
    same = [(one + period, one) for one in first]
    cells = [
        LabelCells("duplicate", role, at(len(tokens), [*same, *(pair[::-1] for pair in same)])),
        LabelCells("induction", role, at(len(tokens), [(query, key + 1) for query, key in same])),
    ]
    if twice:
        rows = range(start + period, start + 2 * period - 1)  # what follows was said before
        answers = _following(OF_REPEATS, tokens, (*before, *other), rows)
        return PromptLine(tokens, tuple(cells), answers)
    cells += _offsets(len(tokens), range(max(start, 1), start + 2 * period))
    cells += _on_first(tokens, tokens, start + period)
    return PromptLine(tokens, tuple(cells))


def _offsets(length: int, places: range) -> Iterator[LabelCells]:
    """The key beside each query; as the control, the key one further. A head that attends to all keys near
    its query gives both the same."""
    for label, (wanted, other) in OFFSETS.items():
        rows = [query for query in places if query + wanted in places and query + other in places]
        yield LabelCells(label, WANTED, at(length, [(query, query + wanted) for query in rows]))
        yield LabelCells(
            label, "its neighbour", at(length, [(query, query + other) for query in rows])
        )


def _on_first(
    queries: tuple[Token, ...], keys: tuple[Token, ...], start: int
) -> tuple[LabelCells, ...]:
    """The first key and, as the control, the second one, for all queries from one on. A head that attends to
    every key, or to distant ones, gives both the same."""
    masks: list[BoolArray] = [np.zeros((len(queries), len(keys)), dtype=bool) for _ in range(2)]
    for key, mask in enumerate(masks):
        mask[start:, key] = True
    return LabelCells("first", WANTED, masks[0]), LabelCells("first", "second token", masks[1])


def _delimiters(model: "Model", words: PromptWords, room: int, count: int) -> Prompts:
    """Words with full stops between them, and the same text with words in the place of these, and of the
    special tokens at its end."""
    stop = mark(model, ".") or mark(model, ",")
    if (stop is None and not words.after) or room < 2 * SHORTEST:
        return _refused(model, ("delimiter",), say("texts_full_stop"))
    length, start, made = min(2 * LONGEST, room), len(words.before), []
    drawn = [drawn_words(words, number, length + len(words.after)) for number in range(count + 1)]
    places = [
        range(2 + number % 3, length if stop else 0, 4) for number in range(count + 1)
    ]  # of stops
    ended = [
        (
            *words.before,
            *(stop if stop and at in stops else one for at, one in enumerate(plain[:length])),
            *words.after,
        )
        for plain, stops in zip(drawn, places, strict=True)
    ]
    for number in range(count):
        plain, mine = drawn[number], ended[number]
        keys = np.zeros(len(mine), dtype=bool)
        keys[[start + place for place in (*places[number], *range(length, len(plain)))]] = True
        rows = ~keys
        rows[:start] = False
        before_words = np.flatnonzero(rows[: start + length - 1]).tolist()
        answers = _following(("delimiter",), mine, ended[number + 1], before_words)
        for role, tokens in ((WANTED, mine), ("words instead", (*words.before, *plain))):
            cells = (LabelCells("delimiter", role, np.outer(rows, keys)),)
            source = PromptLine(tokens, cells, answers if role == WANTED else None)
            target = decoder_prompt(model, tokens)
            queries = np.ones(0 if target is None else len(target.tokens), dtype=bool)
            made.append(
                LabelPrompt(
                    source, target, (LabelCells("delimiter", role, np.outer(queries, keys)),)
                )
            )
    return Prompts(tuple(made), _not_written(model, "delimiter"))


def _brackets(model: "Model", words: PromptWords, room: int, count: int) -> Prompts:
    """`w ( w ( w ) w ) w`, with one to three words at each w. The inner pair tells apart who looks at the
    latest opening bracket, and who at the first one."""
    opening, closing = mark(model, "("), mark(model, ")")
    if opening is None or closing is None:
        return _refused(model, ("brackets",), say("tokenizer_tokens_brackets"))
    if room < NESTED:
        return _refused(model, ("brackets",), say("reads_tokens_take", room=room, nested=NESTED))
    made = []
    for number in range(count):
        gaps = np.random.default_rng(number).integers(1, 4, 5)
        marks = (opening, opening, closing, closing)
        middle: list[Token] = []
        places: list[int] = []
        fill = iter(drawn_words(words, number, int(gaps.sum())))
        for gap, one in zip(gaps, (*marks, None), strict=True):
            middle += [next(fill) for _ in range(gap)]
            if one is not None:
                places.append(len(words.before) + len(middle))
                middle.append(one)
        tokens = (*words.before, *middle, *words.after)
        outer, inner, inner_end, outer_end = places
        wanted = at(len(tokens), [(inner_end, inner), (outer_end, outer)])
        other = at(len(tokens), [(inner_end, outer), (outer_end, inner)])
        cells = (
            LabelCells("brackets", WANTED, wanted),
            LabelCells("brackets", "the other bracket", other),
            LabelCells("brackets", "other rows", from_other_rows(wanted)),
        )
        ends: tuple[tuple[AnswerPair, ...], ...] = (
            ((closing.id, None),) * 2,
            ((opening.id, None),) * 2,
        )
        answers = WantedAnswers(("brackets",), (inner_end - 1, outer_end - 1), *ends)
        made.append(LabelPrompt(PromptLine(tokens, cells, answers), decoder_prompt(model, tokens)))
    return Prompts(tuple(made), _not_written(model, "brackets"))


def _not_written(model: "Model", label: str) -> dict[tuple[Stack, str], str]:
    """Why a second stack cannot be asked for what stands in the text that the first one reads."""
    reason = say("decoder_writes_another")
    return {("decoder", label): reason} if model.config.shape == "encoder-decoder" else {}


TRIED = 120  # sentences, until there are enough


def sentence_prompts(model: "Model", count: int = PROMPTS) -> Prompts:
    """Those of agreement and of names, so many of each."""
    prompts = _made(model, "agreement", agreeing_sentences(TRIED, past=True), count)
    if model.config.shape == "decoder":
        prompts += _made(model, "names", moving_sentences(TRIED), count)
    return prompts


def _made(model: "Model", label: str, sentences: Iterator[WrittenSentence], count: int) -> Prompts:
    stacks, reason = model.stacks(), ""
    readable = filter(None, (_line(model, label, sentence) for sentence in sentences))
    lines = _with_controls(list(islice(readable, count)))
    if len(lines) < FEWEST:
        reason = say("tokenizer_too_few")
        return Prompts((), {(stack, label): reason for stack in stacks})
    made = tuple(LabelPrompt(line, decoder_prompt(model, line.tokens)) for line in lines)
    reason = say("decoder_writes_another")
    return Prompts(made, {(stack, label): reason for stack in stacks[1:]})


def _line(model: "Model", label: str, sentence: WrittenSentence) -> PromptLine | None:
    """wanted: the query's word on the first of the words. Controls: on the second; and the first one's keys
    from all other rows. The answer comes after the query: the first of its words, not the second. Or before
    it: the query itself, and not what the wrong sentence has there. None for a sentence that the model does
    not read."""
    tokens = known_tokens(model, sentence.text)
    wanted, other, queries = (places_of(tokens, word) for word in sentence.words)
    if len(wanted) != 1 or not other or not queries:
        return None
    query, length = queries[-1], len(tokens)
    mask = at(length, [(query, wanted[0])])
    cells = (
        LabelCells(label, WANTED, mask),
        LabelCells(label, "the other word", at(length, [(query, key) for key in other])),
        LabelCells(label, "other rows", from_other_rows(mask)),
    )
    row, pair = query, (tokens[wanted[0]].id, tokens[other[0]].id)
    if sentence.wrong:
        wrong = known_tokens(model, sentence.wrong)
        if len(wrong) != length:
            return PromptLine(tokens, cells)
        row, pair = query - 1, (tokens[query].id, wrong[query].id)
    return PromptLine(tokens, cells, WantedAnswers((label,), (row,), (pair,)))


def _with_controls(lines: list[PromptLine]) -> list[PromptLine]:
    """Each with the answer of the next one that has another: the next names, the next tense."""
    made = []
    for number, line in enumerate(lines):
        mine = line.answers
        others = [one.answers for one in (*lines[number:], *lines[:number]) if one.answers]
        if mine is not None:
            control = next((one.wanted for one in others if not one.tokens & mine.tokens), None)
            line = replace(line, answers=replace(mine, control=control) if control else None)
        made.append(line)
    return made
