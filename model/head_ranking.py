"""Heads by what they tend to look at: each statistic with its meaning, from the full rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model import heads
from model.head_families import Family, Head
from model.trace import Array, Mask, Token, Trace


@dataclass(frozen=True)
class Reading:
    """The tokens that one family of heads looks from, and those it looks at."""

    queries: tuple[Token, ...]
    keys: tuple[Token, ...]


@dataclass(frozen=True)
class Statistic:
    """One number for each head. `meaning` is a sentence for the page."""

    name: str
    title: str
    meaning: str
    of: Callable[[Array, Reading], float]  # raises ValueError where the text gives it no rows
    across: bool = False  # also for queries and keys of two different texts
    unit: str = "weight, 0 to 1"


STATISTICS: tuple[Statistic, ...] = (
    Statistic(
        "previous",
        "Previous token",
        "Mean weight on the token just before the one that looks.",
        lambda weights, reading: heads.at_offset(weights, -1),
    ),
    Statistic(
        "induction",
        "Induction",
        "Where a token comes back: mean weight on what followed it the time before. Such heads "
        "copy.",
        lambda weights, reading: heads.prefix_matching(weights, _ids(reading.keys)),
    ),
    Statistic(
        "first",
        "First token",
        "Mean weight on the first token, of all tokens after it. Many heads park their weight there "
        "when they find nothing.",
        lambda weights, reading: heads.on_first(weights),
        across=True,
    ),
    Statistic(
        "self",
        "Itself",
        "Mean weight of a token on itself.",
        lambda weights, reading: heads.at_offset(weights, 0),
    ),
    Statistic(
        "next",
        "Next token",
        "Mean weight on the token just after the one that looks. A causal mask makes this 0.",
        lambda weights, reading: heads.at_offset(weights, 1),
    ),
    Statistic(
        "separators",
        "Separators",
        "Mean share of a row that lies on special tokens and on punctuation.",
        lambda weights, reading: heads.on_keys(weights, separators(reading.keys)),
        across=True,
    ),
    Statistic(
        "distance",
        "Distance",
        "Mean number of tokens between the one that looks and those it looks at, by weight.",
        lambda weights, reading: heads.distance(weights),
        unit="tokens",
    ),
    Statistic(
        "entropy",
        "Entropy",
        "Mean entropy of the rows: 0 if all weight lies on one token, ln n if it is spread evenly "
        "over n.",
        lambda weights, reading: float(heads.entropy(weights).mean()),
        across=True,
        unit="nats",
    ),
)


@dataclass(frozen=True, eq=False)
class Scores:
    """Each statistic of each head of a family. What this text gives no rows for is `refused`."""

    heads: tuple[Head, ...]
    values: Mapping[str, NDArray[np.float64]]  # statistic's name -> (head,)
    refused: Mapping[str, str]  # statistic's name -> why there is none, in a sentence

    def ranked(self, name: str) -> tuple[tuple[Head, float], ...]:
        """The heads by one statistic, the highest first; equal ones stay in order."""
        values = self.values[name]
        order = np.argsort(-values, kind="stable")
        return tuple((self.heads[place], float(values[place])) for place in order)


def scores(trace: Trace, family: Family) -> Scores:
    """Every statistic of every head of a family, each from its whole (query, key) weights."""
    reading = Reading(family.queries(trace), family.keys(trace))
    wanted, refused = [], {}
    some = family.members(trace)[0].weights(0)
    for statistic in STATISTICS:
        refusal = _refusal(statistic, family, some, reading)
        if refusal is None:
            wanted.append(statistic)
        else:
            refused[statistic.name] = refusal
    rows = [
        [statistic.of(weights, reading) for statistic in wanted]
        for attention in family.members(trace)
        for weights in map(attention.weights, range(attention.heads))
    ]
    table = np.array(rows).reshape(len(rows), len(wanted))
    values = {statistic.name: table[:, place] for place, statistic in enumerate(wanted)}
    return Scores(family.heads(trace), values, refused)


def looking(trace: Trace, family: Family, query: int, key: int) -> NDArray[np.float64]:
    """(head,): the weight of each head of a family from one token to another, by position."""
    return np.array(
        [
            attention.weights(head)[query, key]
            for attention in family.members(trace)
            for head in range(attention.heads)
        ],
        dtype=np.float64,
    )


def separators(tokens: Sequence[Token]) -> Mask:
    """(token,): True for special tokens and for those without any letter or digit."""
    return np.array([token.special or _is_punctuation(token.text) for token in tokens])


def _is_punctuation(text: str) -> bool:
    return bool(text.strip()) and text.isascii() and not any(map(str.isalnum, text))


def _refusal(statistic: Statistic, family: Family, some: Array, reading: Reading) -> str | None:
    """Why a statistic says nothing here: it depends on the tokens alone, so one head tells."""
    if family.cross and not statistic.across:
        return "These heads look from one text at another: their positions cannot be compared."
    try:
        statistic.of(some, reading)
    except ValueError as refusal:
        return str(refusal)
    return None


def _ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]
