"""Which source words each word of a translation comes from: by the grammar, and by the heads.

The query before a word predicts it. So row f of a cross-attention belongs to word f of the target,
without its start token, and the last row to what follows the last word.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from model.loading.shipped import ASSETS
from model.nn.places import decoder_head
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.training.grammar import Phrase, parsed

Links = tuple[tuple[int, ...], ...]  # for each target word the source words that it says


@dataclass(frozen=True)
class AligningHead:
    """One cross-attention head, and how much of its weight lies on the reference words."""

    place: str  # decoder.1.cross
    number: int
    share: float  # 0–1, the mean over the words that have reference


@lru_cache(maxsize=256)
def reference_phrase(source: tuple[str, ...]) -> Phrase | None:
    """The phrase of the grammar with these words, with its translation and its links; None where the
    grammar has no such sentence."""
    return parsed(source)


def reference_links(phrase: Phrase, target: Sequence[str]) -> Links:
    """For each target word the source words that it translates, by the grammar.

    In a target that is not the grammar's own, the second "le" has the links of the grammar's second "le",
    and so on. Words that the grammar's translation lacks have no links.
    """
    waiting: dict[str, list[tuple[int, ...]]] = {}
    for word, link in zip(phrase.french, phrase.links, strict=True):
        waiting.setdefault(word, []).append(link)
    return tuple(waiting[word].pop(0) if waiting.get(word) else () for word in target)


def source_words(trace: Trace) -> tuple[str, ...]:
    """The texts of the tokens that the encoder read."""
    return tuple(token.text for token in trace.tokens)


def target_words(trace: Trace) -> tuple[str, ...]:
    """The texts of the words in the target, without its start token."""
    return tuple(token.text for token in trace.target_tokens[1:])


def links_of(trace: Trace) -> Links | None:
    """The reference links of a run; None where the grammar has no such sentence."""
    phrase = reference_phrase(source_words(trace))
    return None if phrase is None else reference_links(phrase, target_words(trace))


def shares_on_reference(weights: Array, links: Links) -> tuple[float | None, ...]:
    """For each target word the sum of its row's weights on its reference words; None without reference.

    weights: (query, key), as many queries as words or more. Raises ValueError for fewer.
    """
    if len(weights) < len(links):
        raise ValueError(f"{len(links)} words need as many rows of weights; there are fewer.")
    return tuple(
        float(row[list(link)].sum()) if link else None
        for row, link in zip(weights, links, strict=False)
    )


def share_on_reference(weights: Array, links: Links) -> float | None:
    """The mean of `shares_on_reference` over the words that have reference; None if none has."""
    shares = [share for share in shares_on_reference(weights, links) if share is not None]
    return float(np.mean(shares)) if shares else None


def crossings(links: Links) -> tuple[tuple[int, int], ...]:
    """Pairs of neighbouring target words whose source words stand the other way round."""
    return tuple(
        (at, at + 1)
        for at, (one, next_one) in enumerate(pairwise(links))
        if one and next_one and min(one) > max(next_one)
    )


def heads_by_reference(trace: Trace, links: Links) -> tuple[AligningHead, ...]:
    """Every cross-attention head of a run, the one with most weight on the reference first; () without any
    reference."""
    heads = [
        AligningHead(attention.name, head, share)
        for attention in trace.attention
        if attention.kind == "cross"
        for head in range(attention.heads)
        if (share := share_on_reference(attention.weights(head), links)) is not None
    ]
    return tuple(sorted(heads, key=lambda head: -head.share))


@lru_cache(maxsize=16)
def aligning_head(model: str) -> tuple[str, int] | None:
    """The sub-layer and number of the cross-attention head that aligned best in the evaluation of
    a shipped model. None where no card says so."""
    try:
        card = json.loads((ASSETS / model / "card.json").read_text(encoding="utf-8"))
        return decoder_head(card["heads"]["alignment"], "cross")
    except (OSError, ValueError, KeyError):
        return None
