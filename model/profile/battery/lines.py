"""Prompts of random words: said twice, with full stops, with brackets.

Random words have nothing to say, so a head that looks somewhere does so for the structure alone.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from model.nn.config import Stack
from model.profile.battery.prompts import (
    PROMPTS,
    WANTED,
    Cells,
    Line,
    Prompt,
    Prompts,
    at,
    begun,
    from_other_rows,
)
from model.profile.battery.words import Words, mark, words_of
from model.trace.arrays import Mask
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model

LONGEST, SHORTEST = 14, 4  # words that are said twice
NESTED = 19  # words and brackets, at the most
OF_REPEATS = ("previous", "self", "next", "first", "duplicate", "induction")
OFFSETS = {"previous": (-1, -2), "self": (0, -1), "next": (1, 2)}  # the wanted key, and the control


def random_prompts(model: "Model") -> Prompts:
    """Those of repeats, of delimiters and of brackets."""
    words = words_of(model)
    room = model.config.n_ctx - len(words.before) - len(words.after)
    return (
        _repeats(model, words, room)
        + _delimiters(model, words, room)
        + _brackets(model, words, room)
    )


def _drawn(words: Words, number: int, count: int) -> tuple[Token, ...]:
    """So many words, different ones where there are enough; others for each number."""
    random, size = np.random.default_rng(number), len(words.words)
    return tuple(words.words[one] for one in random.choice(size, count, replace=count > size))


def _refused(model: "Model", labels: tuple[str, ...], reason: str) -> Prompts:
    return Prompts((), {(stack, label): reason for stack in model.stacks() for label in labels})


def _repeats(model: "Model", words: Words, room: int) -> Prompts:
    """Some words said twice, and as many words without a repeat. Each prompt has another length: in one
    of them a head that always looks as far back finds the same cells."""
    longest = min(LONGEST, room // 2, len(words.words) // 2)
    if longest < SHORTEST:
        few = f"It takes {2 * SHORTEST} tokens to say {SHORTEST} different ones twice."
        return _refused(model, OF_REPEATS, few)
    frames = [(words.before, words.after)]
    if model.config.shape == "encoder-decoder":
        frames.append((model.begun((*words.before, *words.after)), ()))
    made = []
    for number in range(PROMPTS):
        period = max(SHORTEST, longest - number)
        drawn = _drawn(words, number, 2 * period)
        for middle in (drawn[:period] * 2, drawn):
            lines = [_halves(before, middle, after) for before, after in frames]
            cross = () if len(lines) == 1 else _on_first(lines[1].tokens, lines[0].tokens, 0)
            made.append(Prompt(lines[0], lines[1] if len(lines) > 1 else None, cross))
    return Prompts(tuple(made))


def _halves(before: tuple[Token, ...], middle: tuple[Token, ...], after: tuple[Token, ...]) -> Line:
    """A text of two halves, equal or not."""
    tokens, start, period = (*before, *middle, *after), len(before), len(middle) // 2
    twice = middle[:period] == middle[period:]
    role = WANTED if twice else "other words"
    first = range(start, start + period)
    same = [(one + period, one) for one in first]
    cells = [
        Cells("duplicate", role, at(len(tokens), [*same, *(pair[::-1] for pair in same)])),
        Cells("induction", role, at(len(tokens), [(query, key + 1) for query, key in same])),
    ]
    if not twice:
        cells += _offsets(len(tokens), range(max(start, 1), start + 2 * period))
        cells += _on_first(tokens, tokens, start + period)
    return Line(tokens, tuple(cells))


def _offsets(length: int, places: range) -> Iterator[Cells]:
    """The key beside each query; as the control, the key one further. A head that attends to all keys near
    its query gives both the same."""
    for label, (wanted, other) in OFFSETS.items():
        rows = [query for query in places if query + wanted in places and query + other in places]
        yield Cells(label, WANTED, at(length, [(query, query + wanted) for query in rows]))
        yield Cells(label, "its neighbour", at(length, [(query, query + other) for query in rows]))


def _on_first(queries: tuple[Token, ...], keys: tuple[Token, ...], start: int) -> tuple[Cells, ...]:
    """The first key and, as the control, the second one, for all queries from one on. A head that attends to
    every key, or to distant ones, gives both the same."""
    masks: list[Mask] = [np.zeros((len(queries), len(keys)), dtype=bool) for _ in range(2)]
    for key, mask in enumerate(masks):
        mask[start:, key] = True
    return Cells("first", WANTED, masks[0]), Cells("first", "second token", masks[1])


def _delimiters(model: "Model", words: Words, room: int) -> Prompts:
    """Words with full stops between them, and the same text with words in the place of these, and of the
    special tokens at its end."""
    stop = mark(model, ".") or mark(model, ",")
    if (stop is None and not words.after) or room < 2 * SHORTEST:
        return _refused(model, ("delimiter",), "Its texts have no full stop and no end token.")
    length, made = min(2 * LONGEST, room), []
    for number in range(PROMPTS):
        plain = _drawn(words, number, length + len(words.after))
        stops = set(range(2 + number % 3, length, 4)) if stop else set()
        marked = [stop if stop and place in stops else one for place, one in enumerate(plain)]
        ended = (*words.before, *marked[:length], *words.after)
        start = len(words.before)
        keys = np.zeros(len(ended), dtype=bool)
        keys[[start + place for place in (*stops, *range(length, len(plain)))]] = True
        rows = ~keys
        rows[:start] = False
        for role, tokens in ((WANTED, ended), ("words instead", (*words.before, *plain))):
            source = Line(tokens, (Cells("delimiter", role, np.outer(rows, keys)),))
            target = begun(model, tokens)
            queries = np.ones(0 if target is None else len(target.tokens), dtype=bool)
            made.append(
                Prompt(source, target, (Cells("delimiter", role, np.outer(queries, keys)),))
            )
    return Prompts(tuple(made), _not_written(model, "delimiter"))


def _brackets(model: "Model", words: Words, room: int) -> Prompts:
    """`w ( w ( w ) w ) w`, with one to three words at each w. The inner pair tells apart who looks at the
    latest opening bracket, and who at the first one."""
    opening, closing = mark(model, "("), mark(model, ")")
    if opening is None or closing is None:
        return _refused(model, ("brackets",), "Its tokenizer has no tokens for brackets.")
    if room < NESTED:
        return _refused(model, ("brackets",), f"It reads {room} tokens; these take {NESTED}.")
    made = []
    for number in range(PROMPTS):
        gaps = np.random.default_rng(number).integers(1, 4, 5)
        marks = (opening, opening, closing, closing)
        middle: list[Token] = []
        places: list[int] = []
        fill = iter(_drawn(words, number, int(gaps.sum())))
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
            Cells("brackets", WANTED, wanted),
            Cells("brackets", "the other bracket", other),
            Cells("brackets", "other rows", from_other_rows(wanted)),
        )
        made.append(Prompt(Line(tokens, cells), begun(model, tokens)))
    return Prompts(tuple(made), _not_written(model, "brackets"))


def _not_written(model: "Model", label: str) -> dict[tuple[Stack, str], str]:
    """Why a second stack cannot be asked for what stands in the text that the first one reads."""
    reason = "Its decoder writes another text than the one that is made up here."
    return {("decoder", label): reason} if model.config.shape == "encoder-decoder" else {}
