"""Every stage of two runs of one text, side by side, in the order of execution.
Axes: head, query, key, token, d_k, d_model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from model.analysis import stage_rounding as rounding
from model.analysis.difference_causes import ComparedStage, RunPair
from model.analysis.stream.stream import sub_layers
from model.nn.config import Stack
from model.nn.places import Place
from model.trace.arrays import Array, Wide
from model.trace.partial import PartialAttention
from model.trace.precision import ROUNDINGS, epsilon, weight_rounding
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace
from model.trace.unproven import proven, proven_states

_APART = "they cannot be laid side by side."
_TOGETHER = 64  # rows of logits that are compared at once
OUTPUT = Place("decoder", None, "output").name
_STREAM = ("stream", "")  # the newest state


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


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Two runs, laid side by side. Raises ValueError where they have other numbers of tokens, layers, heads.

    Args:
        a, b: the runs.
        drifts: how far vectors lie apart by rounding, as a share of their lengths, by stage and place.
        covered: whether a stage could be compared, by stage and place; whole after `stages`.
        moved: how far the newest state of each stack lies apart by rounding, (token, d_model).
    """

    a: Trace
    b: Trace
    drifts: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    covered: dict[tuple[ComparedStage, str], bool] = field(default_factory=dict, repr=False)
    moved: dict[str, Wide] = field(default_factory=dict, repr=False)

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

    @property
    def _pair(self) -> Callable[..., RunPair]:
        return partial(RunPair, self.a, self.b)

    def stages(self) -> Iterator[StageComparison]:
        """Every stage that both runs recorded, in the first one's order of execution."""
        for stack in self.a.stacks:
            yield from self._embedding(stack)
            yield from self._layers(stack)
        yield from self._final()

    def _embedding(self, stack: Stack) -> Iterator[StageComparison]:
        """The parts of the first state of the stream, its norm, and itself, whoever made it."""
        parts = [proven_states(one.summands).get(stack, {}) for one in (self.a, self.b)]
        place = Place(stack, None, "embedding")
        named: tuple[tuple[str, ComparedStage], ...] = (
            ("tokens", "embedding"), ("segments", "embedding"), ("positions", "positions"),
        )  # fmt: skip
        for name, stage in named:
            if all(name in of for of in parts):
                first, second = (of[name] for of in parts)
                room = ROUNDINGS * self.epsilon * np.maximum(np.abs(first), 1.0)
                yield self._state(place.name, stage, self._pair(first, second, room))
        norms = self._norms()
        if all(place.norm in of for of in norms):
            first, second = (of[place.norm].input for of in norms)
            stage = "stream" if ("embedding", place.name) in self.covered else "embedding"
            room = rounding.of_map(first, 0.0, first.shape[1], self.epsilon)
            yield self._state(place.name, stage, self._pair(first, second, room))
            yield from self._norm(place.norm, norms, None, "")
        states = self._states(stack)
        if states is None:
            self.covered["stream", place.name] = False
            self.covered.setdefault(("embedding", place.name), False)
        else:
            first, second = states[0][0], states[1][0]
            room = rounding.of_map(first, self._known(_STREAM), first.shape[1], self.epsilon)
            stage = "stream" if ("embedding", place.name) in self.covered else "embedding"
            self.covered["stream", place.name] = True
            yield self._state(place.name, stage, self._pair(first, second, room))

    def _norms(self) -> tuple[dict[str, NormRecord], dict[str, NormRecord]]:
        first, second = (
            {norm.name: norm for norm in proven(one.norms)} for one in (self.a, self.b)
        )
        return first, second

    def _layers(self, stack: Stack) -> Iterator[StageComparison]:
        states = self._states(stack)
        norms = self._norms()
        twins = {
            one.name: other for one, other in zip(self.a.attention, self.b.attention, strict=True)
        }
        for at, name in enumerate(self._names(stack)):
            place = Place.named(name)
            before = (states[0][at], states[1][at]) if states else None
            reads = [  # whether its norm stands before it, in each run
                place.norm in of
                and (before is None or np.array_equal(of[place.norm].input, before[which]))
                for which, of in enumerate(norms)
            ]
            if any(reads):
                yield from self._norm(place.norm, norms, before, name)
            if name in twins:
                yield from self._attention(self.a.find(name), twins[name], stack)
            else:
                yield from self._feed_forward(name)
            yield from self._norm(place.after, norms, None, name)
            if not any(reads):
                yield from self._norm(place.norm, norms, before, name)
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
        norms: tuple[dict[str, NormRecord], dict[str, NormRecord]],
        before: tuple[Array, Array] | None,
        of: str,
    ) -> Iterator[StageComparison]:
        """What a norm reads, where that is no state of the stream, and what it makes of that: the second
        run's by the first one's law."""
        if any(name not in one for one in norms):
            return
        first, second = norms[0][name], norms[1][name]
        moved = self.moved.get(name.split(".")[0])
        is_state = before is not None and all(
            np.array_equal(norm.input, state)
            for norm, state in zip((first, second), before, strict=True)
        )
        if not is_state or moved is None:
            here = self._read_by_norm((first, second), before, of)
            moved = rounding.within(here.pair)
            yield here
        expected = first.law.normalized(second.input, first.epsilon)
        expected = expected * first.gamma.astype(np.float64) + first.beta
        room = rounding.of_norm(first, second, moved, self.epsilon)
        pair = self._pair(
            first.output, second.output, room, norms=(first, second), expected=expected
        )
        self.drifts["norm", name] = rounding.drift(pair)
        yield self._furthest("norm", name, pair)

    def _read_by_norm(
        self, norms: tuple[NormRecord, NormRecord], before: tuple[Array, Array] | None, of: str
    ) -> StageComparison:
        """What a norm reads, where that is no state: the sum of a state and what a sub-layer wrote, what it
        wrote alone, or the last state."""
        first, second = (norm.input for norm in norms)
        drift = self._known(("output", of), ("feed-forward", of), _STREAM)
        room = rounding.of_map(first, drift, first.shape[1], self.epsilon)
        if before is None:
            pair = self._pair(first, second, room, norms=norms)
            return self._furthest("norm", norms[0].name, pair)
        room = (
            room
            + self.moved[Place.named(of).stack]
            + rounding.of_map(before[0], 0.0, 1, self.epsilon)
        )
        on_state = [
            np.array_equal(norm.input, state) for norm, state in zip(norms, before, strict=True)
        ]
        pair = self._pair(
            first, second, room, norms=norms, before=before, reads_equal=self._is_read_known(of)
        )
        if any(on_state):
            return self._furthest("norm", norms[0].name, pair)
        return self._furthest("stream", of, pair)

    def _is_read_known(self, name: str) -> bool:
        """Whether what the last map of a sub-layer reads was compared, and what may stand behind the map."""
        has_norms = "norms" not in {*self.a.unproven, *self.b.unproven}
        return has_norms and any(
            self.covered.get((stage, name), False) for stage in ("output", "feed-forward")
        )

    def _attention(
        self, one: Attention, other: Attention, stack: Stack
    ) -> Iterator[StageComparison]:
        place, norm = one.name, Place.named(one.name).norm
        absent = {*rounding.absent(one), *rounding.absent(other)}
        drift = self._known(("norm", norm), _STREAM)
        if not {"query", "key"} & absent and one.query.shape == other.query.shape:
            other = _with_factor_of(
                one, other, rounding.of_heads(one.query, drift, self._width(one), self.epsilon)
            )
        pairs: dict[ComparedStage, RunPair] = {}
        stages: tuple[ComparedStage, ...] = ("query", "key", "value")
        for stage in stages:
            if stage in absent:
                self.covered[stage, place] = False
                continue
            first, second = getattr(one, stage), getattr(other, stage)
            if first.shape != second.shape:
                n, m = first.shape[-1], second.shape[-1]
                words = f"A {stage} of {place} has {n} numbers in the first run, not {m}: {_APART}"
                raise ValueError(words)
            crosses = one.kind == "cross" and stage != "query"
            read = (
                self._known(("norm", "encoder.final.norm"), ("stream", "encoder"))
                if crosses
                else drift
            )
            room = rounding.of_heads(first, read, self._width(one), self.epsilon)
            pairs[stage] = self._pair(first, second, room, attention=(one, other))
        knows = ("norm", norm) in self.covered or self._states_known(stack)
        for stage, pair in pairs.items():
            same_source = [
                pairs[name]
                for name in pairs
                if name != stage and (one.kind != "cross" or "query" not in (name, stage))
            ]
            reads_equal = knows or any(map(rounding.is_equal, same_source))
            yield self._furthest(stage, place, replace(pair, reads_equal=reads_equal))
        yield from self._of_scores(one, other, pairs)
        self.covered["output", place] = "output" not in absent
        if "output" not in absent:
            first, second = map(_handed_on, (one, other))
            room = rounding.of_output((one, other), pairs, self.epsilon)
            pair = self._pair(first, second, room, attention=(one, other))
            drift = rounding.drift(pair)
            self.drifts["output", place] = drift
            if self._states(stack) is None:  # what comes between two layers is not known
                self.drifts[_STREAM] = drift
            yield self._furthest("output", place, pair)

    def _of_scores(
        self, one: Attention, other: Attention, pairs: dict[ComparedStage, RunPair]
    ) -> Iterator[StageComparison]:
        """What leads from queries and keys to weights. Where both follow from the vectors, only what is done
        to them can differ."""
        vectors, share = {"query", "key"} <= {*pairs}, ROUNDINGS * self.epsilon
        steps = {*one.steps, *other.steps}
        settings: dict[ComparedStage, bool] = {
            "scores": True,
            "scaled": True,
            "capped": one.cap is not None or other.cap is not None,
            "biased": one.bias is not None or other.bias is not None,
            "weights": True,
        }
        self.covered.update({(stage, one.name): vectors for stage, has in settings.items() if has})
        if vectors and not np.isclose(one.scale, other.scale, rtol=share, atol=0):
            yield from self._cells("scaled", one, other, pairs)
        if vectors and not _equal(one.cap, other.cap, share):
            yield from self._cells("capped", one, other, pairs)
        if vectors and not _same_bias(one, other, share):
            yield from self._cells("biased", one, other, pairs)
        yield from self._mask(
            one, other, is_told=vectors or all("masked" in each.steps for each in (one, other))
        )
        if vectors and {"scores", "masked"} & steps:
            yield from self._cells("scores", one, other, pairs)
        says_more = {"weights", "masked"} & steps or one.weights_set or other.weights_set
        same = _equal(one.sinks, other.sinks, share) and (
            one.mask_value == other.mask_value or one.mask is None
        )
        if says_more or not same:
            yield from self._cells("weights", one, other, pairs)

    def _mask(
        self, one: Attention, other: Attention, *, is_told: bool
    ) -> Iterator[StageComparison]:
        """A mask that was only read off weights is none."""
        self.covered["mask", one.name] = is_told
        if not is_told:
            return
        for head in range(one.heads if _has_masks(one) or _has_masks(other) else 1):
            first, second = (_allowed(each, head).astype(np.float32) for each in (one, other))
            pair = self._pair(first, second, np.zeros_like(first), attention=(one, other))
            yield self._furthest("mask", one.name, pair, head if _has_masks(one) else None)

    def _cells(
        self,
        stage: ComparedStage,
        one: Attention,
        other: Attention,
        pairs: dict[ComparedStage, RunPair],
    ) -> Iterator[StageComparison]:
        """One matrix of each head: the first that differs beyond rounding, else the one that differs most."""
        worst: StageComparison | None = None
        for head in range(one.heads):
            what = "masked" if stage == "scores" else stage
            first, second = (_matrix(each, what, head) for each in (one, other))
            shared = np.isfinite(first) & np.isfinite(second)
            if stage == "biased":  # what the masks hide may have any bias
                shared &= _allowed(one, head) & _allowed(other, head)
            first, second = (np.where(shared, each, np.float32(0)) for each in (first, second))
            scores = rounding.of_scores((one, other), head, pairs, self.epsilon)
            if stage == "weights":
                room = weight_rounding(np.maximum(first, second), scores, self.epsilon)
            else:
                room = np.broadcast_to(scores[:, None], first.shape)
            pair = self._pair(first, second, room, attention=(one, other), shared=shared)
            here = self._furthest(stage, one.name, pair, head)
            if here.is_beyond:
                yield here
                return
            if worst is None or here.difference > worst.difference:
                worst = here
        if worst is not None:
            yield worst

    def _feed_forward(self, name: str) -> Iterator[StageComparison]:
        records = [
            {one.name: one for one in proven(trace.feed_forward)} for trace in (self.a, self.b)
        ]
        norm = Place.named(name).norm
        drift = self._known(("norm", norm), _STREAM)
        if all(name in one for one in records):
            one, other = (each[name] for each in records)
            room = rounding.of_map(one.before, drift, one.before.shape[1], self.epsilon)
            is_known = "norms" not in {*self.a.unproven, *self.b.unproven}
            before = self._pair(
                one.before, other.before, room, feeds=(one, other), reads_equal=is_known
            )
            yield self._furthest("feed-forward", name, before)
            share = 2 * max(drift, rounding.drift(before))
            room = rounding.of_map(one.hidden, share, 1, self.epsilon) + room
            pair = self._pair(one.hidden, other.hidden, room, feeds=(one, other))
            self.drifts["feed-forward", name] = rounding.drift(pair)
            yield self._furthest("feed-forward", name, pair)
        if name in self.a.written and name in self.b.written:
            first, second = self.a.written[name], self.b.written[name]
            drift = self._known(("feed-forward", name), ("norm", norm), _STREAM)
            room = rounding.of_map(first, drift, first.shape[1], self.epsilon)
            pair = self._pair(first, second, room)
            self.drifts["feed-forward", name] = rounding.drift(pair)
            yield self._furthest("feed-forward", name, pair)

    def _sum(
        self, name: str, states: tuple[tuple[Array, ...], tuple[Array, ...]], at: int
    ) -> StageComparison:
        """The stream after a sub-layer."""
        (first, after), (second, then) = ((of[at], of[at + 1]) for of in states)
        read = Place.named(name)
        drift = self._known(("output", name), ("feed-forward", name), ("norm", read.norm), _STREAM)
        room = (
            rounding.of_map(after - first, drift, first.shape[1], self.epsilon)
            + self.moved[read.stack]
        )
        room = room + ROUNDINGS * self.epsilon * (np.abs(first) + np.abs(after))
        room = room + rounding.of_map(after, self._known(("norm", read.norm)), 1, self.epsilon)
        pair = self._pair(
            after, then, room, before=(first, second), reads_equal=self._is_read_known(name)
        )
        return self._state(name, "stream", pair)

    def _state(self, place: str, stage: ComparedStage, pair: RunPair) -> StageComparison:
        """A state of the stream, from which the next one follows."""
        stack = Place.named(place).stack
        self.moved[stack] = rounding.within(pair)
        self.drifts[_STREAM] = self.drifts["stream", stack] = rounding.drift(pair)
        return self._furthest(stage, place, pair)

    def _final(self) -> Iterator[StageComparison]:
        first, second = self.a.prediction, self.b.prediction
        unproven = {*self.a.unproven, *self.b.unproven}
        if first is None or second is None or "logits" in unproven or first.shape != second.shape:
            return
        stack = self.a.stacks[-1]
        norm = Place(stack, None, "final").norm
        drift = self._known(("norm", norm), _STREAM)
        for start in range(0, first.shape[0], _TOGETHER):
            ours, theirs = (of.rows(start, start + _TOGETHER) for of in (first, second))
            width = self.a.config.d_model if self.a.config else ours.shape[1]
            room = rounding.of_map(ours, drift, width, self.epsilon)
            known = ("norm", norm) in self.covered or self._states_known(stack)
            pair = self._pair(ours, theirs, room, reads_equal=known)
            here = self._furthest("logits", OUTPUT, pair)
            yield replace(here, cell=(here.cell[0] + start, here.cell[1]))

    def _states_known(self, stack: Stack) -> bool:
        """Whether all states were compared, and with them what makes others of them."""
        unproven = {*self.a.unproven, *self.b.unproven}
        return self._states(stack) is not None and "norms" not in unproven

    def _known(self, *keys: tuple[str, str]) -> float:
        """The first of these drifts that was measured; 0 where none was."""
        return next((self.drifts[key] for key in keys if key in self.drifts), 0.0)

    def _width(self, attention: Attention) -> int:
        """How many numbers a query is a sum of."""
        if self.a.config is not None:
            return self.a.config.d_model
        return attention.heads * attention.vectors[0].shape[2]

    def _furthest(
        self, stage: ComparedStage, place: str, pair: RunPair, head: int | None = None
    ) -> StageComparison:
        """The cell furthest apart beyond rounding; of a pair of all heads, in the head that has it."""
        self.covered[stage, place] = True
        over = rounding.gaps(pair.first, pair.second)
        over -= pair.room
        at = tuple(map(int, np.unravel_index(int(over.argmax()), over.shape)))
        whole = np.broadcast_to(pair.room, over.shape)
        first, second, limit = (float(each[at]) for each in (pair.first, pair.second, whole))
        head = at[0] if len(at) == 3 else head
        return StageComparison(stage, place, head, (at[-2], at[-1]), first, second, limit, pair)


def _counted(sizes: tuple[int, int, int]) -> str:
    return f"{sizes[0]} heads, {sizes[1]} queries and {sizes[2]} keys"


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
