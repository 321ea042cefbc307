"""What stands around the attention of somebody's own module: norms, the residual stream and feed-forwards.

A pass notes its sums, its norms and its linear maps. Afterwards they are kept only where they fit together:
a stream is a chain of sums, each of which adds to the state before what came out of one recorded attention,
token by token, or out of one feed-forward; each sub-layer has its norm; a norm is one whose output is what
the layer norm or the RMS norm of its input gives. Where anything is missing, nothing is kept.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from model.capture.lineage import Node, TensorOrigin
from model.nn.activations import GATED
from model.nn.config import Stack
from model.nn.layers import ACTIVATIONS
from model.nn.norms import NORMS
from model.nn.places import Place
from model.trace.arrays import Array, read_only
from model.trace.records import Attention, FeedForwardRecord, NormRecord

NEAR = 1e-5  # of the largest number: what rounding in single precision explains
NOTED = {"add", "linear", "addmm"}
WIDEST = 16  # times the stream: a feed-forward
EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 0.0)  # of a norm that has none among its attributes
RECENT = 12  # linear maps, among which those of a feed-forward are looked for


@dataclass(frozen=True, eq=False)
class _TokenVectors:
    """A tensor of one text: which it is, what it was made of token by token, and its numbers."""

    serial: int
    stream: frozenset[int]
    values: Array  # (token, width)


@dataclass(frozen=True, eq=False)
class _Addition:
    total: _TokenVectors
    parts: tuple[_TokenVectors, _TokenVectors]
    # Of a part that a feed-forward gave: before and after its activation, (token, d_mlp).
    hidden: Mapping[int, tuple[Array, Array]]  # by serial number of the part

    def added_to(self, state: int) -> _TokenVectors | None:
        """What was added to the state of this serial number."""
        first, second = self.parts
        if first.serial == state:
            return second
        return first if second.serial == state else None


@dataclass(frozen=True, eq=False)
class _LinearMap:
    read: Array  # (token, width)
    made: Array  # (token, width)


@dataclass(frozen=True, eq=False)
class _NormNote:
    read: int  # serial of its input
    made: _TokenVectors
    record: NormRecord  # without its name


@dataclass(frozen=True, eq=False)
class _SubLayer:
    """A sub-layer in a stream."""

    place: Place
    state: _TokenVectors  # that it reads
    sum: _Addition


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What was found around the attention of a pass."""

    norms: tuple[NormRecord, ...] = ()
    residual: Mapping[Stack, tuple[Array, ...]] = field(default_factory=dict)
    feed_forward: tuple[FeedForwardRecord, ...] = ()


class Notes:
    """Sums, norms and maps of one pass over one text; of a batch of several there are none."""

    def __init__(self) -> None:
        self._sums: list[_Addition] = []
        self._norms: list[_NormNote] = []
        self._maps: deque[_LinearMap] = deque(maxlen=RECENT)
        self._values: dict[int, Array] = {}

    def note(self, call: TensorOrigin, made: Node) -> None:
        """An operation with what it read, and what it gave."""
        if call.name == "add" and not call.keywords:
            self._sum(call, made)
        elif call.name in ("linear", "addmm"):
            read = call.arguments[1 if call.name == "addmm" else 0]
            before = _rows(read.tensor) if isinstance(read, Node) else None
            after = _rows(made.tensor)
            if before is not None and after is not None and self._fits(after):
                self._maps.append(_LinearMap(before, after))

    def _fits(self, made: Array) -> bool:
        """Whether a map may be that of a feed-forward, and not the one to the vocabulary."""
        return not self._sums or made.shape[1] <= WIDEST * self._sums[-1].total.values.shape[1]

    def _sum(self, call: TensorOrigin, made: Node) -> None:
        parts = [one for one in call.arguments if isinstance(one, Node)]
        if len(parts) != 2 or {one.tensor.shape for one in parts} != {made.tensor.shape}:
            return
        if call.arguments[0] is call.arguments[1]:
            return
        total, *read = (self._vectors(one) for one in (made, *parts))
        if total is not None and read[0] is not None and read[1] is not None:
            parts_read = read[0], read[1]
            hidden = {one.serial: self._hidden(one) for one in parts_read}
            known = {serial: one for serial, one in hidden.items() if one is not None}
            self._sums.append(_Addition(total, parts_read, known))

    def _hidden(self, given: _TokenVectors) -> tuple[Array, Array] | None:
        """Before and after the activation of the feed-forward that gave these vectors, if one did, by a known
        activation; a norm may stand behind it."""
        norm = self._made(given.serial)
        made = given.values if norm is None else norm.record.input
        last = next((one for one in reversed(self._maps) if _same(one.made, made)), None)
        if last is None:
            return None
        inner = [one.made for one in self._maps if one.made.shape == last.read.shape]
        for before, other in _pairs(inner):
            for name, function in ACTIVATIONS.items():
                if (name in GATED) == (other is not None):
                    after = function(torch.tensor(before)).numpy()
                    if _same(after if other is None else after * other, last.read):
                        return before, last.read
        return None

    def note_norm(self, module: nn.Module, read: Node, made: Node) -> None:
        """Keeps a module's input and output, if it is a norm: if its output is what the law of one gives.

        Args:
            read, made: its input and its output, with what gave them.
        """
        before, after = self._vectors(read), self._vectors(made)
        if before is None or after is None or before.values.shape != after.values.shape:
            return
        precision = torch.finfo(made.tensor.dtype).eps
        near = NEAR if precision <= torch.finfo(torch.float32).eps else 4 * precision
        record = _norm(module, before.values, after.values, near)
        if record is not None:
            self._norms.append(_NormNote(read.serial, after, record))

    def _vectors(self, node: Node) -> _TokenVectors | None:
        if node.serial not in self._values:
            rows = _rows(node.tensor)
            if rows is None:
                return None
            self._values[node.serial] = rows
        return _TokenVectors(node.serial, node.lineage.stream, self._values[node.serial])

    def surroundings(
        self, attention: Sequence[Attention], outputs: Sequence[int], tokens: Mapping[Stack, int]
    ) -> Surroundings:
        """What fits together, of all stacks or of none.

        Args:
            attention: the placed records, in order of execution.
            outputs: the serial number of the output of each.
            tokens: how many each stack reads, that of a source without a stack of its own too.
        """
        for one in attention:
            read: Stack = "encoder" if one.kind == "cross" else one.stack
            if one.sizes[1:] != (tokens[one.stack], tokens[read]):
                return Surroundings()
        norms: list[NormRecord] = []
        residual: dict[Stack, tuple[Array, ...]] = {}
        feeds: list[FeedForwardRecord] = []
        for stack in dict.fromkeys(one.stack for one in attention):
            own = [
                (one, serial)
                for one, serial in zip(attention, outputs, strict=True)
                if one.stack == stack
            ]
            found = self._stack(own, after=False) or self._stack(own, after=True)
            if found is None or any(len(state) != tokens[stack] for state in found.residual[stack]):
                return Surroundings()
            norms += found.norms
            residual |= found.residual
            feeds += found.feed_forward
        widths = {states[0].shape[1] for states in residual.values()}
        if len(widths) > 1:
            return Surroundings()
        return Surroundings(tuple(norms), residual, tuple(feeds))

    def _stack(self, own: list[tuple[Attention, int]], *, after: bool) -> Surroundings | None:
        """One stack whose norms stand before its sub-layers, or after its sums; None where they do not."""
        parts = self._chain(own, after=after)
        if parts is None:
            return None
        stack, states, norms = own[0][0].stack, [parts[0].state.values], list[NormRecord]()
        first = self._made(parts[0].state.serial)
        if first is not None:
            norms.append(replace(first.record, name=Place(stack, None, "embedding").norm))
        for part in parts:
            norm = self._read(part.sum.total.serial if after else part.state.serial)
            if norm is None:
                return None
            norms.append(replace(norm.record, name=part.place.norm))
            added = part.sum.added_to(part.state.serial)
            inner = None if added is None else self._made(added.serial)
            if inner is not None and not after:
                norms.append(replace(inner.record, name=part.place.after))
            states.append(norm.made.values if after else part.sum.total.values)
        if not after:
            last = self._read(parts[-1].sum.total.serial)
            if last is None:
                return None
            norms.append(replace(last.record, name=Place(stack, None, "final").norm))
        feeds = [_feed_forward(one) for one in parts if one.place.kind == "feed_forward"]
        known = [one for one in feeds if one is not None]
        whole = tuple(known) if len(known) == len(feeds) else ()
        return Surroundings(tuple(norms), {stack: tuple(states)}, whole)

    def _chain(self, own: list[tuple[Attention, int]], *, after: bool) -> list[_SubLayer] | None:
        """The sub-layers of a stack in order, feed-forwards in all of its layers or in none."""
        parts: list[_SubLayer] = []
        layers = [one.layer for one, _ in own]
        for number, (record, output) in enumerate(own):
            found = [
                (total, state)
                for total in self._sums
                for state in total.parts
                if (added := total.added_to(state.serial)) is not None
                and added.stream == {output}
                and output not in state.stream
            ]
            if len(found) != 1:
                return None
            total, state = found[0]
            if parts and not self._follows(parts[-1], state.serial, after=after):
                feed = self._feed(parts[-1], after=after)
                if feed is None or layers[number - 1] == record.layer:
                    return None
                parts.append(feed)
                if not self._follows(feed, state.serial, after=after):
                    return None
            parts.append(_SubLayer(record.place, state, total))
        last = self._feed(parts[-1], after=after)
        parts += [] if last is None else [last]
        feeds = sum(one.place.kind == "feed_forward" for one in parts)
        if feeds not in (0, len({*layers})) or self._goes_on(parts, after=after):
            return None
        return parts

    def _goes_on(self, parts: list[_SubLayer], *, after: bool) -> bool:
        """Whether more was added before the first sub-layer or after the last, or to sums that have a norm
        behind them: then these are not all."""
        begin, end = parts[0].state.serial, self._end(parts[-1], after=after)
        ends = {end, *(one.sum.total.serial for one in parts if after)}
        for one in self._sums:
            first, second = (part.stream for part in one.parts)
            if any(part.serial in ends for part in one.parts):
                return True
            if one.total.serial == begin and (first <= second or second <= first):
                return True
        return False

    def _end(self, part: _SubLayer, *, after: bool) -> int | None:
        """The serial of the state that a sub-layer leaves."""
        if not after:
            return part.sum.total.serial
        norm = self._read(part.sum.total.serial)
        return None if norm is None else norm.made.serial

    def _follows(self, part: _SubLayer, state: int, *, after: bool) -> bool:
        return self._end(part, after=after) == state

    def _feed(self, part: _SubLayer, *, after: bool) -> _SubLayer | None:
        """The one feed-forward that reads, token by token, the state that a sub-layer leaves."""
        end = self._end(part, after=after)
        found = [
            (total, state)
            for total in self._sums
            for state in total.parts
            if state.serial == end
            and (added := total.added_to(state.serial)) is not None
            and added.stream
            and added.stream <= state.stream
        ]
        if len(found) != 1:
            return None
        total, state = found[0]
        place = Place(part.place.stack, part.place.layer, "feed_forward")
        return _SubLayer(place, state, total)

    def _read(self, serial: int) -> _NormNote | None:
        """The one norm that reads a tensor."""
        found = [one for one in self._norms if one.read == serial]
        return found[0] if len(found) == 1 else None

    def _made(self, serial: int) -> _NormNote | None:
        """The norm that made a tensor."""
        return next((one for one in self._norms if one.made.serial == serial), None)


def _rows(tensor: Tensor) -> Array | None:
    """(token, width) of its own, of vectors of one text; None for anything else."""
    if not tensor.is_floating_point() or tensor.is_meta or tensor.is_nested:
        return None
    sizes = [size for size in tensor.shape[:-1] if size != 1]
    if tensor.ndim < 2 or len(sizes) != 1 or not tensor.numel():
        return None
    rows = tensor.detach().reshape(-1, tensor.shape[-1]).to("cpu", torch.float32, copy=True)
    return read_only(rows.numpy())


def is_norm_like(module: nn.Module) -> bool:
    """Whether a module has no parts, and no weights but one or two rows, as a norm has."""
    own = [*module.parameters(recurse=False)]
    rows = len(own) <= 2 and all(one.ndim == 1 for one in own)
    named = own or "norm" in type(module).__name__.casefold()
    return bool(rows and named) and next(module.children(), None) is None


def _norm(module: nn.Module, read: Array, made: Array, near: float) -> NormRecord | None:
    """The record of a norm whose output the layer norm or the RMS norm of its input gives."""
    width = read.shape[1]
    weights = [one.detach().float().cpu().numpy() for one in module.parameters(recurse=False)]
    if not np.isfinite(read).all() or any(one.shape != (width,) for one in weights):
        return None
    gain = weights[0] if weights else np.ones(width, np.float32)
    shift = weights[1] if len(weights) > 1 else np.zeros(width, np.float32)
    told = [one for one in vars(module).values() if isinstance(one, float) and 0 <= one < 0.1]
    most = near * max(1.0, float(np.abs(made).max()))
    groups = (_nearest(read, made, gain, shift, some, most) for some in (told, EPSILONS))
    return next((one for one in groups if one is not None), None)


def _nearest(
    read: Array, made: Array, gain: Array, shift: Array, epsilons: Iterable[float], most: float
) -> NormRecord | None:
    """The kind, epsilon and gain that come nearest to a norm's output, at most so far from it; or None."""
    best = None
    for kind, law in NORMS.items():
        mean, size = law.statistics(read.astype(np.float64))
        for epsilon in epsilons:
            inverse = 1 / np.sqrt(np.maximum(size + epsilon, np.finfo(np.float64).tiny))
            for gamma in (gain, 1 + gain):  # Gemma's is kept less one
                gap = float(np.abs((read - mean) * inverse * gamma + shift - made).max())
                if gap < most:
                    most = gap
                    arrays = (mean[:, 0], inverse[:, 0], gamma, shift)
                    means, inverses, gains, shifts = (np.array(one, np.float32) for one in arrays)
                    best = NormRecord(
                        "",
                        kind,
                        read,
                        read_only(means),
                        read_only(inverses),
                        epsilon,
                        read_only(gains),
                        read_only(shifts),
                        None,
                    )
    return best


def _feed_forward(part: _SubLayer) -> FeedForwardRecord | None:
    added = part.sum.added_to(part.state.serial)
    hidden = None if added is None else part.sum.hidden.get(added.serial)
    return None if hidden is None else FeedForwardRecord(part.place.name, *hidden)


def _pairs(made: list[Array]) -> Iterator[tuple[Array, Array | None]]:
    """Each alone, then each with each other as its gate's factor."""
    yield from ((one, None) for one in made)
    yield from ((one, other) for one in made for other in made if one is not other)


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(
        np.abs(one - other).max() <= NEAR * max(1.0, float(np.abs(other).max()))
    )
