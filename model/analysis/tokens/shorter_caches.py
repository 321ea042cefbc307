"""One text written with three caches: all is kept, a window of the last tokens, the window and the first
tokens.

A model that has learned to rest its attention on the first token loses its footing where that is dropped.
Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"; here tokens keep the
positions at which they were read.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.analysis.attribution.patching import Turn
from model.analysis.tokens.live_writing import Writing, live_writing, log_probabilities_of
from model.analysis.tokens.sampling import Choice
from model.nn.key_value_cache import KEEPS_ALL, Eviction
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class Shorter:
    """What was written with one cache. Log-probabilities are natural, (token,)."""

    eviction: Eviction
    writing: Writing
    of_own: Wide  # of its tokens, read by the model with everything kept
    of_whole: Wide  # of the tokens that were written with everything kept, read with this cache


@dataclass(frozen=True, eq=False)
class ShorterCaches:
    """What is known so far."""

    found: tuple[Shorter, ...]
    done: int
    total: int  # tokens in all


def evictions(window: int, first: int) -> tuple[Eviction, Eviction, Eviction]:
    """The three that are compared."""
    return KEEPS_ALL, Eviction(window), Eviction(window, first)


@asked
def shorter_caches(
    model: "Model",
    tokens: tuple[Token, ...],
    choice: Choice,
    *,
    steps: int,
    window: int,
    first: int,
    turn: Turn = nullcontext,
) -> Iterator[ShorterCaches]:
    """All three, after each token. Whoever stops asking stops the work. Raises ValueError as `live_writing`
    and `Eviction` do."""
    found: tuple[Shorter, ...] = ()
    total = 3 * steps
    for number, eviction in enumerate(evictions(window, first)):
        written = None
        for written in live_writing(
            model, tokens, choice, steps=steps, eviction=eviction, rows=False, turn=turn
        ):
            yield ShorterCaches(found, min(number * steps + written.done, total - 1), total)
        if written is None:
            return
        whole = found[0].writing.ids if found else written.ids
        with turn():
            of_own = log_probabilities_of(model, tokens, written.ids)
        with turn():
            of_whole = log_probabilities_of(model, tokens, whole, eviction)
        found += (Shorter(eviction, written, of_own, of_whole),)
    yield ShorterCaches(found, total, total)
