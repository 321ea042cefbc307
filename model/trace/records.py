"""What one sub-layer of a pass left behind, the tokens that it read, and the check of its attention.

Arrays are numpy, float32, on the CPU and read-only. Axes are named beside each field:
head, query, key, token, d_k (width of a head), d_model, d_mlp.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from model.nn.activations import Activation
from model.nn.config import AS_IN_GPT2, Projection, Stack
from model.nn.intervention import WeightSet
from model.nn.norms import NORMS, NormKind, NormLaw
from model.nn.places import Kind, Place, within
from model.nn.stages import CAP, SCORE_STAGES
from model.system import deadline
from model.system.border import at_border
from model.trace.arrays import Array, BoolArray, read_only, softmax
from model.trace.lazy import shapes_of, with_lazy_fields

if TYPE_CHECKING:
    import pandas as pd


def probabilities(
    masked: Array, sink: float | None, cells: Collection[tuple[int, int, float]]
) -> Array:
    """(query, key): the softmax of masked scores; with a sink, what it takes in one more column. cells:
    query, key and weight of those set by hand."""
    if sink is not None:
        masked = np.concatenate([masked, np.full((len(masked), 1), sink, np.float32)], 1)
    weights = softmax(masked)
    for query in {cell[0] for cell in cells}:
        given = {key: weight for at, key, weight in cells if at == query}
        weights[query] = _row_set(weights[query], given)
    return weights


def _row_set(row: Array, given: dict[int, float]) -> Array:
    """(key,): a row in which these weights are set by hand; the others share what is left to 1."""
    free = ~np.isin(np.arange(len(row)), list(given))
    left, others = max(1 - sum(given.values()), 0.0), row[free].sum()
    changed = np.where(free & (others > 0), row * left / max(others, np.finfo(np.float32).tiny), 0)
    changed[list(given)] = list(given.values())
    return changed.astype(np.float32)


@with_lazy_fields
@dataclass(frozen=True, eq=False)
class ExpertsRecord:
    """The router of one feed-forward (Shazeer et al. 2017). Experts count from 0."""

    name: str  # decoder.3.feed_forward
    logits: Array  # (token, expert)
    weights: Array  # (token, k): what the outputs of the chosen experts are multiplied by
    chosen: NDArray[np.int64]  # (token, k)

    def __repr__(self) -> str:
        tokens, experts = self.logits.shape
        return f"<ExpertsRecord {self.name}: {tokens} tokens × {experts} experts>"

    @property
    def shares(self) -> Array:
        """(token, expert): the weight of each expert; 0 for one that does not read the token."""
        shares = np.zeros_like(self.logits)
        np.put_along_axis(shares, self.chosen, self.weights, -1)
        return read_only(shares)


BLOCK = 128  # queries
_STEPS = ("scores", *(stage.name for stage in SCORE_STAGES), "masked", "weights", "sink_weights")


def largest(gaps: Iterable[float]) -> float:
    """The largest of several gaps; not a number where one of them is none: that is no gap of zero, as
    Python's own `max` may have it."""
    return float(np.max([0.0, *gaps]))


def largest_gap(
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    *,
    scale: float,
    mask: BoolArray | None,
    look_ahead: bool,
    mask_value: float,
    cap: float | None = None,
    bias: Array | None = None,
    sink: float | None = None,
) -> float:
    """Largest |softmax(q · kᵀ · scale, capped, biased, masked) · v − output| of one head. A row whose every
    key is masked by minus infinity is zero.

    Args:
        query: (T, d_k).
        key: (S, d_k).
        value: (S, d_v).
        output: (T, d_v), as recorded.
        mask: (T, S), True = may look; None: nothing is hidden.
        look_ahead: whether a look-ahead mask stands in the place of `mask`.
        mask_value: of a hidden score.
        cap: of the scaled scores; None: none.
        bias: (T or 1, S), added to them.
        sink: the logit of the softmax's one more column; None: it has none.
    """
    gaps = []
    for start in range(0, len(query), BLOCK):
        deadline.look()
        rows = slice(start, min(start + BLOCK, len(query)))
        keys = slice(0, len(key))
        if math.isinf(mask_value) and mask_value < 0:
            keys = _seen_by(rows, mask, look_ahead, len(key))
        scores = query[rows] @ key[keys].T
        scores *= np.float32(scale)
        if cap is not None:
            scores = CAP.numbers(scores, cap)
        if bias is not None:
            scores += bias[rows if len(bias) > 1 else slice(None), keys]
        if look_ahead:
            later = np.arange(keys.start, keys.stop) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, np.float32(mask_value), where=later)
        elif mask is not None:
            np.copyto(scores, np.float32(mask_value), where=~mask[rows, keys])
        gap = np.abs(_context(scores, value[keys], sink) - output[rows])
        gaps.append(float(gap.max(initial=0.0)))
    return largest(gaps)


def gaps_of_steps(steps: Mapping[str, Array], derived: object, head: int) -> Iterator[float]:
    """The largest difference of each step of an explicit pass from the one that the vectors give, as a
    share of its largest number where that is above 1. Dropout is drawn by chance: no vectors give it.

    derived: the same record without steps.
    """
    for name in _STEPS:
        if name in steps:
            yield _share_apart(steps[name][head], getattr(derived, name)(head))


def _share_apart(recorded: Array, derived: Array) -> float:
    """Largest |recorded − derived|, as a share of the largest derived number where that is above 1.
    Equal infinities are no difference."""
    unequal = recorded != derived
    finite = np.abs(derived[np.isfinite(derived)])
    apart = np.abs(recorded[unequal] - derived[unequal]).max(initial=0.0)
    return float(apart / finite.max(initial=1.0))


def _seen_by(rows: slice, mask: BoolArray | None, look_ahead: bool, keys: int) -> slice:
    """From the first to the last key that some query of a block may look at: the others have no weight."""
    if look_ahead:
        return slice(0, min(rows.stop, keys))
    seen = np.arange(keys) if mask is None else np.flatnonzero(mask[rows].any(0))
    return slice(0, keys) if not seen.size else slice(int(seen[0]), int(seen[-1]) + 1)


def _context(masked: Array, value: Array, sink: float | None) -> Array:
    """softmax(masked, and a sink) · value; `masked` is overwritten."""
    least = -math.inf if sink is None else sink
    top = masked.max(-1, keepdims=True, initial=least)
    masked -= np.where(np.isneginf(top), 0, top)
    np.exp(masked, out=masked)
    sums = masked.sum(-1, keepdims=True)
    if sink is not None:
        sums += np.exp(np.float32(sink) - top)
    context: Array = np.divide(masked @ value, np.where(sums == 0, 1, sums), dtype=np.float32)
    return context


@dataclass(frozen=True)
class Token:
    """One token as it was fed. `raw` is its bytes, from a tokenizer that works on bytes. Bytes that are
    a part of a character are spelled out in `text`: ‹E4BD›.

    `span`: where its letters stand in the text, from the first to after the last, for both halves of a
    character. None where it is unknown, or where nothing was typed.

    >>> token = trace.tokens[1]
    >>> token.text, token.raw, token.span
    (' Hill', b' Hill', (3, 8))
    """

    id: int
    text: str
    raw: bytes = b""
    special: bool = False  # added by the model's tokenizer, not typed
    span: tuple[int, int] | None = field(default=None, compare=False)


@with_lazy_fields
@dataclass(frozen=True, eq=False)
class Attention:
    """One attention sub-layer of one pass. Row = query, column = key, rows of weights sum to 1, or to
    what a sink leaves of it.

    Stages: scores → scaled → capped → biased → masked → weights. Where the model has no cap and no bias,
    those two equal the stage before.
    Scores, weights and context are derived from the recorded vectors when asked; after an explicit
    pass they are what the model itself computed. Heads count from 0.

    >>> a = trace.find("decoder.1.self")
    >>> a.name, a.kind, a.stack, a.layer, a.module, a.sizes
    ('decoder.1.self', 'causal', 'decoder', 1, '', (8, 13, 13))
    >>> a.query.shape, a.key.shape, a.value.shape
    ((8, 13, 32), (8, 13, 32), (8, 13, 32))
    >>> a.mask is not None and a.mask_of(7) is not None and a.mask.shape
    (13, 13)
    >>> stages = a.scores(7), a.scaled(7), a.capped(7), a.biased(7), a.masked(7), a.weights(7)
    >>> [round(float(stage[12, 1]), 2) for stage in stages]
    [42.52, 7.52, 7.52, 7.52, 7.52, 0.89]
    >>> a.bias_of(7), a.sink_of(7), float(a.sink_weights(7).sum()), a.drops, a.at_query(12)
    (None, None, 0.0, False, None)
    >>> a.weights().shape, a.dropped(7).shape, a.context(7).shape
    ((8, 13, 13), (13, 13), (13, 32))
    >>> a.check() < 1e-4
    True
    """

    place: Place
    heads: int
    scale: float  # the factor applied to the scores
    mask_value: float  # what a masked score became
    output: Array  # (head, query, d_v), before any ablation
    ablated: tuple[int, ...]  # heads whose output was then zeroed
    vectors: tuple[Array, Array, Array]  # query, key, value as recorded: grouped heads kept once
    own_mask: BoolArray | None  # (query, key) or (head, query, key)
    look_ahead: bool
    steps: Mapping[str, Array]  # of an explicit pass, (head, query, key)
    projection: Projection = AS_IN_GPT2
    weights_set: tuple[WeightSet, ...] = ()  # the other weights of a row share what is left to 1
    cap: float | None = None  # scaled scores were capped to ± this
    bias: Array | None = None  # (head or 1, query or 1, key): added to the capped scores
    sinks: Array | None = None  # (head,): logits of the softmax's one more column
    window: int | None = None  # keys that the model's own sliding window lets a query read
    doubt: str = ""  # what is not certain of attention seen in somebody's own module, in a sentence

    def __repr__(self) -> str:
        heads, queries, keys = self.sizes
        return f"<Attention {self.module or self.name}: {self.kind}, {heads} heads, {queries} × {keys}>"

    @property
    def name(self) -> str:
        """decoder.3.self"""
        return self.place.name

    @property
    def module(self) -> str:
        """The name of somebody's own module that computed it; "" in a model of this app."""
        return self.place.module

    @property
    def kind(self) -> Kind:
        """ "self", "causal" or "cross"."""
        return self.place.kind

    @property
    def stack(self) -> Stack:
        """ "encoder" or "decoder"."""
        return self.place.stack

    @property
    def layer(self) -> int:
        """Counted from 0 in its stack."""
        return cast(int, self.place.layer)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many heads, queries and keys."""
        query, key, _ = shapes_of(self, "vectors")
        return self.heads, query[1], key[1]

    @property
    def query(self) -> Array:
        """(head, query token, d_k), as used: after rotary positions."""
        return self.vectors[0]

    @property
    def key(self) -> Array:
        """(head, key token, d_k), as used; grouped keys repeated for every head."""
        return self._repeated(self.vectors[1])

    @property
    def value(self) -> Array:
        """(head, key token, d_v); grouped values repeated for every head."""
        return self._repeated(self.vectors[2])

    @property
    def longest(self) -> tuple[Array, Array]:
        """(head,) each: the length of the longest query and of the longest key of each head.

        >>> attention = model.trace("The cat sat").find("decoder.1.self")
        >>> [len(lengths) for lengths in attention.longest]
        [8, 8]
        """
        queries, keys = (np.linalg.norm(one, axis=-1).max(-1) for one in self.vectors[:2])
        return queries, np.repeat(keys, self.heads // len(keys))

    @property
    def mask(self) -> BoolArray | None:
        """(query, key), True = may look; (head, query, key) where heads have masks of their own.
        None only where every query may look at every key."""
        if self.look_ahead:
            return read_only(np.tri(*self.sizes[1:], dtype=bool))
        return self.own_mask

    def mask_of(self, head: int) -> BoolArray | None:
        """(query, key): the mask of one head, where each may have its own."""
        mask, head = self.mask, self._head(head)
        return mask if mask is None or mask.ndim == 2 else mask[head]

    def at_query(self, query: int) -> "Attention | None":
        """This sub-layer for one query, where its vectors lie in another process; None: they are here."""
        return None

    def _head(self, head: object) -> int:
        """A head's number from 0. Raises ValueError for one that is not there."""
        return within(head, self.heads, f"{self.module or self.name} has heads")

    def scores(self, head: int) -> Array:
        """(query, key): query · key."""
        head = self._head(head)
        if "scores" in self.steps:
            return self.steps["scores"][head]
        return read_only(self.query[head] @ self._of(1, head).T)

    def scaled(self, head: int) -> Array:
        """(query, key): score · scale."""
        return read_only(self.scores(head) * np.float32(self.scale))

    def capped(self, head: int) -> Array:
        """(query, key): cap · tanh(scaled / cap)."""
        head = self._head(head)
        if "capped" in self.steps:
            return self.steps["capped"][head]
        scaled = self.scaled(head)
        return scaled if self.cap is None else read_only(CAP.numbers(scaled, self.cap))

    def bias_of(self, head: int) -> Array | None:
        """(query or 1, key): what is added to the capped scores of one head."""
        head = self._head(head)
        return None if self.bias is None else self.bias[head if len(self.bias) > 1 else 0]

    def biased(self, head: int) -> Array:
        """(query, key): capped scores plus the bias."""
        head = self._head(head)
        if "biased" in self.steps:
            return self.steps["biased"][head]
        scores, bias = self.capped(head), self.bias_of(head)
        return scores if bias is None else read_only(scores + bias)

    def masked(self, head: int) -> Array:
        """(query, key): biased scores, with the mask value where the mask forbids to look."""
        head = self._head(head)
        if "masked" in self.steps:
            return self.steps["masked"][head]
        biased, mask = self.biased(head), self.mask_of(head)
        if mask is None:
            return biased
        return read_only(np.where(mask, biased, np.float32(self.mask_value)))

    def weights(self, head: int | None = None) -> Array:
        """(query, key): how much each query looks at each key. Rows sum to 1, less what a sink takes, before
        any dropout; a row that is masked by minus infinity alone is zero. Those set by hand are as set.
        Without a head: those of all heads, (head, query, key), derived at each call."""
        if head is None:
            return read_only(np.stack([self.weights(one) for one in range(self.heads)]))
        head = self._head(head)
        if "weights" in self.steps:
            return self.steps["weights"][head]
        return read_only(self._probabilities(head)[:, : self.sizes[2]])

    def to_dataframe(self) -> "pd.DataFrame":
        """One row for each cell of each head: layer (the sub-layer's name), head, query and key (positions
        from 0), and weight, 0 to 1; 0 where the mask forbids to look. `Trace.to_dataframe` also names the
        tokens.

        ```python
        trace.find("decoder.1.self").to_dataframe().query("head == 7").nlargest(5, "weight")
        ```
        """
        import pandas as pd  # takes a second to import

        head, query, key = (axis.ravel() for axis in np.indices(self.sizes))
        numbers = {"head": head, "query": query, "key": key, "weight": self.weights().ravel()}
        return pd.DataFrame({"layer": self.name, **numbers})

    @at_border
    def to_xarray(self, queries: Collection[Token] = (), keys: Collection[Token] = ()) -> Any:
        """The weights of all heads with the axes head, query and key, named after the sub-layer.

        queries, keys: the tokens that look and those looked at, which become coordinates (`Trace.to_xarray`
        gives them). Raises ImportError where xarray is not installed.

        ```python
        trace.find("decoder.1.self").to_xarray().sel(head=7).max("key")
        ```
        """
        try:
            made = import_module("xarray").DataArray
        except ModuleNotFoundError as error:
            raise ImportError(
                "to_xarray needs the package xarray, which is not installed: `pip install xarray`. "
                "to_dataframe gives the same numbers without it.",
                name="xarray",
            ) from error
        tokens = {"query": queries, "key": keys}
        coordinates = {
            f"{axis}_token": (axis, [token.text for token in some])
            for axis, some in tokens.items()
            if some
        }
        axes = ("head", "query", "key")
        return made(self.weights(), dims=axes, coords=coordinates, name=self.name)

    def sink_weights(self, head: int) -> Array:
        """(query,): the weight that the head's sink takes of each row; zero without one."""
        head = self._head(head)
        if "sink_weights" in self.steps:
            return self.steps["sink_weights"][head]
        queries = np.zeros(self.sizes[1], np.float32)
        return read_only(queries if self.sinks is None else self._probabilities(head)[:, -1])

    def _probabilities(self, head: int) -> Array:
        """(query, key): the weights; with a sink, what it takes in one more column."""
        cells = [cell[1:] for cell in self.weights_set if cell[0] == head]
        return probabilities(self.masked(head), self.sink_of(head), cells)

    def sink_of(self, head: int) -> float | None:
        """The logit of one head's sink."""
        head = self._head(head)
        return None if self.sinks is None else float(self.sinks[head])

    def dropped(self, head: int) -> Array:
        """(query, key): the weights after dropout, as applied to the values."""
        head = self._head(head)
        return self.steps["dropped"][head] if "dropped" in self.steps else self.weights(head)

    @property
    def drops(self) -> bool:
        """Whether dropout changed the weights of this pass."""
        return "dropped" in self.steps and not np.array_equal(self.dropped(0), self.weights(0))

    def context(self, head: int) -> Array:
        """(query, d_v): weights · value, recomputed; `output` is what the model computed itself."""
        head = self._head(head)
        return read_only(self.dropped(head) @ self._of(2, head))

    def check(self) -> float:
        """Largest |weights · value - recorded output|; after an explicit pass also the largest difference of
        its steps from what the vectors give."""
        return largest(self._gap(head) for head in range(self.heads))

    def _gap(self, head: int) -> float:
        if self.steps or any(cell[0] == head for cell in self.weights_set):
            written = float(np.abs(self.context(head) - self.output[head]).max())
            return largest((written, *gaps_of_steps(self.steps, replace(self, steps={}), head)))
        return largest_gap(
            self.query[head],
            self._of(1, head),
            self._of(2, head),
            self.output[head],
            scale=self.scale,
            mask=None if self.look_ahead else self.mask_of(head),
            look_ahead=self.look_ahead,
            mask_value=self.mask_value,
            cap=self.cap,
            bias=self.bias_of(head),
            sink=self.sink_of(head),
        )

    def _of(self, which: int, head: int) -> Array:
        """One head's key (1) or value (2), without repeating the groups."""
        return self.vectors[which][head * len(self.vectors[which]) // self.heads]

    def _repeated(self, grouped: Array) -> Array:
        groups = self.heads // grouped.shape[0]
        return grouped if groups == 1 else read_only(np.repeat(grouped, groups, axis=0))


@with_lazy_fields
@dataclass(frozen=True, eq=False)
class NormRecord:
    """One norm of one pass, per token. The statistics are the kernel's own: biased, epsilon inside
    the root. An RMS norm subtracts no mean: `mean` is 0 and `variance` the mean square.

    >>> norm = trace.norms[0]
    >>> norm.name, norm.kind, norm.law.name
    ('decoder.0.self.norm', 'layer', 'layer norm')
    >>> norm.variance.shape, norm.normalized.shape, norm.output.shape
    ((13,), (13, 256), (13, 256))
    >>> mean, inverse_deviation = norm.recomputed()
    >>> np.allclose(mean[:, 0], norm.mean, atol=1e-5), norm.check() < 1e-4
    (True, True)
    """

    name: str
    kind: NormKind
    input: Array  # (token, d_model)
    mean: Array  # (token,)
    inverse_deviation: Array  # (token,): 1/sqrt(variance + epsilon)
    epsilon: float
    gamma: Array  # (d_model,)
    beta: Array  # (d_model,): zero for an RMS norm
    recorded: Array | None  # (token, d_model): the model's own output, kept at record="full"

    def __repr__(self) -> str:
        tokens, width = self.input.shape
        return f"<NormRecord {self.name}: {self.kind} norm, {tokens} tokens × {width}>"

    @property
    def law(self) -> NormLaw:
        """What a norm of this kind does."""
        return NORMS[self.kind]

    @property
    def variance(self) -> Array:
        """(token,): biased variance of the input, or its mean square for an RMS norm."""
        variance = 1 / self.inverse_deviation.astype(np.float64) ** 2 - self.epsilon
        return read_only(np.maximum(variance, 0.0))  # rounding can leave a flat row below zero

    @property
    def normalized(self) -> Array:
        """(token, d_model): (input - mean) / sqrt(variance + epsilon)."""
        return read_only((self.input - self.mean[:, None]) * self.inverse_deviation[:, None])

    @property
    def output(self) -> Array:
        """(token, d_model): normalized · gamma + beta."""
        if self.recorded is not None:
            return self.recorded
        return read_only(self.normalized * self.gamma + self.beta)

    def check(self) -> float:
        """Largest difference between the recorded statistics (and output, if kept) and those
        recomputed from the input, in units of the normalized values."""
        mean, inverse_deviation = self.recomputed()
        normalized = (self.input - mean) * inverse_deviation
        worst = float(np.abs(normalized - self.normalized).max())
        if self.recorded is None:
            return worst
        gap = np.abs(normalized * self.gamma + self.beta - self.recorded)
        return largest((worst, float(gap.max())))

    def recomputed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and 1/sqrt(variance + epsilon) of the input, (token, 1) each, in float64."""
        x = self.input.astype(np.float64)
        mean, size = self.law.statistics(x)
        return mean, 1 / np.sqrt(size + self.epsilon)


@with_lazy_fields
@dataclass(frozen=True, eq=False)
class FeedForwardRecord:
    """The hidden layer of one feed-forward.

    >>> record = model.trace("Tom Hill", record="full").feed_forward[0]
    >>> record.name, record.before.shape, record.hidden.shape
    ('decoder.0.feed_forward', (2, 1024), (2, 1024))
    """

    name: str  # decoder.3.feed_forward
    before: Array  # (token, d_mlp): before the activation (the gate's map, where there is a gate)
    kept: Array | None  # (token, d_mlp): after it; None where `activation` gives it
    activation: Activation | None = None

    def __repr__(self) -> str:
        tokens, width = self.before.shape
        return f"<FeedForwardRecord {self.name}: {tokens} tokens × {width}>"

    @property
    def hidden(self) -> Array:
        """(token, d_mlp): after the activation, as the second map reads it. Without a gate it is
        recomputed by the model's own function: keeping it would double the memory of a long text."""
        if self.kept is not None:
            return self.kept
        if self.activation is None:
            raise ValueError(f"{self.name} has neither hidden values nor an activation.")
        import torch  # takes seconds to import: pages are drawn first

        from model.nn.layers import ACTIVATIONS

        with torch.inference_mode():
            return read_only(ACTIVATIONS[self.activation](torch.tensor(self.before)).numpy())
