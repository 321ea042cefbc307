"""What an answer owes to each part of another run: parts of run B put into run A, one at a time; along one
path only; and estimated from one gradient instead of a pass for each.

Sources: Vig et al. 2020, "Causal Mediation Analysis"; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT". Axes: R rows of a batch, one patch each; H heads, T tokens, C d_model, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.stream_parts import check_model
from model.analysis.cost.timing import Turn
from model.analysis.heads.contributions import rows_at_once, texts_in_rows
from model.analysis.stream.stream import contributions
from model.nn.patches import (
    Site,
    SiteKind,
    Through,
    Where,
    cache_hook,
    one_after_another,
    patch_hook,
)
from model.nn.places import Head, Place, layer_label
from model.nn.recorder import Recorder, recording
from model.run.protocols import check_id, check_same_length
from model.system.border import at_border
from model.system.remote import asked
from model.trace.arrays import Wide
from model.trace.collect import doubled
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


What = Literal["head", "weights", "head_tokens", "stream", "feed_forward"]
WHATS: tuple[What, ...] = get_args(What)
SITES: Mapping[What, tuple[SiteKind, ...]] = {
    "head": ("output",),
    "weights": ("query", "key"),
    "head_tokens": ("output",),
    "stream": ("stream",),
    "feed_forward": ("hidden",),
}


@dataclass(frozen=True)
class Spot:
    """Where run B is put into run A: a sub-layer, and a head or a token of it, or both."""

    name: str
    head: int | None = None  # None: the sub-layer has none there
    token: int | None = None  # None: all tokens


@asked
@at_border
def patch_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    what: What = "head",
    *,
    answer: tuple[int, int],
    place: str | int = "",
) -> Wide:
    """How far each part of run B, put into run A alone, moves the answer from A's to B's. 0: it stays as in
    A; 1: it becomes as in B. The rest of the pass is A's, its intervention too.

    Args:
        what: the parts, and with them rows and columns. "head": (sub-layer, head), sub-layers in order of
            execution; a head's output at all tokens. "weights": the same, a head's weights alone.
            "head_tokens": (head of `place`, token), its output at one token. "stream": (layer, token), the
            residual stream before that layer. "feed_forward": (layer, token), what it writes. Layers and
            tokens are those of the stack that reads the text.
        answer: (id of A's token, id of B's): the answer is the difference of their logits at the last
            position.
        place: the sub-layer of "head_tokens", or the number of its layer.

    Raises ValueError for runs that cannot be laid over each other, and where both answer alike.

    >>> from model.analysis import patch_map
    >>> other = model.trace("Tom Reed saw a red ball. Anna gave the ball to Tom")
    >>> hill, reed = trace.tokens[1].id, other.tokens[1].id
    >>> shares = patch_map(model, trace, other, what="head", answer=(hill, reed))
    >>> shares.shape, tuple(map(int, np.unravel_index(shares.argmax(), shares.shape)))
    ((4, 8), (0, 1))
    """
    check_runs(model, trace_a, trace_b, answer)
    named = place if place == "" else model.layer(place).place.name
    *_, last = patch_maps(PatchedRuns(model, trace_a, trace_b, what, str(named)), answer)
    return last


def patch_maps(
    runs: "PatchedRuns", answer: tuple[int, int], *, turn: Turn = nullcontext
) -> Iterator[Wide]:
    """The same map after each batch, NaN where it is still to come. Whoever stops asking stops the work.
    turn: makes a context in which one batch runs."""
    return runs.shares(answer, lambda batch: runs.run([(spot,) for spot in batch]), turn)


class PatchedRuns:
    """Passes over the tokens of run A with parts of run B in their place."""

    def __init__(
        self,
        model: "Model",
        trace_a: Trace,
        trace_b: Trace,
        what: What,
        place: str = "",
        *,
        before: str = "",
        kept: Mapping[Site, Tensor] | None = None,
    ) -> None:
        """before: the sub-layer before which parts are put in; "": all are. kept: what is put in, in the
        place of what run B has there."""
        self.model, self.trace, self.other, self.what = model, trace_a, trace_b, what
        self.grid = spots_of(model, trace_a, what, place, before=before)
        self.kept: dict[Site, Tensor] = dict(kept or {})
        if kept is not None:
            return
        sites = {(kind, row[0].name) for row in self.grid for kind in SITES[what]}
        self.theirs = self.passed(trace_b, cache_hook(self.kept, sites))  # what run B ends with

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.grid), max(map(len, self.grid))

    @property
    def all(self) -> list[Spot]:
        """Every single patch."""
        return [spot for row in self.grid for spot in row]

    def cell(self, spot: Spot) -> tuple[int, int]:
        """Where a patch stands in the map."""
        return next((at, row.index(spot)) for at, row in enumerate(self.grid) if spot in row)

    def batches(self) -> Iterator[list[Spot]]:
        """All patches, those of one sub-layer after the other."""
        most = rows_at_once(
            self.trace, self.model.config.d_vocab * (self.model.module.output_matrix is None)
        )
        for row in [self.all] if self.first_layer(self.all[:1]) is None else self.grid:
            yield from (list(row[start : start + most]) for start in range(0, len(row), most))

    def run(self, rows: Sequence[Sequence[Spot]]) -> Tensor:
        """(R, T, C): the last states where the model has an output matrix of its own, else its logits
        (R, T, V); each row with its patches."""
        put = patch_hook(self.kept, [self.sites_of(row) for row in rows])
        first = self.first_layer([spot for row in rows for spot in row])
        if first is None:
            return self.passed(self.trace, put, len(rows))
        return self.passed(self.trace, one_after_another(in_rows(first, len(rows)), put))

    def shares(
        self,
        answer: tuple[int, int],
        patched: Callable[[list[Spot]], Tensor],
        turn: Turn,
    ) -> Iterator[Wide]:
        """How far patches move the answer from A's to B's, after each batch; NaN where it is still to come.

        Args:
            answer: (id of A's token, id of B's).
            patched: what a batch of patches ends with, (R, T, …).
            turn: makes a context in which one batch runs.
        """
        shares = np.full(self.shape, np.nan)
        for batch in self.batches():
            with turn():
                start, end = self.answers(answer)
                moved = self.answer_of(patched(batch), answer)
            cells = np.transpose([self.cell(spot) for spot in batch])
            shares[tuple(cells)] = (moved - start) / (end - start)
            yield shares.copy()

    @cached_property
    def own(self) -> Tensor:
        """What run A ends with."""
        return self.run([()])

    def passed(self, trace: Trace, through: Through, rows: int = 1) -> Tensor:
        """What a pass ends with, (R, T, …), under the trace's own intervention.

        Args:
            trace: whose tokens are passed.
            through: is handed what passes each site, and gives what goes on.
            rows: how often the text stands in the batch.
        """
        recorder = Recorder(
            trace.intervention, source=self.model.config.source, deferred=True, through=through
        )
        with recording(recorder), torch.inference_mode():
            result: Tensor = self.model.module(*texts_in_rows(self.model, trace, rows))
        return result

    def answer_of(self, ended: Tensor, answer: tuple[int, int]) -> Wide:
        """(R,): how far the second token's logit lies above the first's at the last position."""
        difference: Wide = doubled(answer_in(self.model, ended, answer).detach()).cpu().numpy()
        return difference

    def answers(self, answer: tuple[int, int]) -> tuple[float, float]:
        """The answer of run A and that of run B. Raises ValueError where they are alike."""
        start, end = (float(self.answer_of(ended, answer)[0]) for ended in (self.own, self.theirs))
        if not abs(end - start) > 1e-6 * max(abs(start), abs(end), 1.0):
            raise ValueError(
                "Both runs give the same answer, so there is no difference to measure."
            )
        return start, end

    def sites_of(self, spots: Sequence[Spot]) -> dict[Site, list[Where]]:
        """Where some patches are put in."""
        sites: dict[Site, list[Where]] = {}
        for spot in spots:
            for kind in SITES[self.what]:
                sites.setdefault((kind, spot.name), []).append((spot.head, spot.token))
        return sites

    def first_layer(self, spots: Sequence[Spot]) -> str | None:
        """The name of the first layer in which anything is put in; None where rows differ from the start.
        Before that layer all rows of a decoder are alike, and are computed once."""
        decodes = self.model.config.shape == "decoder" and self.model.module.rows_may_grow
        if not decodes or not spots:
            return None
        return Place(
            "decoder", min(Place.named(spot.name).layer or 0 for spot in spots), "self"
        ).name


def in_rows(first: str, rows: int) -> Through:
    """One row becomes many before this layer."""

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        return x.expand(rows, *x.shape[1:]) if (kind, name) == ("stream", first) else x

    return through


@asked
def spots_of(
    model: "Model", trace: Trace, what: What, place: str = "", *, before: str = ""
) -> list[list[Spot]]:
    """The patches of a map, by row and column.

    Args:
        what: as in `patch_map`.
        place: the sub-layer of "head_tokens".
        before: the sub-layer that ends the rows of heads; "": none does.

    Raises ValueError where there are none.
    """
    tokens = range(len(trace.tokens))
    if what == "head_tokens":
        attention = trace.find(place)
        tokens = range(len(trace.queries_of(attention)))
        return [[Spot(place, head, at) for at in tokens] for head in range(attention.heads)]
    if what in ("head", "weights"):
        names = [one.name for one in trace.attention]
        count = names.index(trace.find(before).name) if before else len(names)
        if not count:
            raise ValueError(f"No head comes before {layer_label(before)}.")
        return [[Spot(one.name, at) for at in range(one.heads)] for one in trace.attention[:count]]
    kind = "self" if what == "stream" else "feed_forward"
    names = [part.name for part in contributions(model, trace, trace.source)]
    layers = [name for name in names if Place.named(name).kind == kind]
    if not layers:
        raise ValueError(f"{model.name} has no feed-forward layers.")
    return [[Spot(name, token=at) for at in tokens] for name in layers]


def answer_in(model: "Model", ended: Tensor, answer: tuple[int, int]) -> Tensor:
    """(R,): how far the second token's logit lies above the first's at the last position."""
    matrix, last = model.module.output_matrix, ended[:, -1]
    pair = list(answer)
    logits = last[:, pair] if matrix is None else last @ matrix[pair].T
    return logits[:, 1] - logits[:, 0]


@asked
def check_runs(model: "Model", trace_a: Trace, trace_b: Trace, answer: tuple[int, int]) -> None:
    """Raises ValueError for runs that cannot be laid over each other, and for tokens that are not there.

    Args:
        answer: (id of A's token, id of B's).
    """
    for trace in (trace_a, trace_b):
        check_model(model, trace)
        if trace.intervention.patch is not None:
            raise ValueError("Parts of another run were put into this one already.")
    trace_a.require_prediction()
    check_same_length(len(trace_a.tokens), len(trace_b.tokens))
    check_same_length(len(trace_a.target_tokens), len(trace_b.target_tokens))
    for token in answer:
        check_id(token, model.config.d_vocab, model.name)


# What patches would do, estimated from one gradient instead of a pass for each.
# Source: Nanda 2023, "Attribution Patching".

FEWEST = 3  # cells of which a correlation says anything


def estimated_map(runs: PatchedRuns, answer: tuple[int, int]) -> Wide:
    """The map of `patch_map` to first order, as if the answer were linear in each part: what run B has
    there minus what run A has, times the gradient of A's answer. Of "weights" the parts are the weights
    themselves, which mix A's values, and not the queries and keys that they come from. One pass and one
    gradient for all cells."""
    start, end = runs.answers(answer)
    found = np.full(runs.shape, np.nan)
    effects = _effects(runs, answer)
    for at, row in enumerate(runs.grid):
        for column, spot in enumerate(row):
            head = slice(None) if spot.head is None else spot.head
            token = slice(None) if spot.token is None else spot.token
            found[at, column] = effects[spot.name][head, token].sum()
    estimate: Wide = found / (end - start)
    return estimate


def _effects(runs: PatchedRuns, answer: tuple[int, int]) -> dict[str, Wide]:
    """(H, T) by sub-layer, or (1, T) where heads play no part: difference times gradient, over the whole
    width."""
    added: dict[str, Tensor] = {}
    apart = _of_weights(runs) if runs.what == "weights" else {}
    sites = [("output", name) for name in apart] or [*runs.kept]

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        if (kind, name) not in sites:
            return x
        with torch.no_grad():
            theirs = apart[name].to(x) if name in apart else runs.kept[kind, name].clone() - x
        apart[name], added[name] = theirs, torch.zeros_like(x, requires_grad=True)
        return x + added[name]

    model, trace = runs.model, runs.trace
    recorder = Recorder(
        trace.intervention, source=model.config.source, deferred=True, through=through
    )
    with torch.inference_mode(False), torch.enable_grad(), recording(recorder):
        ended = model.module(*texts_in_rows(model, trace, 1))
        gradients = torch.autograd.grad(answer_in(model, ended, answer)[0], list(added.values()))
    return {
        name: _by_head_and_token(apart[name] * gradient)
        for name, gradient in zip(added, gradients, strict=True)
    }


def _of_weights(runs: PatchedRuns) -> dict[str, Tensor]:
    """(1, H, T, D) by sub-layer: how far the output of each head of run A moves with the weights of run B."""
    found = {}
    for name in [row[0].name for row in runs.grid]:
        ours, theirs = runs.trace.find(name), runs.other.find(name)
        moved = (theirs.weights() - ours.weights()) @ ours.value
        moved[list(ours.ablated)] = 0.0
        found[name] = torch.tensor(moved)[None]
    return found


def _by_head_and_token(effect: Tensor) -> Wide:
    if effect.ndim < 4:  # OPT leaves the batch axis out of some
        effect = effect.reshape(1, 1, -1, effect.shape[-1])
    summed: Wide = doubled(effect).sum(-1)[0].cpu().numpy()
    return summed


@dataclass(frozen=True)
class Agreement:
    """How well an estimate goes with the exact map, over the cells that both have."""

    cells: int
    correlation: float | None  # Pearson's; None where there is nothing to correlate
    largest: float  # |estimate − exact|
    mean: float


def agreement(exact: Wide, estimate: Wide) -> Agreement:
    """The correlation of an estimate with the exact map, and its errors."""
    both = np.isfinite(exact) & np.isfinite(estimate)
    ours, theirs = exact[both], estimate[both]
    if not len(ours):
        return Agreement(0, None, 0.0, 0.0)
    varies = len(ours) >= FEWEST and min(np.ptp(ours), np.ptp(theirs)) > 0
    apart = np.abs(theirs - ours)
    return Agreement(
        len(ours),
        float(np.corrcoef(ours, theirs)[0, 1]) if varies else None,
        float(apart.max()),
        float(apart.mean()),
    )


# Patches along one path: what a later head would do if it alone read an earlier head of another run.
# Source: Wang et al. 2022, "Interpretability in the Wild", path patching.

PathReads = Literal["query", "key", "value"]
READS: tuple[PathReads, ...] = get_args(PathReads)


@asked
def path_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    receiver: Head,
    reads: Sequence[PathReads] = READS,
    *,
    answer: tuple[int, int],
) -> Wide:
    """(sub-layer, head): how far each earlier head, as it is in run B, moves the answer through one later
    head alone. 0 and 1 as in `patch_map`.

    Of each sender two passes. In the first its output is run B's, and all other heads and feed-forwards are
    held as in run A, so that what the receiver reads changes by the direct way only. The second is run A
    with the receiver's queries, keys or values of the first.

    Args:
        receiver: (sub-layer, number) of the later head.
        reads: which of its vectors are those of the first pass.
        answer: (id of A's token, id of B's).

    Raises ValueError as `patch_map` does, and where no head comes before the receiver.
    """
    check_runs(model, trace_a, trace_b, answer)
    runs = PatchedRuns(model, trace_a, trace_b, "head", before=receiver[0])
    *_, last = path_maps(runs, receiver, reads, answer=answer)
    return last


def path_maps(
    runs: PatchedRuns,
    receiver: Head,
    reads: Sequence[PathReads] = READS,
    *,
    answer: tuple[int, int],
    turn: Turn = nullcontext,
) -> Iterator[Wide]:
    """The same map after each batch, as `patch_maps` gives it.

    Args:
        runs: of heads before the receiver.
        receiver, reads, answer: as in `path_map`.
        turn: makes a context in which one batch runs.
    """
    with turn():
        patched = along_path(runs, receiver, reads)
    yield from runs.shares(answer, patched, turn)


def along_path(
    runs: PatchedRuns, receiver: Head, reads: Sequence[PathReads] = READS
) -> Callable[[list[Spot]], Tensor]:
    """What gives the end of the second passes of a batch of senders."""
    held = _held(runs)

    def patched(batch: list[Spot]) -> Tensor:
        read = _read(runs, batch, held, receiver[0])
        return _with(runs, len(batch), read, receiver, reads)

    return patched


def _held(runs: PatchedRuns) -> dict[Site, Tensor]:
    """What every head and every feed-forward of run A gives."""
    held: dict[Site, Tensor] = {}

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        if kind in ("output", "hidden"):
            held[kind, name] = x
        return x

    runs.passed(runs.trace, through)
    return held


def _read(
    runs: PatchedRuns, batch: Sequence[Spot], held: dict[Site, Tensor], receiver: str
) -> dict[Site, Tensor]:
    """The queries, keys and values of the receiver's sub-layer, a row for each sender."""
    rows, read = len(batch), dict[Site, Tensor]()
    first = runs.first_layer(batch)
    everything: dict[Site, list[Where]] = {
        site: [(None, None)] for site in held if first is None or not _before(site[1], first)
    }
    through = one_after_another(
        patch_hook(held, [everything] * rows),
        patch_hook(runs.kept, [runs.sites_of([spot]) for spot in batch]),
        cache_hook(read, [(kind, receiver) for kind in READS]),
    )
    if first is None:
        runs.passed(runs.trace, through, rows)
    else:
        runs.passed(runs.trace, one_after_another(in_rows(first, rows), through))
    return read


def _before(name: str, first: str) -> bool:
    """Whether a sub-layer of a decoder is of an earlier layer."""
    layer, other = (Place.named(one).layer or 0 for one in (name, first))
    return layer < other


def _with(
    runs: PatchedRuns,
    rows: int,
    read: dict[Site, Tensor],
    receiver: Head,
    reads: Sequence[PathReads],
) -> Tensor:
    """What run A ends with where one head has these queries, keys or values."""
    place, head = receiver
    put = patch_hook(read, [{(kind, place): [(head, None)] for kind in reads}] * rows)
    first = runs.first_layer([Spot(place, head)])
    if first is None:
        return runs.passed(runs.trace, put, rows)
    return runs.passed(runs.trace, one_after_another(in_rows(first, rows), put))


PatchMapKind = What | Literal["path"]


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What is known of a map: shares, NaN where they are still to come, and the estimate of them."""

    shares: Wide
    estimate: Wide | None  # None for paths
    answers: tuple[float, float]  # of A and of B: differences of two logits
    total: int  # cells

    @property
    def done(self) -> int:
        return int(np.isfinite(self.shares).sum())


@asked
def growing_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    kind: PatchMapKind,
    answer: tuple[int, int],
    *,
    place: str = "",
    receiver: Head | None = None,
    reads: tuple[PathReads, ...] = READS,
    turn: Turn,
) -> Iterator[PatchMap]:
    """Of "path" the map of `path_maps` into a receiver; else that of `patch_maps`, after its estimate.

    Args:
        answer: (id of A's token, id of B's).
        place: the sub-layer of "head_tokens".
        receiver: of "path"; None: the first head of `place`.
        reads: which of the receiver's vectors change.
        turn: makes a context in which one batch runs.

    Raises ValueError as `check_runs`, and where both runs answer alike.
    """
    check_runs(model, trace_a, trace_b, answer)
    if kind == "path":
        with turn():
            into = receiver or (place, 0)
            patched = PatchedRuns(model, trace_a, trace_b, "head", before=into[0])
            answers = patched.answers(answer)
        for shares in path_maps(patched, into, reads, answer=answer, turn=turn):
            yield PatchMap(shares, None, answers, len(patched.all))
        return
    with turn():
        patched = PatchedRuns(model, trace_a, trace_b, kind, place)
        answers = patched.answers(answer)
        estimate = estimated_map(patched, answer)
    found = PatchMap(np.full(patched.shape, np.nan), estimate, answers, len(patched.all))
    yield found
    for shares in patch_maps(patched, answer, turn=turn):
        yield replace(found, shares=shares)
