"""Text written token by token: sampled, with a key–value cache and what each token cost, under an eviction.

Axes: T tokens of a pass, V vocabulary.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from model.analysis.attribution.patching import Turn
from model.analysis.tokens.prediction import Distribution, Sampling, log_probabilities
from model.nn.key_value_cache import KEEPS_ALL, Eviction, Kept, KeyValueCache
from model.nn.recorder import Recorder, recording
from model.run.protocols import check_length
from model.system.deadline import own_time
from model.system.remote import asked
from model.trace.arrays import Array, Wide
from model.trace.collect import numbers_of
from model.trace.records import Attention, Token

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True)
class Choice:
    """How a token is chosen from a distribution: the likeliest, or drawn with a seed."""

    sampling: Sampling
    seed: int | None = None  # None: greedy, always the likeliest

    def of(self, logits: Array, step: int) -> int:
        """The id chosen at a step, from 0, given the last logits, (vocabulary,). Seed, step and logits
        fix the choice."""
        if self.seed is None:
            return int(logits.argmax())
        return drawn(self.sampling.of(logits), uniform(self.seed, step))


def uniform(seed: int, step: int) -> float:
    """A random number from 0 up to 1, fixed by seed and step."""
    return float(np.random.default_rng((seed, step)).random())


def drawn(distribution: Distribution, point: float) -> int:
    """The token in whose share a point between 0 and 1 falls; shares lie end to end in order of id. A
    token with no share is never drawn."""
    ends = distribution.cumsum()
    return int(np.searchsorted(ends, point * ends[-1], side="right"))


def written(
    choose: Callable[[tuple[int, ...]], int], *, steps: int, end: int | None
) -> tuple[int, ...]:
    """The ids of the first `steps` steps, or up to and with `end`. `choose` gives the id that follows
    those written so far."""
    ids: tuple[int, ...] = ()
    while len(ids) < steps and (not ids or ids[-1] != end):
        ids += (choose(ids),)
    return ids


@dataclass(frozen=True)
class KeptInLayer:
    """What one sub-layer of the decoder keeps after a pass."""

    tokens: int
    nbytes: int  # of the tensors of keys and values
    sizes: tuple[tuple[int, int], ...] = ()  # of these tensors for one token: heads and width

    def rebuilds(self, attention: Attention) -> bool:
        """Whether keys and values are made anew from what is kept, at each step (DeepSeek-V2, 2024)."""
        used = tuple((len(each), each.shape[-1]) for each in attention.vectors[1:])
        return bool(self.sizes) and self.sizes != used


@dataclass(frozen=True)
class WrittenToken:
    """One token that was chosen, and the pass that it was chosen from."""

    id: int
    log_probability: float  # natural, in the model's own distribution
    read: int  # tokens that the decoder had read by then
    new: int  # of them read in this pass
    kept: Mapping[str, KeptInLayer]  # after the pass, by sub-layer of the decoder
    seconds: float  # of the pass
    without: float | None = None  # seconds of a pass over all that was read
    apart: float | None = None  # largest difference of its logits from these


@dataclass(frozen=True, eq=False)
class Writing:
    """What is known so far."""

    steps: tuple[WrittenToken, ...]
    done: int
    total: int

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(step.id for step in self.steps)


@asked
def live_writing(
    model: "Model",
    tokens: tuple[Token, ...],
    choice: Choice,
    *,
    steps: int,
    eviction: Eviction = KEEPS_ALL,
    compared: bool = False,
    turn: Turn = nullcontext,
) -> Generator[Writing]:
    """The continuation of a text by the unchanged model, or its translation, after each token. Whoever stops
    asking stops the work.

    Args:
        tokens: of the text.
        steps: tokens to write at most; the end of the text comes before.
        eviction: what the cache drops.
        compared: each step also runs a pass over all that was read, without a cache; both are timed.
        turn: makes a context in which one pass runs.

    Raises ValueError for an encoder, for more steps than the context has room for, and for a model that keeps
    something else than keys and values.
    """
    if model.config.shape == "encoder":
        raise ValueError(f"{model.name} is an encoder: it reads text, it does not continue it.")
    given = [token.id for token in model.decoder_prompt(tokens)]
    check_length(len(given) + steps - 1, model.config.n_ctx, model.name)
    cache = model.module.new_cache(eviction)
    found: tuple[WrittenToken, ...] = ()
    read, new = given, given
    while len(found) < steps and (not found or found[-1].id != model.tokenizer.end):
        with turn():
            passed = _passed(model, tokens, new, cache)
        other = None
        if compared:
            with turn():
                other = _passed(model, tokens, read, None)
        found += (_chosen(choice, len(found), passed, other, cache),)
        new, read = [found[-1].id], [*read, found[-1].id]
        if len(found) < steps:
            yield Writing(found, len(found), steps)
    yield Writing(found, steps, steps)


def _chosen(
    choice: Choice,
    step: int,
    passed: "_Pass",
    other: "_Pass | None",
    cache: KeyValueCache,
) -> WrittenToken:
    """The next token. other: the pass without a cache."""
    id_ = choice.of(passed.logits, step)
    return WrittenToken(
        id_,
        float(log_probabilities(passed.logits[None])[0, id_]),
        cache.read,
        cache.new,
        {name: _kept_in_layer(one) for name, one in cache.kept.items()},
        passed.seconds,
        None if other is None else other.seconds,
        None if other is None else float(np.abs(other.logits - passed.logits).max()),
    )


def _kept_in_layer(kept: Kept) -> KeptInLayer:
    tensors = kept.key, kept.value
    sizes = tuple((tensor.shape[1], tensor.shape[-1]) for tensor in tensors)
    return KeptInLayer(len(kept.positions), kept.nbytes, sizes)


@asked
def log_probabilities_of(
    model: "Model",
    tokens: tuple[Token, ...],
    written: Sequence[int],
    eviction: Eviction = KEEPS_ALL,
) -> Wide:
    """(T,): the natural logarithm of the probability of each written token, in one pass in which every token
    can read what an eviction leaves it: as if the text were read token by token with such a cache.

    Args:
        tokens: of the text.
        written: ids that follow it, or its translation.
        eviction: what a cache would drop.
    """
    given = [token.id for token in model.decoder_prompt(tokens)]
    cache = model.module.new_cache(eviction)
    recorder = Recorder(source=model.config.source, deferred=True, cache=cache)
    with recording(recorder), torch.inference_mode():
        fed = _fed(model, tokens, [*given, *written][:-1])
        logits = _logits(model, model.module(*fed)[0, len(given) - 1 :])
    rows = log_probabilities(numbers_of(logits))
    return rows[np.arange(len(rows)), list(written)]


class _Pass(NamedTuple):
    """What one pass gave."""

    logits: Array  # (V,), after its last token
    seconds: float


def _passed(
    model: "Model", tokens: tuple[Token, ...], read: Sequence[int], cache: KeyValueCache | None
) -> _Pass:
    recorder = Recorder(level="nothing", source=model.config.source, deferred=True, cache=cache)
    with recording(recorder), torch.inference_mode():
        fed = _fed(model, tokens, read)
        begun = own_time()
        logits = _logits(model, model.module(*fed)[0, -1]).float().cpu()
        seconds = own_time() - begun
    return _Pass(logits.numpy(), seconds)


def _logits(model: "Model", made: torch.Tensor) -> torch.Tensor:
    """(…, V): what a deferred pass made, as logits: final states where the model has an output matrix."""
    matrix = model.module.output_matrix
    return made if matrix is None else made @ matrix.T


def _fed(model: "Model", tokens: tuple[Token, ...], read: Sequence[int]) -> list[torch.Tensor]:
    """What the module is fed so that its decoder reads these ids."""
    ids = torch.tensor([list(read)], dtype=torch.long, device=model.device)
    return [model.ids(tokens), ids] if model.config.shape == "encoder-decoder" else [ids]


# One text written with three caches: all is kept, a window of the last tokens, the window and the first
# tokens.
# A model that has learned to rest its attention on the first token loses its footing where that is dropped.
# Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"; here tokens keep the
# positions at which they were read.


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
    """All three, after each token. Whoever stops asking stops the work.

    Args:
        tokens: of the text.
        steps: tokens to write with each of the three.
        window: keys that the shorter caches keep, the reader's own included.
        first: tokens of the start that the third keeps too.
        turn: makes a context in which one pass runs.

    Raises ValueError as `live_writing` and `Eviction` do.
    """
    found: tuple[Shorter, ...] = ()
    total = 3 * steps
    for number, eviction in enumerate(evictions(window, first)):
        written = None
        for written in live_writing(
            model, tokens, choice, steps=steps, eviction=eviction, turn=turn
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
