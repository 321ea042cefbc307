"""Every stage of two runs of one text, side by side, and how far rounding may move each.

How far two equal computations may lie apart follows at each stage from the precision of both runs, the sizes
of its numbers, and how far apart the numbers are that it reads: those are measured, not assumed.
Axes: head, query, key, token, d_k, d_model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from model.analysis.difference_causes import ComparedStage, RunPair
from model.analysis.stream.stream import sub_layers
from model.nn.config import Stack
from model.nn.places import Place
from model.trace.arrays import Array, Wide
from model.trace.partial import PartialAttention
from model.trace.precision import ROUNDINGS, SINGLE, epsilon, score_rounding, weight_rounding
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace
from model.trace.unproven import proven, proven_states

_APART = "they cannot be laid side by side."
_TOGETHER = 64  # rows of logits that are compared at once


@dataclass(frozen=True, eq=False)
class StageComparison:
    """One stage of one place in both runs, at the cell where they lie furthest apart beyond rounding.

    stage, place: what was compared, by the first run's names. head: counted from 0; None where it is of all.
    cell: (query, key) of scores and weights, (token, dimension) of vectors. first, second: the two numbers.
    difference: |second − first|. rounding: how far two equal computations may lie apart there.
    """

    stage: ComparedStage
    place: str
    head: int | None
    cell: tuple[int, int]
    first: float
    second: float
    rounding: float
    pair: RunPair = field(repr=False)

    @property
    def difference(self) -> float:
        return abs(self.second - self.first)

    @property
    def is_beyond(self) -> bool:
        """Whether rounding does not explain the difference."""
        return not self.difference <= self.rounding


def comparisons(a: Trace, b: Trace) -> Iterator[StageComparison]:
    """Every stage that both runs recorded, in the first one's order of execution. Raises ValueError as
    `first_difference`."""
    return _Walk(a, b).stages()


@dataclass(frozen=True, eq=False)
class _Walk:
    """drifts: how far vectors were found apart, as a share of their lengths, by stage and place."""

    a: Trace
    b: Trace
    drifts: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first, second = (len(trace.attention) for trace in (self.a, self.b))
        if first != second:
            raise ValueError(f"The two runs have {first} and {second} attention layers: {_APART}")
        for one, other in zip(self.a.attention, self.b.attention, strict=True):
            if one.sizes != other.sizes:
                raise ValueError(
                    f"{one.name} has {_counted(one.sizes)} in the first run and {_counted(other.sizes)} in "
                    f"the second: {_APART}"
                )
        for stack in self.a.stacks:
            states = [proven_states(one.residual).get(stack) for one in (self.a, self.b)]
            widths = [of[0].shape[1] for of in states if of]
            if len({*widths}) > 1:
                raise ValueError(
                    f"The {stack}'s vectors have {widths[0]} numbers in the first run and {widths[1]} in "
                    f"the second: {_APART}"
                )

    @property
    def epsilon(self) -> float:
        """The share by which the less precise of the two runs is rounded."""
        return max(epsilon(self.a), epsilon(self.b))

    def stages(self) -> Iterator[StageComparison]:
        for stack in self.a.stacks:
            yield from self._embedding(stack)
            yield from self._layers(stack)
        yield from self._final()

    def _embedding(self, stack: Stack) -> Iterator[StageComparison]:
        parts = [proven_states(one.summands).get(stack, {}) for one in (self.a, self.b)]
        place = Place(stack, None, "embedding").name
        for name, stage in (
            ("tokens", "embedding"),
            ("segments", "embedding"),
            ("positions", "positions"),
        ):
            if all(name in of for of in parts):
                first, second = (of[name] for of in parts)
                room = ROUNDINGS * self.epsilon * np.maximum(np.abs(first), 1.0)
                yield self._vectors(stage, place, first, second, room)  # type: ignore[arg-type]
        states = self._states(stack)
        if states and all("tokens" in of for of in parts):
            first, second = states[0][0], states[1][0]
            drift = _drift(*(of["tokens"] for of in parts))
            yield self._vectors(
                "stream", place, first, second, self._room(first, drift, first.shape[1])
            )

    def _layers(self, stack: Stack) -> Iterator[StageComparison]:
        states = self._states(stack)
        names = self._names(stack)
        norms = [{norm.name: norm for norm in proven(one.norms)} for one in (self.a, self.b)]
        twins = {
            one.name: other for one, other in zip(self.a.attention, self.b.attention, strict=True)
        }
        for at, name in enumerate(names):
            place = Place.named(name)
            before = (states[0][at], states[1][at]) if states else None
            is_read = any(
                place.norm in of and _reads(of[place.norm], before, which)
                for which, of in enumerate(norms)
            )
            if is_read:
                yield from self._norm(place.norm, norms, before, name)
            if name in twins:
                yield from self._attention(self.a.find(name), twins[name], stack)
            else:
                yield from self._feed_forward(name)
            for norm in (place.after, *([] if is_read else [place.norm])):
                yield from self._norm(norm, norms, before, name)
            if states:
                yield self._sum(name, states, at)
        yield from self._norm(Place(stack, None, "final").norm, norms, None, "")

    def _names(self, stack: Stack) -> tuple[str, ...]:
        """The sub-layers in order; of a run without its stream those that left something behind."""
        if stack in proven_states(self.a.residual):
            try:
                return sub_layers(self.a, stack)
            except ValueError:
                pass  # its states fit no layers: attention is compared alone
        names = [one.name for one in self.a.attention if one.stack == stack]
        feeds = [*(one.name for one in proven(self.a.feed_forward)), *self.a.written]
        of_stack = [one for one in {*feeds} - {*names} if one.startswith(stack)]
        return tuple(
            sorted(
                (*names, *of_stack),
                key=lambda name: (Place.named(name).layer or 0, name in of_stack),
            )
        )

    def _states(self, stack: Stack) -> tuple[tuple[Array, ...], tuple[Array, ...]] | None:
        """The states of both streams, where both have as many, and as the sub-layers need."""
        first, second = (proven_states(one.residual).get(stack, ()) for one in (self.a, self.b))
        fits = (
            len(first) == len(second) == len(self._names(stack)) + 1 if first and second else False
        )
        return (tuple(first), tuple(second)) if fits else None

    def _norm(
        self,
        name: str,
        norms: list[dict[str, NormRecord]],
        before: tuple[Array, Array] | None,
        of: str,
    ) -> Iterator[StageComparison]:
        """What a norm reads, and what it makes of that: the second run's by the first one's law."""
        if any(name not in one for one in norms):
            return
        first, second = norms[0][name], norms[1][name]
        drift = self._known(("output", of), ("feed-forward", of), ("stream", ""))
        room = self._room(first.input, drift, first.input.shape[1])
        if before is not None:
            room += np.abs(before[1] - before[0]) + self._room(before[0], 0.0, 1)
        pair = RunPair(
            self.a, self.b, first.input, second.input, room, norms=(first, second), before=before
        )
        yield self._furthest("norm", name, None, pair)
        expected = _normed(first, second.input)
        spread = np.abs(second.input - second.mean[:, None]).max(-1) * second.inverse_deviation
        share = ROUNDINGS * self.epsilon + np.sqrt(first.input.shape[1]) * SINGLE
        room = share * spread[:, None] * np.abs(first.gamma) + ROUNDINGS * self.epsilon * np.abs(
            first.beta
        )
        room = room + np.abs(expected - first.output)  # what its input explains
        pair = RunPair(
            self.a,
            self.b,
            first.output,
            second.output,
            room,
            norms=(first, second),
            expected=expected,
        )
        self.drifts["norm", name] = _drift(first.output, second.output)
        yield self._furthest("norm", name, None, pair)

    def _attention(
        self, one: Attention, other: Attention, stack: Stack
    ) -> Iterator[StageComparison]:
        place = one.name
        norm = Place.named(place).norm
        absent = {*_absent(one), *_absent(other)}
        drift = self._known(("norm", norm), ("stream", ""))
        if not {"query", "key"} & absent and one.query.shape == other.query.shape:
            other = _with_factor_of(one, other, self._of_heads(one.query, drift, self._width(one)))
        for stage in ("query", "key", "value"):
            if stage in absent:
                continue
            first, second = getattr(one, stage), getattr(other, stage)
            if first.shape != second.shape:
                n, m = first.shape[-1], second.shape[-1]
                words = f"A {stage} of {place} has {n} numbers in the first run, not {m}: {_APART}"
                raise ValueError(words)
            read = (
                self._known(("stream", "encoder"))
                if one.kind == "cross" and stage != "query"
                else drift
            )
            room = self._of_heads(first, read, self._width(one))
            yield self._per_head(stage, place, first, second, room, (one, other))
        yield from self._of_scores(one, other, absent)
        if "output" not in absent:
            allowed = self._of_output(one, other, absent)
            first, second = map(_handed_on, (one, other))
            drift = _drift(_side_by_side(first), _side_by_side(second))
            self.drifts["output", place] = drift
            if self._states(stack) is None:  # what comes between two layers is not known
                self.drifts["stream", ""] = drift
            yield self._per_head("output", place, first, second, allowed, (one, other))

    def _of_scores(
        self, one: Attention, other: Attention, absent: set[str]
    ) -> Iterator[StageComparison]:
        """What leads from queries and keys to weights. Where both follow from the vectors, only what is done
        to them can differ."""
        vectors = not {"query", "key"} & absent
        if vectors and not np.isclose(
            one.scale, other.scale, rtol=ROUNDINGS * self.epsilon, atol=0
        ):
            yield from self._cells("scaled", one, other, "scaled")
        if vectors and not _equal(one.cap, other.cap, ROUNDINGS * self.epsilon):
            yield from self._cells("capped", one, other, "capped")
        if vectors and not _same_bias(one, other, ROUNDINGS * self.epsilon):
            yield from self._cells("biased", one, other, "biased")
        yield from self._mask(one, other, absent)
        if vectors and {"scores", "masked"} & {*one.steps, *other.steps}:
            yield from self._cells("scores", one, other, "masked")
        says_more = (
            {"weights", "masked"} & {*one.steps, *other.steps}
            or one.weights_set
            or other.weights_set
        )
        same = _equal(one.sinks, other.sinks, ROUNDINGS * self.epsilon) and (
            one.mask_value == other.mask_value or one.mask is None
        )
        if says_more or not same:
            yield from self._cells("weights", one, other, "weights")

    def _mask(
        self, one: Attention, other: Attention, absent: set[str]
    ) -> Iterator[StageComparison]:
        """A mask that was only read off weights is none."""
        if absent & {"query", "key"} and not all("masked" in each.steps for each in (one, other)):
            return
        for head in range(one.heads if _has_masks(one) or _has_masks(other) else 1):
            first, second = (_allowed(each, head).astype(np.float32) for each in (one, other))
            pair = RunPair(
                self.a,
                self.b,
                first,
                second,
                np.zeros_like(first),
                attention=(one, other),
                head=head,
            )
            yield self._furthest("mask", one.name, head if _has_masks(one) else None, pair)

    def _cells(
        self,
        stage: ComparedStage,
        one: Attention,
        other: Attention,
        what: str,
    ) -> Iterator[StageComparison]:
        """One matrix of each head: the first that differs beyond rounding, else the one that differs most."""
        worst: StageComparison | None = None
        for head in range(one.heads):
            first, second = (_matrix(each, what, head) for each in (one, other))
            shared = np.isfinite(first) & np.isfinite(second)
            if stage == "biased":  # what the masks hide may have any bias
                shared &= _allowed(one, head) & _allowed(other, head)
            first, second = (np.where(shared, each, np.float32(0)) for each in (first, second))
            scores = self._score_room(one, other, head)
            if stage == "weights":
                room = weight_rounding(np.maximum(first, second), scores, self.epsilon)
            else:
                room = np.broadcast_to(scores[:, None], first.shape)
            pair = RunPair(
                self.a,
                self.b,
                first,
                second,
                room,
                attention=(one, other),
                head=head,
                shared=shared,
            )
            here = self._furthest(stage, one.name, head, pair)
            if here.is_beyond:
                yield here
                return
            if worst is None or here.difference > worst.difference:
                worst = here
        if worst is not None:
            yield worst

    def _score_room(self, one: Attention, other: Attention, head: int) -> Wide:
        """(query,): how far scaled scores may lie apart, by rounding and by how far queries and keys do."""
        queries, keys = one.sizes[1:]
        room = np.zeros(queries)
        for each in (one, other):
            if not {"query", "key"} & {*_absent(each)}:
                query, key = each.query[head], each.key[head]
                room += score_rounding(query, key, scale=each.scale, precision=self.epsilon)
        if not {"query", "key"} & {*_absent(one), *_absent(other)}:
            apart, away = (
                np.linalg.norm(_of(other, n, head) - _of(one, n, head), axis=-1) for n in (0, 1)
            )
            sizes, lengths = (np.linalg.norm(_of(one, n, head), axis=-1) for n in (0, 1))
            room += abs(one.scale) * (apart * lengths.max() + sizes * away.max())
        elif not room.any():  # the logarithms of weights are scores, but for a number of each row
            weights = one.weights(head)
            spread = -np.log(weights, where=weights > 0, out=np.zeros_like(weights)).min(-1)
            room += (keys * SINGLE + ROUNDINGS * self.epsilon) * np.maximum(np.abs(spread), 1.0)
        return room

    def _of_output(
        self, one: Attention, other: Attention, absent: set[str]
    ) -> NDArray[np.floating]:
        """(head, query, 1): how far outputs may lie apart, by what their own weights and values give."""
        if absent & {"value", "query", "key"}:
            return self._of_heads(one.output, self._known(("output", one.name)), one.sizes[2]) * 2
        rooms = []
        for head in range(one.heads):
            scores, sizes = self._score_room(one, other, head), np.abs(one.value[head]).max()
            moved = (
                np.expm1(np.minimum(2 * scores, 50.0))
                + one.sizes[2] * SINGLE
                + ROUNDINGS * self.epsilon
            )
            values = np.abs(other.value[head] - one.value[head]).max()
            rooms.append((moved * sizes + values)[:, None])
        return np.stack(rooms)

    def _feed_forward(self, name: str) -> Iterator[StageComparison]:
        records = [
            {one.name: one for one in proven(trace.feed_forward)} for trace in (self.a, self.b)
        ]
        drift = self._known(("norm", Place.named(name).norm), ("stream", ""))
        if all(name in one for one in records):
            one, other = (each[name] for each in records)
            room = self._room(one.before, drift, one.before.shape[1])
            pair = RunPair(self.a, self.b, one.before, other.before, room)
            yield self._furthest("feed-forward", name, None, pair)
            room = (
                self._room(one.hidden, 2 * max(drift, _drift(one.before, other.before)), 1) + room
            )
            pair = RunPair(self.a, self.b, one.hidden, other.hidden, room, feeds=(one, other))
            self.drifts["feed-forward", name] = _drift(one.hidden, other.hidden)
            yield self._furthest("feed-forward", name, None, pair)
        if name in self.a.written and name in self.b.written:
            first, second = self.a.written[name], self.b.written[name]
            room = self._room(
                first, self._known(("feed-forward", name), ("stream", "")), first.shape[1]
            )
            yield self._vectors("feed-forward", name, first, second, room)

    def _sum(
        self, name: str, states: tuple[tuple[Array, ...], tuple[Array, ...]], at: int
    ) -> StageComparison:
        """The stream after a sub-layer."""
        (first, after), (second, then) = ((of[at], of[at + 1]) for of in states)
        read = Place.named(name)
        drift = self._known(
            ("output", name), ("feed-forward", name), ("norm", read.norm), ("stream", "")
        )
        room = self._room(after - first, drift, first.shape[1]) + np.abs(second - first)
        room = room + ROUNDINGS * self.epsilon * (np.abs(first) + np.abs(after))
        room = room + self._room(after, self.drifts.get(("norm", read.norm), 0.0), 1)
        pair = RunPair(self.a, self.b, after, then, room, before=(first, second))
        self.drifts["stream", ""] = self.drifts["stream", read.stack] = _drift(after, then)
        return self._furthest("stream", name, None, pair)

    def _final(self) -> Iterator[StageComparison]:
        first, second = self.a.prediction, self.b.prediction
        unproven = {*self.a.unproven, *self.b.unproven}
        if first is None or second is None or "logits" in unproven or first.shape != second.shape:
            return
        drift = self._known(("norm", Place("decoder", None, "final").norm), ("stream", ""))
        for start in range(0, first.shape[0], _TOGETHER):
            ours, theirs = (of.rows(start, start + _TOGETHER) for of in (first, second))
            width = self.a.config.d_model if self.a.config else ours.shape[1]
            pair = RunPair(self.a, self.b, ours, theirs, self._room(ours, drift, width))
            here = self._furthest("logits", Place("decoder", None, "output").name, None, pair)
            yield replace(here, cell=(here.cell[0] + start, here.cell[1]))

    def _known(self, *keys: tuple[str, str]) -> float:
        """The first of these drifts that was measured; 0 where none was."""
        return next((self.drifts[key] for key in keys if key in self.drifts), 0.0)

    def _width(self, attention: Attention) -> int:
        """How many numbers a query is a sum of."""
        if self.a.config is not None:
            return self.a.config.d_model
        return attention.heads * attention.vectors[0].shape[2]

    def _room(self, vectors: Array, drift: float, terms: int) -> Wide:
        """(token, width): how far vectors of a linear map of so many terms may lie apart. Terms of random
        signs add up to the root of their number, so a share of each may become √terms of the sum."""
        sizes = np.sqrt(np.square(vectors.astype(np.float64)).mean(-1, keepdims=True))
        sizes = np.maximum(sizes, np.median(sizes))
        share = np.sqrt(terms) * drift + terms * SINGLE
        return np.asarray(
            share * sizes + ROUNDINGS * self.epsilon * np.maximum(np.abs(vectors), sizes)
        )

    def _of_heads(self, vectors: Array, drift: float, terms: int) -> Wide:
        """The same for (head, token, width); a rotary angle is rounded by a share of itself."""
        flat = _side_by_side(vectors)
        room = self._room(flat, drift, terms)
        angles = 2 * SINGLE * np.arange(len(flat))[:, None]
        room = (
            room + angles * np.sqrt(np.square(flat.astype(np.float64)).mean(-1, keepdims=True)) * 2
        )
        return np.asarray(room.reshape(len(flat), len(vectors), -1).transpose(1, 0, 2))

    def _vectors(
        self,
        stage: ComparedStage,
        place: str,
        first: Array,
        second: Array,
        room: NDArray[np.floating],
    ) -> StageComparison:
        self.drifts["stream", ""] = _drift(first, second)
        return self._furthest(stage, place, None, RunPair(self.a, self.b, first, second, room))

    def _per_head(
        self,
        stage: ComparedStage,
        place: str,
        first: Array,
        second: Array,
        room: NDArray[np.floating],
        attention: tuple[Attention, Attention],
    ) -> StageComparison:
        """The head that lies furthest apart beyond rounding; its pair has all heads."""
        over = np.abs(second - first) - room
        head = int(np.unravel_index(int(np.nanargmax(over)), over.shape)[0])
        pair = RunPair(self.a, self.b, first, second, room, attention=attention, head=head)
        return self._furthest(stage, place, head, pair)

    def _furthest(
        self, stage: ComparedStage, place: str, head: int | None, pair: RunPair
    ) -> StageComparison:
        first, second, room = pair.of_head
        over = np.abs(second.astype(np.float64) - first) - room
        over = np.where(np.isnan(over), np.inf, over)
        at = np.unravel_index(int(over.argmax()), over.shape)
        cell = (int(at[0]), int(at[1]))
        rounding = float(np.broadcast_to(room, over.shape)[at])
        return StageComparison(
            stage, place, head, cell, float(first[at]), float(second[at]), rounding, pair
        )


def _counted(sizes: tuple[int, int, int]) -> str:
    return f"{sizes[0]} heads, {sizes[1]} queries and {sizes[2]} keys"


def _absent(attention: Attention) -> tuple[str, ...]:
    return attention.absent if isinstance(attention, PartialAttention) else ()


def _reads(norm: NormRecord, before: tuple[Array, Array] | None, which: int) -> bool:
    """Whether a norm of one of the two runs stands before its sub-layer: it reads the state, not the sum."""
    return before is None or np.array_equal(norm.input, before[which])


def _normed(norm: NormRecord, rows: Array) -> Wide:
    """What a norm would make of other rows, in double precision."""
    wide = norm.law.normalized(rows, norm.epsilon)
    return np.asarray(wide * norm.gamma.astype(np.float64) + norm.beta.astype(np.float64))


def _with_factor_of(one: Attention, other: Attention, room: NDArray[np.floating]) -> Attention:
    """The second sub-layer with the factor of the first, where it has the rest of its own in its queries:
    (q / √d_k) · k is q · k / √d_k."""
    if other.scale == one.scale or not other.scale or not one.scale:
        return other
    query = other.query * np.float32(other.scale / one.scale)
    if (np.abs(query - one.query) > room).any():
        return other
    given = {"scale": one.scale, "vectors": (query, *other.vectors[1:])}
    if isinstance(other, PartialAttention):
        return other.changed(**given)
    return Attention(**{name.name: getattr(other, name.name) for name in fields(Attention)} | given)


def _same_bias(one: Attention, other: Attention, share: float) -> bool:
    """Whether both add the same to the scores that their masks let through. Without a sink a number that is
    added to a whole row changes nothing (ALiBi by distance, or by the key's place)."""
    if one.bias is None and other.bias is None:
        return True
    whole = one.sinks is not None or other.sinks is not None
    for head in range(one.heads):
        allowed = _allowed(one, head) & _allowed(other, head)
        added = [
            np.broadcast_to(0.0 if (bias := each.bias_of(head)) is None else bias, allowed.shape)
            for each in (one, other)
        ]
        apart = np.where(allowed, added[1].astype(np.float64) - added[0], np.nan)
        with np.errstate(invalid="ignore"):
            rows = 0.0 if whole else np.nanmean(apart[allowed.any(1)], axis=1, keepdims=True)
        apart = apart[allowed.any(1)] - rows
        if np.nanmax(np.abs(apart), initial=0.0) > share * max(
            1.0, *(float(np.abs(each).max()) for each in added)
        ):
            return False
    return True


def _handed_on(attention: Attention) -> Array:
    """(head, query, d_v): the outputs that go on to W_O; those of ablated heads are zero."""
    if not attention.ablated:
        return attention.output
    output = attention.output.copy()
    output[list(attention.ablated)] = 0
    return output


def _side_by_side(vectors: Array) -> Array:
    """(head, token, d) to (token, head · d)"""
    return np.asarray(vectors.transpose(1, 0, 2).reshape(vectors.shape[1], -1))


def _drift(first: Array, second: Array) -> float:
    """The largest length of a difference, as a share of the vector's own length. (token, width)"""
    apart = np.linalg.norm(second.astype(np.float64) - first, axis=-1)
    lengths = np.linalg.norm(first.astype(np.float64), axis=-1)
    return float(
        (apart / np.maximum(lengths, np.median(lengths) + np.finfo(np.float32).tiny)).max()
    )


def _of(attention: Attention, which: int, head: int) -> Wide:
    """A head's query (0) or key (1), in double precision."""
    return (attention.query if which == 0 else attention.key)[head].astype(np.float64)


def _equal(first: object, second: object, share: float) -> bool:
    """Whether two numbers or arrays, or none, are equal to a share of their size."""
    if first is None or second is None:
        return first is second
    ours, theirs = np.asarray(first, np.float64), np.asarray(second, np.float64)
    try:
        ours, theirs = np.broadcast_arrays(ours, theirs)
    except ValueError:
        return False
    return bool(
        np.allclose(ours, theirs, rtol=share, atol=share * max(1.0, np.abs(ours).max(initial=0)))
    )


def _has_masks(attention: Attention) -> bool:
    """Whether each head has a mask of its own."""
    return attention.own_mask is not None and attention.own_mask.ndim == 3


def _allowed(attention: Attention, head: int) -> NDArray[np.bool_]:
    mask = attention.mask_of(head)
    return np.ones(attention.sizes[1:], np.bool_) if mask is None else mask


def _matrix(attention: Attention, what: str, head: int) -> Array:
    matrix: Array = getattr(attention, what)(head)
    return matrix
