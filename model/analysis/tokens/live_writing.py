"""Text written token by token: sampled, with a key–value cache and what each token cost, under an eviction,
and by beam search.

Axes: T tokens of a pass, V vocabulary.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.patching import Turn
from model.analysis.heads.contributions import rows_at_once
from model.analysis.tokens.prediction import Distribution, Sampling, log_probabilities
from model.nn.key_value_cache import KEEPS_ALL, Eviction, Kept, KeyValueCache
from model.nn.recorder import AttentionTensors, Level, Recorder, recording
from model.run.protocols import check_length
from model.system.deadline import own_time
from model.system.elsewhere import asked
from model.system.settings import MEGABYTE
from model.trace.arrays import Array, Wide
from model.trace.collect import attention_record, numbers_of
from model.trace.records import Attention, Token
from model.trace.trace import Trace

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


MOST_BYTES = 64 * MEGABYTE  # of the rows of one text while it grows


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


class GrowingRows:
    """The weights of every decoder head while a text grows: a row for each token that was read. Where they
    would take more bytes than `most`, all are let go."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._first: dict[str, Attention] = {}  # the pass over the given text
        self._added: dict[str, list[Array]] = {}  # (head, key) of each later pass
        self._most, self._held = most, 0  # bytes

    @property
    def is_full(self) -> bool:
        """Whether they took too many bytes, so that none is held."""
        return self._held > self._most

    def add(
        self,
        tensors: Sequence[AttentionTensors],
        where: Mapping[str, Sequence[int]],
        model: "Model",
    ) -> None:
        """Appends the rows of a pass. where: the positions of the keys that its new token read."""
        for one in tensors:
            if one.place.stack != "decoder" or self.is_full:
                continue
            record, name = attention_record(one, (), model.config.projection), one.place.name
            if name not in self._first:
                self._first[name], self._added[name] = record, []
                self._held += record.output.nbytes + sum(each.nbytes for each in record.vectors)
            else:
                rows = np.stack([record.weights(head)[-1] for head in range(record.heads)])
                if one.place.kind == "causal":
                    rows = _spread(rows, where[name])
                self._added[name].append(rows)
                self._held += rows.nbytes
        if self.is_full:
            self.clear()

    def clear(self) -> None:
        """Lets go of all rows."""
        self._first, self._added = {}, {}

    def weights(self, name: str, head: int) -> Array | None:
        """(query, key): the rows so far of a head, the last one where the sub-layer has not so many; 0 where
        a token was not there yet, or was dropped. None where nothing is held."""
        record = self._first.get(name)
        if record is None:
            return None
        head, added = min(head, record.heads - 1), list(self._added.get(name, ()))
        first = record.weights(head)
        width = added[-1].shape[1] if added else first.shape[1]
        rows = [*first, *(row[head] for row in added)]
        return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def _spread(rows: Array, where: Sequence[int]) -> Array:
    """(head, key): weights on the kept keys as weights on all of them, 0 on those that were dropped. A pass
    that reads the whole text anew has weights on all."""
    if rows.shape[1] == where[-1] + 1:
        return rows
    spread = np.zeros((len(rows), where[-1] + 1), rows.dtype)
    spread[:, list(where)] = rows
    return spread


@dataclass(frozen=True, eq=False)
class Writing:
    """What is known so far."""

    steps: tuple[WrittenToken, ...]
    done: int
    total: int
    rows: GrowingRows = field(default_factory=GrowingRows)  # empty once the text is written

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
    rows: bool = True,
    turn: Turn = nullcontext,
) -> Generator[Writing]:
    """The continuation of a text by the unchanged model, or its translation, after each token. Whoever stops
    asking stops the work.

    compared: each step also runs a pass over all that was read, without a cache; both are timed and record
    nothing. rows: whether else the weights of each pass are held until the text is written. turn: makes a
    context in which one pass runs. Raises ValueError for an encoder, for more steps than the context has
    room for, and for a model that keeps something else than keys and values.
    """
    if model.config.shape == "encoder":
        raise ValueError(f"{model.name} is an encoder: it reads text, it does not continue it.")
    given = [token.id for token in model.begun(tokens)]
    check_length(len(given) + steps - 1, model.config.n_ctx, model.name)
    cache, held = model.module.new_cache(eviction), GrowingRows()
    found: tuple[WrittenToken, ...] = ()
    read, new, records = given, given, rows and not compared
    try:
        while len(found) < steps and (not found or found[-1].id != model.tokenizer.end):
            kept = cache.kept if records else {}
            where = {name: [*one.positions.tolist(), cache.read] for name, one in kept.items()}
            with turn():
                passed = _passed(model, tokens, new, cache, records=records)
                held.add(passed.tensors, where, model)
            other = None
            if compared:
                with turn():
                    other = _passed(model, tokens, read, None)
            found += (_chosen(choice, len(found), passed, other, cache),)
            new, read = [found[-1].id], [*read, found[-1].id]
            if len(found) < steps:
                yield Writing(found, len(found), steps, held)
    finally:
        held.clear()
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
    """(T,): how probable each written token is, in one pass in which every token can read what an eviction
    leaves it: the same as reading the text token by token with such a cache."""
    given, cache = [token.id for token in model.begun(tokens)], model.module.new_cache(eviction)
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
    tensors: Sequence[AttentionTensors]


def _passed(
    model: "Model",
    tokens: tuple[Token, ...],
    read: Sequence[int],
    cache: KeyValueCache | None,
    *,
    records: bool = False,
) -> _Pass:
    level: Level = "attention" if records else "nothing"
    recorder = Recorder(level=level, source=model.config.source, deferred=True, cache=cache)
    with recording(recorder), torch.inference_mode():
        fed = _fed(model, tokens, read)
        begun = own_time()
        logits = _logits(model, model.module(*fed)[0, -1]).float().cpu()
        seconds = own_time() - begun
    return _Pass(logits.numpy(), seconds, recorder.attention)


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


# Beam search beside greedy decoding: the most probable texts that are found when several are kept.
# A text that ended keeps its total and its place among the others. Totals are not divided by the length.
# Source: Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning with Neural Networks". Axes: R rows
# of a batch, V vocabulary.


@dataclass(frozen=True)
class Continuation:
    """What is written after the text, and how probable the model finds it."""

    ids: tuple[int, ...]
    log_probability: float  # of its last token
    total: float  # the log-probabilities of its tokens, added up
    ended: bool = False


@dataclass(frozen=True)
class BeamStep:
    """One step: what it keeps, what comes next in rank and is dropped, and the greedy continuation."""

    kept: tuple[Continuation, ...]  # the highest total first
    dropped: tuple[Continuation, ...]  # as many, by their totals
    greedy: Continuation


@dataclass(frozen=True)
class BeamSearch:
    """What is known so far."""

    steps: tuple[BeamStep, ...]
    done: int
    total: int  # steps in all; those after every text ended need no pass

    @property
    def best(self) -> Continuation:
        return self.steps[-1].kept[0]

    @property
    def greedy(self) -> Continuation:
        return self.steps[-1].greedy


@asked
def beam_search(
    model: "Model", trace: Trace, *, beams: int, steps: int, turn: Turn = nullcontext
) -> Iterator[BeamSearch]:
    """The search after the text of a trace, step by step; all texts of a step are one batch. An
    encoder–decoder begins its target anew. Whoever stops asking stops the work. turn: makes a context in
    which one batch runs. Raises ValueError for an encoder, for a search without beams or steps, and for
    more steps than the context has room for."""
    if model.config.shape == "encoder":
        raise ValueError(f"{model.name} is an encoder: it reads text, it does not continue it.")
    if beams < 1 or steps < 1:
        raise ValueError(f"A search needs a beam and a step, not {beams} and {steps}.")
    check_length(len(model.begun(trace.tokens)) + steps - 1, model.config.n_ctx, model.name)
    greedy = Continuation((), 0.0, 0.0)
    kept: tuple[Continuation, ...] = (greedy,)
    found: tuple[BeamStep, ...] = ()
    while len(found) < steps and not (greedy.ended and all(one.ended for one in kept)):
        texts = {one.ids: one for one in (*kept, greedy) if not one.ended}
        rows = dict(zip(texts, _next(model, trace, list(texts), turn), strict=True))
        end = model.tokenizer.end
        ranked = [one for one in kept if one.ended]
        for one in kept:
            if not one.ended:
                ranked += _continued(one, rows[one.ids], 2 * beams, end)
        ranked.sort(key=lambda one: -one.total)
        kept, dropped = tuple(ranked[:beams]), tuple(ranked[beams : 2 * beams])
        if not greedy.ended:
            (greedy,) = _continued(greedy, rows[greedy.ids], 1, end)
        found += (BeamStep(kept, dropped, greedy),)
        yield BeamSearch(found, len(found), steps)
    if len(found) < steps:
        yield BeamSearch(found, steps, steps)


def _continued(
    text: Continuation, row: Wide, count: int, end: int | None
) -> tuple[Continuation, ...]:
    """A text with each of the `count` likeliest next tokens. row: their log-probabilities, (V,)."""
    return tuple(
        Continuation((*text.ids, id_), float(row[id_]), text.total + float(row[id_]), id_ == end)
        for id_ in np.argsort(-row, kind="stable")[:count].tolist()
    )


def _next(
    model: "Model", trace: Trace, texts: Sequence[tuple[int, ...]], turn: Turn
) -> Iterator[Wide]:
    """(V,) of each text: the log-probabilities of what follows it."""
    most = rows_at_once(trace, model.config.d_vocab * (model.module.output_matrix is None))
    for start in range(0, len(texts), most):
        with turn():
            logits = _last_logits(model, trace, texts[start : start + most])
        yield from log_probabilities(numbers_of(logits))


def _last_logits(model: "Model", trace: Trace, texts: Sequence[tuple[int, ...]]) -> Tensor:
    """(R, V): one pass over the text with each of these, all equally long, written after it."""
    begin = [token.id for token in model.begun(trace.tokens)]
    source = model.ids(trace.tokens).expand(len(texts), -1)
    rows = [[*begin, *text] for text in texts]
    written = torch.tensor(rows, dtype=torch.long, device=source.device)
    fed = [source, written] if model.config.shape == "encoder-decoder" else [written]
    recorder = Recorder(trace.intervention, source=model.config.source, deferred=True)
    with recording(recorder), torch.inference_mode():
        last, matrix = model.module(*fed)[:, -1], model.module.output_matrix
        logits: Tensor = last if matrix is None else last @ matrix.T
    return logits
