"""Why two runs part at a stage: ten mistakes of implementations, each tried on the numbers.

A mistake turns the first run's numbers into what the second would have by it. It is the cause where that
gives the second run's numbers to rounding, and no other mistake does: scaling, mask, positions, rotary
positions, norm, a linear map (transposed, or its bias), vectors or heads exchanged, feed-forward, residual
connection, and, before all of them, the precision. Axes: head, query, key, token, d_k.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from model.analysis.attribution.head_maps import Rotation, Side, head_map, read_by
from model.nn.activations import GATED
from model.nn.layers import ACTIVATIONS
from model.nn.norms import NORMS, NormKind
from model.nn.positions import RotaryPairs, pair_angles
from model.system.words import Words
from model.trace.arrays import Array, BoolArray, Wide
from model.trace.partial import PartialAttention
from model.trace.precision import HALVES, ROUNDINGS, SINGLE
from model.trace.records import Attention, FeedForwardRecord, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("analysis.difference_causes")

ComparedStage = Literal[
    "embedding", "positions", "norm", "query", "key", "rotary", "value", "scores", "scaled", "capped",
    "biased", "mask", "weights", "output", "stream", "feed-forward", "logits",
]  # fmt: skip
AnyArray = NDArray[Any]
Hypotheses = Iterator[tuple[str, AnyArray]]  # a cause, and what the second run would have by it
# Of rotary positions, in models of the hub.
BASES = (10_000.0, 100_000.0, 160_000.0, 500_000.0, 1_000_000.0, 5_000_000.0, 10_000_000.0)
_LEAST = 32  # numbers that tell a precision by their last bits
_DIGITS = 8  # of a rotary base, at most
_CLEARLY = 4  # times nearer to the second run than the first run's own numbers: a cause
_SMALL = 1e-2  # of an activation: what is divided by less is not told


@dataclass(frozen=True, eq=False)
class RunPair:
    """One stage of two runs.

    Args:
        a, b: the runs.
        first, second: their numbers, (token, width), (query, key), or (head, token, width).
        room: how far they may lie apart by rounding, of a shape that stretches to theirs.
        attention, norms, feeds: the records that they are of.
        before: the states of the stream that the sub-layer reads, (token, d_model).
        expected: what the first run's law makes of what the second run read.
        shared: the cells that are compared; None: all.
        reads_equal: whether what the stage reads was compared, and is equal to rounding.
    """

    a: Trace
    b: Trace
    first: AnyArray
    second: AnyArray
    room: NDArray[np.floating]
    attention: tuple[Attention, Attention] | None = None
    norms: tuple[NormRecord, NormRecord] | None = None
    feeds: tuple[FeedForwardRecord, FeedForwardRecord] | None = None
    before: tuple[Array, Array] | None = None
    expected: Wide | None = None
    shared: BoolArray | None = None
    reads_equal: bool = False

    @cached_property
    def largest(self) -> tuple[float, float]:
        """The largest difference, and how far rounding may move that cell."""
        apart = np.abs(self.second.astype(np.float64) - self.first)
        at = np.unravel_index(int(apart.argmax()), apart.shape)
        return float(apart[at]), float(np.broadcast_to(self.room, apart.shape)[at])

    @property
    def share(self) -> float:
        """The largest difference, as a share of the first run's largest number."""
        most = float(np.abs(self.first).max(initial=0.0))
        return self.largest[0] / max(most, float(np.finfo(np.float32).tiny))

    def explains(self, made: AnyArray) -> bool:
        """Whether numbers are the second run's, to rounding, and clearly more so than the first one's."""
        if made.shape != self.second.shape:
            return False
        most = float(np.abs(self.first).max(initial=0.0)) or 1.0
        grown = max(1.0, float(np.abs(made).max(initial=0.0)) / most)
        cells = np.ones(made.shape, np.bool_) if self.shared is None else self.shared
        gaps = np.abs(made - self.second.astype(np.float64))
        apart = np.abs(self.first - self.second.astype(np.float64))[cells].max(initial=0.0)
        near = bool((gaps <= self.room * grown)[cells].all())
        return near and gaps[cells].max(initial=0.0) * _CLEARLY <= apart


def cause_of(
    pair: RunPair, stage: ComparedStage, model: "Model | None"
) -> tuple[ComparedStage, str | None]:
    """The stage at which a difference came about, "rotary" where queries or keys were turned otherwise, and
    its cause; None where no mistake gives these numbers, or more than one does."""
    precision = _precision(pair)
    if precision is not None:
        return stage, precision
    causes: dict[str, bool] = {}  # whether positions turn the vectors otherwise
    for mistakes in _TRIED.get(stage, ()):
        for cause, made in mistakes(pair):
            if cause not in causes and pair.explains(made):
                causes[cause] = mistakes is _turns
    for cause, made in _transposes(pair, stage, model):
        if pair.explains(made):
            causes[cause] = False
    is_vector = stage in ("query", "key")
    is_turned = any(causes.values()) if causes else is_vector and _is_turned(pair)
    return "rotary" if is_turned else stage, next(iter(causes)) if len(causes) == 1 else None


# Precision: tried first, because rounded parameters are other parameters too.


def _precision(pair: RunPair) -> str | None:
    """Whether one run alone has no more digits than a half precision, and lies as near as that allows."""
    first, second = (x.astype(np.float64) for x in (pair.first, pair.second))
    sizes = np.maximum(np.abs(first), np.sqrt(np.square(first).mean()))
    for name, share in HALVES.items():
        computes = [_computes_in(trace, name) for trace in (pair.a, pair.b)]
        if sum(computes) == 1 and (np.abs(second - first) <= ROUNDINGS * share * sizes).all():
            which = "it" if computes[1] else "the first run"
            return say("computes_numbers_more", which=which, name=name)
    return None


def _computes_in(trace: Trace, name: str) -> bool:
    """Whether what all attention reads has no more digits than a half precision. Values are neither turned
    by positions nor summed in single precision afterwards."""
    values = [
        one.vectors[2]
        for one in trace.attention
        if not (isinstance(one, PartialAttention) and one.absent)
    ]
    return bool(values) and all(
        each.size >= _LEAST
        and not np.array_equal(each, np.rint(each))  # whole numbers tell no precision
        and np.array_equal(_rounded(each, name), each)
        for each in values
    )


def _rounded(numbers: AnyArray, name: str) -> Array:
    """Numbers in a half precision, to the nearest, and of two the even one."""
    single = torch.tensor(numbers, dtype=torch.float32)
    rounded: Array = single.to(getattr(torch, name)).float().numpy()
    return rounded


def _rounded_tables(pair: RunPair) -> Hypotheses:
    """Of vectors that stand in a table as they are."""
    for name in HALVES:
        yield say("parameters_rounded", name=name), _rounded(pair.first, name)


# The embedding.


def _embeddings(pair: RunPair) -> Hypotheses:
    """Other tokens, where both runs know theirs: no other rows differ."""
    if not (pair.a.text and pair.b.text):
        return
    texts = [
        [(token.id, token.text) for token in trace.tokens_of(stack)]
        for trace in (pair.a, pair.b)
        for stack in trace.stacks
        if len(trace.tokens_of(stack)) == len(pair.first)
    ]
    if len(texts) == 2:
        others = np.array([one != other for one, other in zip(*texts, strict=True)])
        yield say("read_other_tokens"), np.where(others[:, None], pair.second, pair.first)


def _positions(pair: RunPair) -> Hypotheses:
    """Of the vectors of positions themselves, or of a sum whose parts the first run tells."""
    for parts in pair.a.summands.values() if "embedding" not in pair.a.unproven else ():
        if "positions" not in parts:
            continue
        positions, rest = parts["positions"], np.zeros_like(parts["positions"])
        if not np.array_equal(positions, pair.first):
            rest = np.sum([part for name, part in parts.items() if name != "positions"], 0)
        if (
            positions.shape != pair.first.shape
            or np.abs(positions + rest - pair.first).max() > 1e-4
        ):
            continue
        yield say("adds_positions"), rest
        for step, words in ((1, "forwards"), (-1, "back")):
            moved = np.roll(positions, -step, 0) + rest
            edge = -1 if step > 0 else 0
            moved[edge] = pair.second[edge]  # of a position that the first run has not
            yield say("positions_shifted_1", words=words), moved


# Vectors that a map gives: queries, keys, values.


def _biases(pair: RunPair) -> Hypotheses:
    """The same vector added to every token: three tokens or more tell it from chance. Where positions turn
    the vectors, it was added before. What the map reads must be known to be equal: another β before it
    would do the same."""
    if pair.first.shape[-2] < 3 or not pair.reads_equal:
        return
    cause = say("bias_map_another")
    apart = pair.second.astype(np.float64) - pair.first
    yield cause, pair.first + np.median(apart, axis=-2, keepdims=True)
    if apart.ndim != 3:
        return
    for pairs, base, width in _ways(pair):
        angles = pair_angles(np.arange(apart.shape[-2], dtype=np.float64), width, base)
        constant = np.median(_turned(apart, -angles, pairs), axis=-2, keepdims=True)
        whole = np.broadcast_to(constant, apart.shape)
        yield cause, pair.first + _turned(whole, angles, pairs)


def _transposes(pair: RunPair, stage: ComparedStage, model: "Model | None") -> Hypotheses:
    """What the model's own map would give with its matrix transposed."""
    sides: dict[ComparedStage, Side] = {"query": "query", "key": "key", "value": "value"}
    if pair.attention is None or model is None or stage not in sides:
        return
    side = sides[stage]
    attention = pair.attention[0]
    try:
        read = read_by(model, pair.a, attention, side).astype(np.float64)
        maps = [head_map(model, pair.a, attention, head, side) for head in range(attention.heads)]
    except ValueError:
        return  # no map of the model gives these vectors
    matrix = np.concatenate([one.matrix for one in maps])  # (H · D, C)
    if matrix.shape[0] == matrix.shape[1]:
        tokens = np.arange(len(read))
        mapped = np.split(read @ matrix, attention.heads, axis=1)
        rows = [
            np.add(one.linear(part, tokens), one.constant(tokens))
            for one, part in zip(maps, mapped, strict=True)
        ]
        yield say("matrix_map_transposed"), np.stack(rows)


def _exchanges(pair: RunPair) -> Hypotheses:
    """What the values' map would give as keys, turned by positions, and the other way round."""
    if pair.attention is None or any(isinstance(one, PartialAttention) for one in pair.attention):
        return
    one, other = pair.attention
    if not one.value.shape == other.value.shape == pair.first.shape:
        return
    values, keys = one.value.astype(np.float64), one.key.astype(np.float64)
    made = [(values, keys)]
    for pairs, base, width in _ways(pair):
        angles = pair_angles(np.arange(values.shape[1], dtype=np.float64), width, base)
        made.append((_turned(values, angles, pairs), _turned(keys, -angles, pairs)))
    for turned, plain in made:
        room = np.broadcast_to(pair.room, plain.shape).max()
        if np.abs(other.value - plain).max() <= room:
            yield say("keys_values_exchanged"), turned


def _orders(pair: RunPair) -> Hypotheses:
    """Heads that stand in another order, or are shared out among the queries otherwise."""
    first, second = pair.first, pair.second
    room = np.broadcast_to(pair.room, first.shape)
    near = [
        [bool((np.abs(own - head) <= limit).all()) for own in first]
        for head, limit in zip(second, room, strict=True)
    ]
    if not all(map(any, near)):
        return
    kinds: dict[bytes, int] = {}
    groups = [kinds.setdefault(head.tobytes(), len(kinds)) for head in first]
    of = [row.index(True) for row in near]
    before, after = (" ".join(map(str, order)) for order in (groups, [groups[at] for at in of]))
    yield say("heads_stand_instead", after=after, before=before), first[of]


# Rotary positions: each token is turned by its own angles, the first one by none.


def _turns(pair: RunPair) -> Hypotheses:
    """Queries and keys, turned back by one way and turned by another."""
    if not _keeps_lengths(pair):
        return
    places = np.arange(pair.first.shape[1], dtype=np.float64)
    names = {"halves": "i and i + d/2", "neighbours": "2i and 2i + 1"}
    for pairs, base, width in _ways(pair):
        angles = pair_angles(places, width, base)
        plain = _turned(pair.first, -angles, pairs)
        yield say("rotary_positions_turn"), plain
        other: RotaryPairs = "neighbours" if pairs == "halves" else "halves"
        cause = say("rotary_pairs_instead", other_names=names[other], pairs_names=names[pairs])
        yield cause, _turned(plain, angles, other)
        for step, words in ((1, "later"), (-1, "earlier")):
            moved = pair_angles(places + step, width, base)
            yield say("rotary_positions_begin", words=words), _turned(plain, moved, pairs)
        made = {
            one: _turned(plain, pair_angles(places, width, one), pairs)
            for one in _bases_of(plain, pair.second, pairs, width)
        }
        gaps = {one: float(np.abs(made[one] - pair.second).max()) for one in made}
        least = 2 * min(gaps.values(), default=0.0)
        turned_by = next((one for one in made if gaps[one] <= least), base)  # the fewest digits
        if turned_by != base:
            digits = f"{turned_by:,.0f}" if turned_by.is_integer() else f"{turned_by:g}"
            yield say("rotary_base_instead", digits=digits, base=base), made[turned_by]


def _turned_values(pair: RunPair) -> Hypotheses:
    for pairs, base, width in _ways(pair):
        angles = pair_angles(np.arange(pair.first.shape[1], dtype=np.float64), width, base)
        yield say("rotary_positions_turn_values"), _turned(pair.first, angles, pairs)


def _ways(pair: RunPair) -> Sequence[tuple[RotaryPairs, float, int]]:
    """How positions may turn the first run's vectors: which pairs, by which base, how many dimensions. As its
    config says; of a run without one, every usual way."""
    config, width = pair.a.config, pair.first.shape[-1]
    if config is not None:
        own = (config.rotary_pairs, config.rotary_base, config.rotary_dim)
        return [own] if config.turns_positions else []
    kinds: tuple[RotaryPairs, ...] = ("halves", "neighbours")
    return [(pairs, base, width) for pairs in kinds for base in BASES] if width % 2 == 0 else []


def _turned(vectors: AnyArray, angles: Wide, pairs: RotaryPairs) -> Wide:
    """Vectors (head, token, d) with their first pairs turned by angles (token, pair)."""
    return Rotation(angles, pairs).of(vectors.astype(np.float64), np.arange(len(angles)))


def _bases_of(plain: Wide, second: AnyArray, pairs: RotaryPairs, width: int) -> Iterator[float]:
    """The base by which vectors are turned, with more and more of its digits: first by the second pair of
    token 1, then by least squares over all pairs of all tokens."""
    count = width // 2
    if count < 2:
        return
    parts = [
        each[..., :count] + 1j * each[..., count:width]
        if pairs == "halves"
        else each[..., :width:2] + 1j * each[..., 1:width:2]
        for each in (plain, second.astype(np.float64))
    ]
    product = (parts[1] * parts[0].conj()).sum(0)  # (token, pair)
    angle = float(np.angle(product[1, 1]))
    if not 1e-6 < angle < 1:
        return
    power = np.arange(count) / count  # of the base, below one
    places = np.arange(len(product))[:, None]
    log = -math.log(angle) / power[1]
    for _ in range(4):
        angles = places * np.exp(-power * log)
        slope = -power * angles
        apart = np.angle(product * np.exp(-1j * angles))
        log += float((np.abs(product) * slope * apart).sum() / (np.abs(product) * slope**2).sum())
    if abs(log) < 100:
        yield from dict.fromkeys(float(f"{math.exp(log):.{n}g}") for n in range(1, _DIGITS))


def _keeps_lengths(pair: RunPair) -> bool:
    """Whether vectors keep their lengths, as where they are only turned."""
    if pair.first.ndim != 3 or pair.first.shape[1] < 2:
        return False
    lengths, others = (
        np.linalg.norm(x.astype(np.float64), axis=-1) for x in (pair.first, pair.second)
    )
    allowed = 2 * np.linalg.norm(np.broadcast_to(pair.room, pair.first.shape), axis=-1)
    return bool((np.abs(others - lengths) <= allowed).all())


def _is_turned(pair: RunPair) -> bool:
    """Whether they are only turned, and token 0 is not."""
    room = np.broadcast_to(pair.room, pair.first.shape)[:, 0]
    return _keeps_lengths(pair) and bool(
        (np.abs(pair.second[:, 0] - pair.first[:, 0]) <= room).all()
    )


# Scores and masks.


def _scales(pair: RunPair) -> Hypotheses:
    if pair.attention is None:
        return
    one, other = pair.attention
    width = one.query.shape[2]
    root = math.sqrt(width)
    model_width = pair.a.config.d_model if pair.a.config else width * one.heads
    named = {
        say("scores_not_divided"): 1.0,
        say("scores_divided_k"): 1 / width,
        say("scores_divided_model"): 1 / math.sqrt(model_width),
        say("scores_multiplied_k"): root,
    }
    causes = [
        cause
        for cause, factor in named.items()
        if math.isclose(one.scale, 1 / root, rel_tol=1e-5)
        and math.isclose(factor, other.scale, rel_tol=ROUNDINGS * SINGLE * width)
    ]
    plain = say("scores_multiplied_instead", scale=other.scale, one_scale=one.scale)
    yield causes[0] if len(causes) == 1 else plain, pair.second


def _masks(pair: RunPair) -> Hypotheses:
    queries, keys = pair.first.shape

    def look_back(by: int) -> AnyArray:
        return np.tri(queries, keys, keys - queries + by, dtype=np.float32)

    yield say("mask"), np.ones_like(pair.first)
    if pair.first.all():
        yield say("look_ahead_mask"), look_back(0)
    if np.array_equal(pair.first, look_back(0)):
        yield say("mask_off_shows_next"), look_back(1)
        yield say("mask_off_hides_token"), look_back(-1)
        yield say("mask_reversed_hides"), look_back(0).T


# Norms, feed-forwards, the stream.


def _norms(pair: RunPair) -> Hypotheses:
    """What the second run's norm read, by other laws."""
    if pair.norms is None:
        return
    one, other = pair.norms
    if pair.expected is None:  # it reads something else
        yield from _norm_places(pair, one, other)
        return
    gamma, beta, rows = one.gamma.astype(np.float64), one.beta.astype(np.float64), other.input

    def by(kind: NormKind, epsilon: float) -> Wide:
        return NORMS[kind].normalized(rows, epsilon)

    own = by(one.kind, one.epsilon)
    names: dict[NormKind, str] = {"layer": "a layer norm", "rms": "an RMS norm"}
    if other.kind != one.kind:
        cause = say("norm_instead", names=names[other.kind], one_names=names[one.kind])
        for epsilon, shift in ((one.epsilon, beta), (one.epsilon, 0 * beta), (other.epsilon, beta)):
            yield cause, by(other.kind, epsilon) * gamma + shift
    elif other.epsilon != one.epsilon:
        cause = say("norm_instead_2", epsilon=other.epsilon, one_epsilon=one.epsilon)
        yield cause, by(one.kind, other.epsilon) * gamma + beta
    else:
        tables = (one.gamma, other.gamma), (one.beta, other.beta)
        same = [np.allclose(x, y, rtol=1e-6, atol=1e-7) for x, y in tables]
        words = {(False, True): "γ", (True, False): "β"}.get((same[0], same[1]), "γ and β")
        is_bare = not other.beta.any() if same[0] else same[1] and (other.gamma == 1).all()
        cause = f"its norm has {'no' if is_bare else 'another'} {words}"
        for name in HALVES:
            if all(np.array_equal(_rounded(x, name), y) for x, y in tables):
                cause = say("parameters_rounded", name=name)
        if not all(same):
            yield cause, own * other.gamma + other.beta


def _norm_places(pair: RunPair, one: NormRecord, other: NormRecord) -> Hypotheses:
    """A norm that stands before its sub-layer in one run, and on the sum in the other."""
    if pair.before is None:
        return
    first, second = pair.before
    before = np.array_equal(one.input, first), np.array_equal(other.input, second)
    if before == (True, False):
        yield say("norm_stands_after"), pair.second
    if before == (False, True):
        yield say("norm_stands_before"), pair.second


def _activations(pair: RunPair) -> Hypotheses:
    """Other activations of the same numbers; and the gate's part and the value's, exchanged."""
    if pair.feeds is None:
        return
    one, other = pair.feeds
    functions = _functions()
    for name, function in functions.items():
        active = function(one.before)
        told = np.abs(active) > _SMALL
        gate = np.divide(one.hidden, active, where=told, out=np.zeros_like(active))
        if np.abs(active - one.hidden).max() <= 1e-5 * max(1.0, np.abs(active).max()):
            told, gate = np.ones_like(told), np.ones_like(active)  # there is no gate
        if pair.first is one.before:
            exchanged = function(other.before) * one.before
            if np.abs(exchanged - other.hidden).max() <= 1e-4 * np.abs(other.hidden).max():
                yield (
                    say("gate_values_feed"),
                    np.where(told, gate, pair.second),
                )
            continue
        for its_name, its in {**functions, "none": lambda x: x}.items():
            if its_name != name:
                cause = say("activation_instead", its_name=its_name, name=name)
                yield cause, np.where(told, its(other.before) * gate, pair.second)


def _functions() -> Mapping[str, Callable[[Array], Array]]:
    """The activations by their names, each once."""

    def of(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
        return lambda numbers: function(torch.tensor(numbers)).numpy()

    plain = {name: function for name, function in ACTIVATIONS.items() if name not in GATED}
    return {name.replace("_", " "): of(function) for name, function in plain.items()}


def _residuals(pair: RunPair) -> Hypotheses:
    if pair.before is not None:
        written = pair.first - pair.before[0].astype(np.float64)
        cause = say("not_add_sub_layer")
        yield cause, written


Mistakes = Callable[[RunPair], Hypotheses]
_TRIED: Mapping[ComparedStage, tuple[Mistakes, ...]] = {
    "embedding": (_rounded_tables, _embeddings, _positions),
    "positions": (_rounded_tables, _positions),
    "norm": (_norms,),
    "query": (_turns, _orders, _biases),
    "key": (_turns, _orders, _exchanges, _biases),
    "value": (_turned_values, _orders, _biases),
    "scaled": (_scales,),
    "mask": (_masks,),
    "stream": (_residuals, _biases, _positions),
    "feed-forward": (_activations, _biases),
    "logits": (_biases,),
}
