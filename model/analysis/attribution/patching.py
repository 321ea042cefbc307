"""What an answer owes to each part of another run: parts of run B put into run A, one at a time; along one
path only; and estimated from one gradient instead of a pass for each.

Sources: Vig et al. 2020, "Causal Mediation Analysis"; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT". Axes: R rows of a batch, one patch each; H heads, T tokens, C d_model, V vocabulary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.stream_parts import check_model
from model.analysis.cost.timing import Turn
from model.analysis.stream.stream import contributions
from model.nn.patches import HookKind, HookPoint, Hooks, Where, cache_hooks, patch_hooks
from model.nn.places import Head, Place, layer_label
from model.run.passes import forward, gradients, ids_of, layer_of, rows_at_once, rows_grow
from model.run.protocols import check_id, check_same_length
from model.system.border import at_border
from model.system.remote import asked
from model.trace.arrays import Wide
from model.trace.collect import doubled
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


What = Literal["head", "weights", "head_tokens", "stream", "feed_forward"]
PathReads = Literal["query", "key", "value"]
FeedForwards = Literal["fixed", "recomputed"]
WHATS: tuple[What, ...] = get_args(What)
READS: tuple[PathReads, ...] = get_args(PathReads)
HOOK_KINDS: Mapping[What, tuple[HookKind, ...]] = {
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
    *_, last = PatchedRuns(model, trace_a, trace_b, what, str(named)).shares(answer)
    return last


class PathInto(NamedTuple):
    """The one head that reads what is put in; the others as in `path_map`."""

    receiver: Head
    reads: Sequence[PathReads] = READS
    feed_forwards: FeedForwards = "fixed"


class PatchedRuns:
    """Passes over the tokens of run A with parts of run B in their place; with a receiver, in their place for
    that head alone (Wang et al. 2022, path patching)."""

    def __init__(
        self,
        model: "Model",
        trace_a: Trace,
        trace_b: Trace,
        what: What,
        place: str = "",
        *,
        path: PathInto | None = None,
        kept: Mapping[HookPoint, Tensor] | None = None,
    ) -> None:
        """
        Args:
            what, place: as in `patch_map`.
            path: what alone reads a part; None: all that comes after it.
            kept: what is put in, in the place of what run B has there.

        Raises ValueError where there is nothing to put in, and for another word of `feed_forwards`.
        """
        if path is not None and path.feed_forwards not in get_args(FeedForwards):
            raise ValueError(
                f"feed_forwards is {path.feed_forwards!r}; it must be one of "
                f"{', '.join(get_args(FeedForwards))}."
            )
        self.model, self.trace, self.other, self.what = model, trace_a, trace_b, what
        self.path, before = path, "" if path is None else path.receiver[0]
        self.grid = spots_of(model, trace_a, what, place, before=before)
        self._own: dict[HookPoint, Tensor] = {}  # of run A, for paths
        self.kept: dict[HookPoint, Tensor] = dict(kept or {})
        if kept is None:
            points = self.points_of(self.all)
            self.theirs = self.passed(trace_b, cache_hooks(self.kept, points))  # run B's end

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.grid), max(map(len, self.grid))

    @property
    def all(self) -> list[Spot]:
        """Every single patch."""
        return [spot for row in self.grid for spot in row]

    def batches(self) -> Iterator[list[Spot]]:
        """All patches, those of one sub-layer after the other."""
        most = rows_at_once(
            self.trace, self.model.config.d_vocab * (self.model.module.output_matrix is None)
        )
        for row in self.grid if rows_grow(self.model) else [self.all]:
            yield from (list(row[start : start + most]) for start in range(0, len(row), most))

    def run(self, rows: Sequence[Sequence[Spot]]) -> Tensor:
        """(R, T, C): the last states where the model has an output matrix of its own, else its logits
        (R, T, V); each row with its patches."""
        put = patch_hooks(self.kept, [self.points_of(row) for row in rows])
        return self.passed(self.trace, put, rows=len(rows))

    def alone(self, batch: Sequence[Spot]) -> Tensor:
        """(R, T, …): what the passes with each single patch end with."""
        if self.path is None:
            return self.run([(spot,) for spot in batch])
        (place, head), reads, feed_forwards = self.path
        held, rows = self._held(feed_forwards), len(batch)
        first = min(layer_of(spot.name) for spot in batch) if rows_grow(self.model) else 0
        later: dict[HookPoint, list[Where]] = {
            point: [(None, None)] for point in held if layer_of(point[1]) >= first
        }
        read: dict[HookPoint, Tensor] = {}  # a row for each sender
        self.passed(
            self.trace,
            patch_hooks(held, [later] * rows),
            patch_hooks(self.kept, [self.points_of([spot]) for spot in batch]),
            cache_hooks(read, [(kind, place) for kind in READS]),
            rows=rows,
        )
        put: dict[HookPoint, list[Where]] = {(kind, place): [(head, None)] for kind in reads}
        return self.passed(self.trace, patch_hooks(read, [put] * rows), rows=rows)

    def _held(self, feed_forwards: FeedForwards) -> dict[HookPoint, Tensor]:
        """What all heads, and feed-forwards that are fixed, give in run A."""
        if self._own:
            return self._own
        points: set[HookPoint] = {("output", one.name) for one in self.trace.attention}
        if feed_forwards == "fixed":
            points |= {
                ("hidden", Place(one.stack, layer, "feed_forward").name)
                for one in self.trace.attention
                for layer in range(one.layer + 1)
            }
        self.passed(self.trace, cache_hooks(self._own, points))
        return self._own

    def shares(self, answer: tuple[int, int], turn: Turn = nullcontext) -> Iterator[Wide]:
        """How far each patch alone moves the answer from A's to B's, after each batch; NaN where it is still
        to come. Whoever stops asking stops the work.

        Args:
            answer: (id of A's token, id of B's).
            turn: makes a context in which one batch runs.
        """
        shares = np.full(self.shape, np.nan)
        cells = {
            spot: (at, column)
            for at, row in enumerate(self.grid)
            for column, spot in enumerate(row)
        }
        for batch in self.batches():
            with turn():
                start, end = self.answers(answer)
                moved = self.answer_of(self.alone(batch), answer)
            shares[tuple(np.transpose([cells[spot] for spot in batch]))] = (moved - start) / (
                end - start
            )
            yield shares.copy()

    @cached_property
    def own(self) -> Tensor:
        """What run A ends with."""
        return self.run([()])

    def passed(self, trace: Trace, *hooks: Hooks, rows: int = 1) -> Tensor:
        """What a pass over a trace's tokens ends with, (R, T, …), under the trace's own intervention."""
        return forward(
            self.model,
            ids_of(self.model, trace),
            *hooks,
            rows=rows,
            intervention=trace.intervention,
            deferred=True,
        ).ended

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

    def points_of(self, spots: Iterable[Spot]) -> dict[HookPoint, list[Where]]:
        """Where some patches are put in."""
        points: dict[HookPoint, list[Where]] = {}
        for spot in spots:
            for kind in HOOK_KINDS[self.what]:
                points.setdefault((kind, spot.name), []).append((spot.head, spot.token))
        return points


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
    model, trace = runs.model, runs.trace
    apart = _of_weights(runs) if runs.what == "weights" else {}
    points: list[HookPoint] = [("output", name) for name in apart] or [*runs.kept]
    passing = gradients(
        model,
        ids_of(model, trace),
        points,
        lambda ended: answer_in(model, ended, answer)[0],
        intervention=trace.intervention,
        deferred=True,
    )
    return {
        name: _by_head_and_token(
            (apart[name].to(x) if name in apart else runs.kept[kind, name].clone() - x) * gradient
        )
        for (kind, name), (x, gradient) in passing.items()
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


@asked
def path_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    receiver: Head,
    reads: Sequence[PathReads] = READS,
    *,
    answer: tuple[int, int],
    feed_forwards: FeedForwards = "fixed",
) -> Wide:
    """(sub-layer, head): how far each earlier head, as it is in run B, moves the answer through one later
    head alone. 0 and 1 as in `patch_map`.

    Of each sender two passes. In the first its output is run B's, and all other heads are held as in run A,
    so that what the receiver reads changes without the help of another head. The second is run A with the
    receiver's queries, keys or values of the first.

    Args:
        receiver: (sub-layer, number) of the later head.
        reads: which of its vectors are those of the first pass.
        answer: (id of A's token, id of B's).
        feed_forwards: in the first pass. "fixed": they are held as in run A too, so that the sender is read
            by the direct way only. "recomputed": they read the sender, and the receiver reads what they make
            of it, as in the paper.

    Raises ValueError as `patch_map` does, and where no head comes before the receiver.
    """
    check_runs(model, trace_a, trace_b, answer)
    path = PathInto(receiver, reads, feed_forwards)
    *_, last = PatchedRuns(model, trace_a, trace_b, "head", path=path).shares(answer)
    return last


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
    """A map after each batch: of "path" that of `path_map`; else that of `patch_map`, after its estimate.

    Args:
        answer: (id of A's token, id of B's).
        place: the sub-layer of "head_tokens".
        receiver: of "path"; None: the first head of `place`.
        reads: which of the receiver's vectors change.
        turn: makes a context in which one batch runs.

    Raises ValueError as `check_runs`, and where both runs answer alike.
    """
    check_runs(model, trace_a, trace_b, answer)
    with turn():
        path = PathInto(receiver or (place, 0), reads) if kind == "path" else None
        what: What = "head" if kind == "path" else kind
        runs = PatchedRuns(model, trace_a, trace_b, what, place, path=path)
        answers = runs.answers(answer)
        estimate = None if path else estimated_map(runs, answer)
    found = PatchMap(np.full(runs.shape, np.nan), estimate, answers, len(runs.all))
    if estimate is not None:
        yield found
    for shares in runs.shares(answer, turn):
        yield replace(found, shares=shares)
