"""Why two runs part at a stage: mistakes of implementations, each tried on the numbers.

A hypothesis turns the first run's numbers into what the second would have with one mistake. It holds where
that gives the second run's numbers to rounding; the first that holds is the cause.
Axes: head, query, key, token, d_k.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.analysis.attribution.head_maps import Rotation, Side, head_map, read_by
from model.nn.norms import NORMS
from model.nn.positions import RotaryPairs, pair_angles
from model.trace.arrays import Array, BoolArray, Wide, softmax
from model.trace.precision import HALVES, ROUNDINGS, SINGLE
from model.trace.records import Attention, FeedForwardRecord, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

ComparedStage = Literal[
    "embedding", "positions", "norm", "query", "key", "rotary", "value", "scores", "scaled", "capped",
    "biased", "mask", "weights", "output", "stream", "feed-forward", "logits",
]  # fmt: skip
AnyArray = NDArray[Any]
Hypotheses = Iterator[tuple[str, AnyArray]]  # a cause, and what the second run would have by it
# Of rotary positions, in models of the hub.
BASES = (10_000.0, 100_000.0, 160_000.0, 500_000.0, 1_000_000.0, 5_000_000.0, 10_000_000.0)
EPSILONS = (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-3)
_LEAST = 32  # numbers that tell a precision by their last bits


@dataclass(frozen=True, eq=False)
class RunPair:
    """One stage of two runs. room: how far its numbers may lie apart by rounding, of a shape that stretches
    to theirs. expected: what the first run's law makes of what the second run read."""

    a: Trace
    b: Trace
    first: AnyArray
    second: AnyArray
    room: NDArray[np.floating]
    attention: tuple[Attention, Attention] | None = None
    head: int | None = None
    norms: tuple[NormRecord, NormRecord] | None = None
    feeds: tuple[FeedForwardRecord, FeedForwardRecord] | None = None
    before: tuple[Array, Array] | None = None  # the stream that the sub-layer reads
    expected: Wide | None = None
    shared: BoolArray | None = None  # the cells that are compared; None: all

    @property
    def of_head(self) -> tuple[AnyArray, AnyArray, NDArray[np.floating]]:
        """Both matrices, and their room."""
        if self.first.ndim == 2 or self.head is None:
            return self.first, self.second, self.room
        whole = np.broadcast_to(self.room, self.first.shape)
        return self.first[self.head], self.second[self.head], whole[self.head]

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
        """Whether numbers are the second run's, to rounding, and not the first one's too."""
        if made.shape != self.second.shape or (np.abs(made - self.first) <= self.room).all():
            return False
        most = float(np.abs(self.first).max(initial=0.0)) or 1.0
        grown = max(1.0, float(np.abs(made).max(initial=0.0)) / most)
        near = np.abs(made - self.second) <= 2 * self.room * grown
        return bool((near if self.shared is None else near | ~self.shared).all())


def cause_of(
    pair: RunPair, stage: ComparedStage, model: "Model | None"
) -> tuple[ComparedStage, str | None]:
    """The stage at which a difference came about, "rotary" where queries or keys were turned otherwise, and
    its cause; None where no hypothesis holds."""
    last: tuple[Mistakes, ...] = (_precisions, partial(_transposes, stage, model))
    for mistakes in (*_TRIED.get(stage, ()), *last):
        for cause, made in mistakes(pair):
            if pair.explains(made):
                return "rotary" if mistakes is _turns else stage, cause
    if stage in ("query", "key") and _is_turned(pair):
        return "rotary", None
    return stage, None


# Vectors that a map gives: embeddings, queries, keys, values.


def _embeddings(pair: RunPair) -> Hypotheses:
    root = math.sqrt(pair.first.shape[1])
    yield "its token vectors are not multiplied by √d_model", pair.first / root
    yield "its token vectors are multiplied by √d_model", pair.first * root
    ids = [[token.id for token in trace.tokens] for trace in (pair.a, pair.b)]
    if ids[0] != ids[1]:
        yield "it read other tokens", pair.second


def _positions(pair: RunPair) -> Hypotheses:
    yield "it adds no positions", np.zeros_like(pair.first)
    for step in (1, 2, -1, -2):
        moved = np.roll(pair.first, -step, 0)
        edge = slice(-step, None) if step > 0 else slice(0, -step)
        moved[edge] = pair.second[edge]  # of positions that the first run has not
        yield (
            f"its positions are shifted by {abs(step)}, {'forwards' if step > 0 else 'back'}",
            moved,
        )


def _head_splits(pair: RunPair) -> Hypotheses:
    """(head, token, d): other ways to cut the numbers of a token into heads."""
    heads, tokens, width = pair.first.shape
    flat = pair.first.transpose(1, 0, 2).reshape(tokens, -1)
    dealt = flat.reshape(tokens, width, heads).transpose(2, 0, 1)
    yield "its heads are split in the other order: (d_k, head) instead of (head, d_k)", dealt
    cut = flat.reshape(heads, tokens, width)
    yield "it cuts (token, head · d_k) into (head, token, d_k) without transposing", cut
    yield "its heads stand in the reverse order", pair.first[::-1]


def _shared_heads(pair: RunPair) -> Hypotheses:
    """Keys and values that several heads share, repeated in the other order."""
    heads = len(pair.first)
    for groups in (count for count in range(2, heads) if heads % count == 0):
        one = pair.first[:: heads // groups]
        if np.array_equal(np.repeat(one, heads // groups, 0), pair.first):
            tiled = np.tile(one, (heads // groups, 1, 1))
            yield (
                "it repeats its key heads as 0 1 0 1 (tile) instead of 0 0 1 1 (repeat_interleave)",
                tiled,
            )
        one = pair.first[:groups]
        if np.array_equal(np.tile(one, (heads // groups, 1, 1)), pair.first):
            spread = np.repeat(one, heads // groups, 0)
            yield (
                "it repeats its key heads as 0 0 1 1 (repeat_interleave) instead of 0 1 0 1 (tile)",
                spread,
            )


def _swaps(pair: RunPair) -> Hypotheses:
    if pair.attention is None:
        return
    one = pair.attention[0]
    vectors = {"queries": one.query, "keys": one.key, "values": one.value}
    for name, other in vectors.items():
        if other.shape == pair.first.shape and not np.array_equal(other, pair.first):
            yield f"it has the {name} in their place", other


def _factors(pair: RunPair) -> Hypotheses:
    first, second = pair.first.astype(np.float64), pair.second.astype(np.float64)
    square = float(np.square(first).sum())
    if not square:
        return
    factor = float((first * second).sum()) / square
    width = pair.first.shape[-1]
    named = {1 / math.sqrt(width): "1/√d_k", width**-0.25: "1/⁴√d_k", math.sqrt(width): "√d_k"}
    words = next(
        (name for value, name in named.items() if math.isclose(value, factor, rel_tol=1e-4)), None
    )
    yield f"they are multiplied by {words or f'{factor:.6g}'}", first * factor


def _biases(pair: RunPair) -> Hypotheses:
    """The same vector added to every token: three tokens or more tell it from chance. Where positions turn
    the vectors, it was added before."""
    if pair.first.shape[-2] < 3:
        return
    cause = "the bias of the map is another one, or missing: every token differs by the same vector"
    apart = pair.second.astype(np.float64) - pair.first
    yield cause, pair.first + np.median(apart, axis=-2, keepdims=True)
    config, angles = pair.a.config, pair.a.angles
    if config is None or angles is None or len(angles) != apart.shape[-2] or apart.ndim != 3:
        return
    wide, pairs = angles.astype(np.float64), config.rotary_pairs
    constant = np.median(_turned(apart, -wide, pairs), axis=-2, keepdims=True)
    yield cause, pair.first + _turned(np.broadcast_to(constant, apart.shape), wide, pairs)


def _transposes(stage: ComparedStage, model: "Model | None", pair: RunPair) -> Hypotheses:
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
        yield (
            "the matrix of the map is transposed",
            np.stack(
                [
                    np.add(one.linear(rows, tokens), one.constant(tokens))
                    for one, rows in zip(maps, mapped, strict=True)
                ]
            ),
        )


# Rotary positions: each token is turned by its own angles, the first one by none.


def _turns(pair: RunPair) -> Hypotheses:
    """Queries and keys, turned back by one way and turned by another."""
    if not _keeps_lengths(pair):
        return
    for pairs, base, width in _ways(pair):
        yield from _other_turns(pair, pairs, base, width)


def _ways(pair: RunPair) -> Iterator[tuple[RotaryPairs, float, int]]:
    """How positions may turn the first run's vectors: which pairs, by which base, how many dimensions. As its
    config says; of a run without one, every usual way."""
    config = pair.a.config
    if config is not None:
        if config.turns_positions:
            yield config.rotary_pairs, config.rotary_base, config.turned_width
        return
    ways: tuple[RotaryPairs, ...] = ("halves", "neighbours")
    yield from ((pairs, base, pair.first.shape[-1]) for pairs in ways for base in BASES)


def _other_turns(pair: RunPair, pairs: RotaryPairs, base: float, width: int) -> Hypotheses:
    tokens = pair.first.shape[1]
    places = np.arange(tokens, dtype=np.float64)
    angles = pair_angles(places, width, base)
    plain = _turned(pair.first, -angles, pairs)
    words = {"halves": "i and i + d/2", "neighbours": "2i and 2i + 1"}
    other: RotaryPairs = "neighbours" if pairs == "halves" else "halves"
    yield "no rotary positions turn its queries and keys", plain
    cause = f"its rotary pairs are {words[other]} instead of {words[pairs]}"
    yield cause, _turned(plain, angles, other)
    yield "its rotary angles have the other sign", _turned(plain, -angles, pairs)
    for step in (1, -1):
        moved = pair_angles(places + step, width, base)
        cause = f"its rotary positions begin {'later' if step > 0 else 'earlier'} by one"
        yield cause, _turned(plain, moved, pairs)
    turned_by = _base_of(plain, pair.second, pairs, width)
    for one in dict.fromkeys((*BASES, *((turned_by,) if turned_by else ()))):
        if one != base:
            cause = f"its rotary base is {one:,.6g} instead of {base:,.6g}"
            yield cause, _turned(plain, pair_angles(places, width, one), pairs)


def _turned(vectors: AnyArray, angles: Wide, pairs: RotaryPairs) -> Wide:
    """Vectors (head, token, d) with their first pairs turned by angles (token, pair)."""
    return Rotation(angles, pairs).of(vectors.astype(np.float64), np.arange(len(angles)))


def _base_of(plain: Wide, second: AnyArray, pairs: str, width: int) -> float | None:
    """The base by which the second pair of token 1 is turned; None where it does not tell one."""
    count = width // 2
    if count < 2 or plain.shape[1] < 2:
        return None
    at = (1, 1 + count) if pairs == "halves" else (2, 3)
    before = plain[:, 1, at[0]] + 1j * plain[:, 1, at[1]]
    after = second[:, 1, at[0]] + 1j * second[:, 1, at[1]]
    angle = float(np.angle((after * before.conj()).sum()))
    if not 1e-6 < angle < 1:
        return None
    base = float(angle ** (-width / 2))
    return float(f"{base:.4g}") if math.isfinite(base) else None


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


# Scores, masks, weights.


def _scales(pair: RunPair) -> Hypotheses:
    if pair.attention is None:
        return
    one, other = pair.attention
    width, heads = one.query.shape[2], one.heads
    model_width = pair.a.config.d_model if pair.a.config else width * heads
    scale, theirs = one.scale, other.scale
    named = {
        "its scores are not divided by √d_k": 1.0,
        "its scores are divided by √d_k twice": scale / math.sqrt(width),
        "its scores are divided by √d_model instead of √d_k": 1 / math.sqrt(model_width),
        "its scores are divided by d_k instead of √d_k": 1 / width,
        "its scores are multiplied by √d_k instead of divided": math.sqrt(width),
        "its scores are divided by √d_k, which the first run does not": 1 / math.sqrt(width),
    }
    for cause, factor in named.items():
        if math.isclose(factor, theirs, rel_tol=ROUNDINGS * SINGLE * width):
            yield cause, pair.second
    yield f"its scores are multiplied by {theirs:.6g} instead of {scale:.6g}", pair.second


def _caps(pair: RunPair) -> Hypotheses:
    if pair.attention is None:
        return
    caps = [each.cap for each in pair.attention]
    if caps[1] is None:
        yield f"its scores are not capped (the first run: ±{caps[0]:g})", pair.second
    elif caps[0] is None:
        yield f"its scores are capped to ±{caps[1]:g}", pair.second
    else:
        yield f"its scores are capped to ±{caps[1]:g} instead of ±{caps[0]:g}", pair.second


def _score_biases(pair: RunPair) -> Hypotheses:
    if pair.attention is None or pair.head is None:
        return
    one, other = pair.attention
    own, before = one.bias_of(pair.head), one.capped(pair.head)
    if other.bias is None:
        yield "it adds no biases to its scores", before
    if one.bias is None:
        yield "it adds biases to its scores", pair.second
    if own is not None:
        yield "it adds its biases twice", before + 2 * own
        yield "its biases have the other sign", before - own
        yield (
            "its biases are those of the reverse distance",
            before + np.broadcast_to(own, before.shape).T,
        )


def _masks(pair: RunPair) -> Hypotheses:
    first, second = pair.first.astype(bool), pair.second.astype(bool)
    queries, keys = first.shape

    def look_back(by: int) -> NDArray[np.bool_]:
        return np.tri(queries, keys, keys - queries + by, dtype=bool)

    tried: dict[str, NDArray[np.bool_]] = {
        "it has no mask": np.ones_like(first),
        "its mask is reversed: it hides what may be read": ~first,
        "its mask is reversed: it hides the past": first.T if queries == keys else ~first,
        "its mask hides the past, and the token itself": ~look_back(0),
        "its mask is off by one: it shows the next token too": look_back(1),
        "its mask is off by one: it hides the token itself": look_back(-1),
        "it has a look-ahead mask": look_back(0),
    }
    if np.array_equal(second & look_back(0), second) and not np.array_equal(first, look_back(0)):
        tried["its mask has no window: it reads all earlier tokens"] = look_back(0)
    for cause, mask in tried.items():
        yield cause, mask.astype(np.float32)
    for width in range(1, keys):
        windowed = look_back(0) & ~np.tri(queries, keys, keys - queries - width, dtype=bool)
        yield f"its window has {width} keys", windowed.astype(np.float32)
    hidden = first & ~second
    columns = hidden.all(0) | (hidden.any(0) & ~(first & second).any(0))
    if columns.any():
        named = ", ".join(str(at) for at in np.flatnonzero(columns)[:4])
        made = first & ~columns
        yield f"it hides tokens as padding: {named}", made.astype(np.float32)


def _softmaxes(pair: RunPair) -> Hypotheses:
    """(query, key) of one head: other ways from scores to weights."""
    if pair.attention is None or pair.head is None:
        return
    one, other = pair.attention
    try:
        scores, biased = one.masked(pair.head), one.biased(pair.head)
    except ValueError:
        return  # of weights alone there is nothing to make others of
    if one.sinks is not None and other.sinks is None:
        yield "the sink of its softmax is left out", softmax(scores)
    if one.sinks is None and other.sinks is not None:
        yield "its softmax has a sink", other.weights(pair.head)
    yield "its softmax runs over the queries instead of the keys", softmax(scores, axis=0)
    heads = np.stack([one.masked(head) for head in range(one.heads)])
    yield "its softmax runs over the heads instead of the keys", softmax(heads, axis=0)[pair.head]
    allowed = np.isfinite(scores) & (scores == biased)
    yield "its mask is applied after the softmax", softmax(biased) * allowed
    yield "its weights are not masked", softmax(biased)
    unscaled = np.where(allowed, one.scores(pair.head), -np.inf)
    yield "its scores are not divided by √d_k", softmax(unscaled)
    yield (
        "its weights are those of scores that were divided by √d_k twice",
        softmax(scores * one.scale),
    )
    exponentials = np.exp2(scores - scores.max(-1, keepdims=True))
    yield (
        "its softmax has powers of 2 instead of e",
        exponentials / exponentials.sum(-1, keepdims=True),
    )
    if other.mask_value != one.mask_value:
        given = np.where(allowed, biased, np.float32(other.mask_value))
        cause = f"its masked scores become {other.mask_value:g} instead of {one.mask_value:g}"
        yield cause, softmax(given)


def _outputs(pair: RunPair) -> Hypotheses:
    """(head, query, d_v): other outputs of the same weights and values."""
    if pair.attention is None:
        return
    one = pair.attention[0]
    try:
        weights, values = one.weights(), one.value
        scores = np.stack([one.masked(head) for head in range(one.heads)])
        biased = np.stack([one.biased(head) for head in range(one.heads)])
    except ValueError:
        return
    yield "its softmax runs over the queries instead of the keys", softmax(scores, axis=1) @ values
    yield "its softmax runs over the heads instead of the keys", softmax(scores, axis=0) @ values
    allowed = np.isfinite(scores) & (scores == biased)
    yield "its mask is applied after the softmax", (softmax(biased) * allowed) @ values
    if weights.shape[1] == weights.shape[2]:
        yield "its weights are transposed", weights.transpose(0, 2, 1) @ values
    if one.sinks is not None:
        yield "the sink of its softmax is left out", softmax(scores) @ values
    yield (
        "its outputs are zero: the head was left out",
        np.where(np.abs(pair.second).max((1, 2), keepdims=True) > 0, pair.first, 0.0),
    )


# Norms, feed-forwards, the stream, the logits.


def _norms(pair: RunPair) -> Hypotheses:
    """What the second run's norm read, by other laws."""
    if pair.norms is None:
        return
    one, other = pair.norms
    if pair.expected is None:  # it reads something else
        yield from _norm_places(pair, one, other)
        return
    gamma, beta, rows = one.gamma.astype(np.float64), one.beta.astype(np.float64), other.input

    def by(kind: Any, epsilon: float) -> Wide:
        return NORMS[kind].normalized(rows, epsilon)

    own = by(one.kind, one.epsilon)
    names = {"layer": "a layer norm", "rms": "an RMS norm"}
    for kind, name in names.items():
        if kind != one.kind:
            for epsilon in dict.fromkeys((one.epsilon, other.epsilon)):
                for shift in (beta, np.zeros_like(beta)):
                    yield (
                        f"its norm is {name} instead of {names[one.kind]}",
                        by(kind, epsilon) * gamma + shift,
                    )
    for epsilon in dict.fromkeys((other.epsilon, *EPSILONS)):
        if epsilon != one.epsilon:
            cause = f"the ε of its norm is {epsilon:g} instead of {one.epsilon:g}"
            yield cause, by(one.kind, epsilon) * gamma + beta
    wide = rows.astype(np.float64)
    mean, size = one.law.statistics(wide)
    count = rows.shape[1]
    unbiased = (wide - mean) / np.sqrt(size * count / max(count - 1, 1) + one.epsilon)
    yield "its norm divides by the unbiased variance (n − 1)", unbiased * gamma + beta
    outside = (wide - mean) / (np.sqrt(size) + one.epsilon)
    yield "the ε of its norm stands outside of the root", outside * gamma + beta
    yield "its norm has no γ", own + beta
    yield "its norm has no β", own * gamma
    yield "its norm multiplies by 1 + γ instead of γ", own * (1 + gamma) + beta
    yield "its norm multiplies by γ − 1: it lacks the 1 of 1 + γ", own * (gamma - 1) + beta
    yield "its norm is left out", wide
    yield "its norm has other γ and β", own * other.gamma + other.beta


def _norm_places(pair: RunPair, one: NormRecord, other: NormRecord) -> Hypotheses:
    """A norm that stands before its sub-layer in one run, and on the sum in the other."""
    if pair.before is None:
        return
    first, second = pair.before
    before = np.array_equal(one.input, first), np.array_equal(other.input, second)
    if before == (True, False):
        yield "its norm stands after the sub-layer instead of before it", pair.second
    if before == (False, True):
        yield "its norm stands before the sub-layer instead of after it", pair.second


def _activations(pair: RunPair) -> Hypotheses:
    """Other activations of what the second run's first map gave."""
    if pair.feeds is None:
        return
    import torch

    from model.nn.layers import ACTIVATIONS

    other = pair.feeds[1]
    before = torch.tensor(other.before)
    for name, activation in ACTIVATIONS.items():
        if not name.endswith("glu"):
            yield f"its activation is {name.replace('_', ' ')}", activation(before).numpy()
    yield "it has no activation", other.before


def _sums(pair: RunPair) -> Hypotheses:
    if pair.before is None:
        return
    first, second = (x.astype(np.float64) for x in pair.before)
    written = pair.first - first
    yield "it does not add what the sub-layer reads: the residual connection is missing", written
    yield "it does not add what the sub-layer wrote", second
    yield "it adds what the sub-layer wrote twice", first + 2 * written


def _logits(pair: RunPair) -> Hypotheses:
    first, second = pair.first.astype(np.float64), pair.second.astype(np.float64)
    for cap in (30.0, 50.0):
        yield f"its logits are capped to ±{cap:g}", cap * np.tanh(first / cap)
    square = float(np.square(first).sum())
    factor = float((first * second).sum()) / square if square else 1.0
    yield f"its logits are multiplied by {factor:.6g}", first * factor


def _precisions(pair: RunPair) -> Hypotheses:
    """AnyArray of a lower precision: they have no more digits, and lie as near as that allows."""
    second = pair.second.astype(np.float64)
    if second.size < _LEAST or np.array_equal(second, np.rint(second)):
        return
    sizes = np.sqrt(np.square(pair.first.astype(np.float64)).mean())
    sizes = np.maximum(np.abs(pair.first), sizes)
    before = [second]  # positions turn them in single precision, afterwards
    if second.ndim == 3 and second.shape[1] > 1 and second.shape[2] % 2 == 0:
        places = np.arange(second.shape[1], dtype=np.float64)
        before += [
            _turned(second, -pair_angles(places, width, base), pairs)
            for pairs, base, width in _ways(pair)
        ]
    for name, share in HALVES.items():
        near = np.abs(second - pair.first) <= 2 * ROUNDINGS * share * sizes
        if near.all() and any(_kept_in(numbers, name) for numbers in before):
            yield f"it computes in {name}: its numbers have no more digits", pair.second


def _kept_in(numbers: Wide, name: str) -> bool:
    """Whether numbers are those of a half precision, but for the rounding of a single one."""
    if name == "bfloat16":
        bits = numbers.astype(np.float32).view(np.uint32)
        kept = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    else:
        with np.errstate(over="ignore"):
            kept = numbers.astype(np.float16).astype(np.float32)
    lengths = np.linalg.norm(numbers, axis=-1, keepdims=True)
    return bool((np.abs(numbers - kept) <= ROUNDINGS * SINGLE * lengths).all())


Mistakes = Callable[[RunPair], Hypotheses]
_OF_MAPS: tuple[Mistakes, ...] = (_head_splits, _shared_heads, _swaps, _biases, _factors)
_TRIED: Mapping[ComparedStage, tuple[Mistakes, ...]] = {
    "embedding": (_embeddings, _factors),
    "positions": (_positions,),
    "norm": (_norms,),
    "query": (_turns, *_OF_MAPS),
    "key": (_turns, *_OF_MAPS),
    "value": _OF_MAPS,
    "scores": (_factors,),
    "scaled": (_scales,),
    "capped": (_caps,),
    "biased": (_score_biases,),
    "mask": (_masks,),
    "weights": (_softmaxes,),
    "output": (_outputs,),
    "stream": (_sums, _biases),
    "feed-forward": (_activations, _biases),
    "logits": (_logits, _biases),
}
