"""Heads by what they tend to look at: each statistic with its meaning, from the full rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import category

import numpy as np

from model.analysis.heads import statistics
from model.analysis.heads.labels import (
    Evidence,
    Places,
    allowed_cells,
    goes_on_with_its_text,
    places,
)
from model.analysis.heads.statistics import Family, head_weights
from model.nn.places import Head
from model.system.remote import asked
from model.system.words import Words
from model.trace.arrays import Array, BoolArray, Wide
from model.trace.blocks import of_query
from model.trace.records import Attention, Token
from model.trace.trace import Trace

say = Words("analysis.heads_ranking")


@dataclass(frozen=True)
class HeadTokens:
    """The tokens that one family of heads looks from, and those it looks at. across: these are two texts."""

    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    across: bool

    @property
    def ids(self) -> list[int]:
        """(key,)"""
        return [token.id for token in self.keys]


Number = Callable[[Array, HeadTokens], float]
CellRule = Callable[[HeadTokens], BoolArray]


@dataclass(frozen=True)
class Statistic:
    """One number for each head. `meaning` is a sentence for the page."""

    name: str
    title: str
    meaning: str
    of: Number  # raises ValueError where the text gives it no rows
    cells: CellRule | None = None  # (query, key): where a head called so looks
    across: bool = False  # also for queries and keys of two different texts
    column: bool = False  # whether every row looks at the same keys
    continued: bool = False  # only where the model continues the text that it reads
    unit: str = "weight, 0 to 1"


def _at(offset: int) -> tuple[Number, CellRule]:
    """The weight on the key so many tokens after its query."""
    return (
        lambda weights, _: statistics.at_offset(weights, offset),
        lambda tokens: _beside(tokens, offset),
    )


STATISTICS: tuple[Statistic, ...] = (
    Statistic(
        "previous",
        "Previous token",
        say("mean_weight_token"),
        *_at(-1),
    ),
    Statistic(
        "induction",
        "Induction",
        say("token_repeated_mean"),
        lambda weights, tokens: statistics.prefix_matching(weights, tokens.ids),
        lambda tokens: _copied(tokens),
        continued=True,
    ),
    Statistic(
        "first",
        "First token",
        say("mean_weight_later"),
        lambda weights, tokens: statistics.on_first(weights, across=tokens.across),
        lambda tokens: _columns(tokens, np.arange(len(tokens.keys)) == 0),
        across=True,
        column=True,
    ),
    Statistic("self", "Itself", say("mean_weight_token_itself"), *_at(0)),
    Statistic(
        "next",
        "Next token",
        say("mean_weight_token_just"),
        *_at(1),
    ),
    Statistic(
        "separators",
        "Separators",
        say("mean_weight_special"),
        lambda weights, tokens: statistics.on_keys(weights, separators(tokens.keys)),
        lambda tokens: _columns(tokens, separators(tokens.keys)),
        across=True,
        column=True,
    ),
    Statistic(
        "distance",
        "Distance",
        say("mean_distance_between"),
        lambda weights, _: statistics.distance(weights),
        unit="tokens",
    ),
    Statistic(
        "entropy",
        "Entropy",
        say("mean_entropy_rows"),
        lambda weights, _: float(statistics.entropy(weights).mean()),
        across=True,
        unit="nats",
    ),
)


@dataclass(frozen=True, eq=False)
class Scores:
    """Each statistic of each head of a family. Those that do not apply to this text are `refused`."""

    heads: tuple[Head, ...]
    values: Mapping[str, Wide]  # statistic's name -> (head,)
    refused: Mapping[str, str]  # statistic's name -> why there is none, in a sentence
    evidence: Mapping[str, tuple[Evidence, ...]]  # of statistics that are labels -> (head,)

    def ranked(self, name: str) -> tuple[tuple[Head, float], ...]:
        """The heads by one statistic, the highest first; ties keep their order."""
        values = self.values[name]
        order = np.argsort(-values, kind="stable")
        return tuple((self.heads[place], float(values[place])) for place in order)

    def called(self, name: str) -> tuple[tuple[Head, float], ...]:
        """The heads that may be called after a statistic on this text, the highest first."""
        if name not in self.evidence:
            return ()
        known = zip(self.heads, self.evidence[name], strict=True)
        held = {head for head, evidence in known if evidence.holds}
        return tuple(one for one in self.ranked(name) if one[0] in held)


@asked
def scores(trace: Trace, family: Family) -> Scores:
    """Every statistic of every head of a family, each from its whole (query, key) weights."""
    tokens = HeadTokens(family.queries(trace), family.keys(trace), family.cross)
    members = family.members(trace)
    continued = goes_on_with_its_text(members[0], translates=bool(trace.target_tokens))
    some = members[0].weights(0)
    reasons = {one.name: _refusal(one, family, some, tokens, continued) for one in STATISTICS}
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    wanted = [one for one in STATISTICS if one.name not in refused]
    table = np.array(
        [
            [statistic.of(weights, tokens) for statistic in wanted]
            for weights in head_weights(members)
        ]
    )
    values = {statistic.name: table[:, place] for place, statistic in enumerate(wanted)}
    return Scores(family.heads(trace), values, refused, _evidence(members, wanted, tokens))


def _evidence(
    members: Sequence[Attention], statistics: Sequence[Statistic], tokens: HeadTokens
) -> dict[str, tuple[Evidence, ...]]:
    """The evidence of each head for each label."""
    labels = {one.name: (one.cells(tokens), one.column) for one in statistics if one.cells}
    found: dict[str, list[Evidence]] = {name: [] for name in labels}
    known: dict[str, Places] = {}
    allowed: BoolArray | None = None
    for attention in members:
        for head in range(attention.heads):
            mask, weights = allowed_cells(attention, head), attention.weights(head)
            if allowed is None or not np.array_equal(mask, allowed):
                allowed = mask
                known = {
                    name: places(cells, mask, column=column)
                    for name, (cells, column) in labels.items()
                }
            for name, where in known.items():
                found[name].append(where.evidence(weights))
    return {name: tuple(by_head) for name, by_head in found.items()}


@asked
def looking(trace: Trace, family: Family, query: int, key: int) -> Wide:
    """(head,): the weight of each head of a family from one token to another.

    Args:
        query, key: positions, from 0.
    """
    rows = [of_query(one, query) for one in family.members(trace)]
    return np.array([row[0, key] for row in head_weights(rows)], np.float64)


def separators(tokens: Sequence[Token]) -> BoolArray:
    """(token,): True for special tokens and for punctuation."""

    def is_punctuation(text: str) -> bool:
        return bool(text) and all(
            (one.isascii() and not one.isalnum()) or category(one).startswith("P") for one in text
        )

    return np.array([token.special or is_punctuation(token.text.strip()) for token in tokens])


def _beside(tokens: HeadTokens, offset: int) -> BoolArray:
    """(query, key): the key so many tokens after its query."""
    return np.eye(len(tokens.queries), k=offset, dtype=bool)


def _columns(tokens: HeadTokens, keys: BoolArray) -> BoolArray:
    """(query, key): some keys, for every query."""
    return np.broadcast_to(keys, (len(tokens.queries), len(keys)))


def _copied(tokens: HeadTokens) -> BoolArray:
    """(query, key): what followed the same token earlier. Not the token just before the query, which a
    previous-token head looks at too: "a b a b"."""
    return statistics.after_the_same(tokens.ids) & ~_beside(tokens, -1)


def _refusal(
    statistic: Statistic, family: Family, some: Array, tokens: HeadTokens, continued: bool
) -> str | None:
    """Why a statistic does not apply here. That depends on the tokens alone, so one head will do."""
    if family.cross and not statistic.across:
        return say("queries_keys_heads")
    if statistic.continued and not continued:
        return say("only_causal_model")
    try:
        statistic.of(some, tokens)
    except ValueError as refusal:
        return str(refusal)
    return None
