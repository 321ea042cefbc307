"""What one forward pass left behind. Every view reads this and nothing else.

Arrays are numpy, float32, on the CPU and read-only. Axes are named beside each field:
head, query, key, token, d_k (width of a head), d_model, vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.config import AS_IN_GPT2, Activation, NormKind, Projection, Stack
from model.intervention import Intervention
from model.recomputed import largest_gap

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Token:
    """One token as it was fed. `raw` is its bytes where the tokenizer works on bytes; where they are a
    part of a character, `text` writes them out: ‹E4BD›.

    `span` is where its letters stand in the text, from the first to after the last: two halves of
    one character have the same. None where that is not known, or for what was not typed.
    """

    id: int
    text: str
    raw: bytes = b""
    special: bool = False  # added by the model's tokenizer, not typed
    span: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention sub-layer of one pass. Row = query, column = key, rows of weights sum to 1.

    Scores, weights and context are derived from the recorded vectors when asked; after an explicit
    pass they are what the model itself computed. Heads count from 0.
    """

    name: str  # decoder.3.self
    kind: Literal["self", "causal", "cross"]
    stack: Stack
    layer: int
    heads: int
    scale: float  # the factor applied to the scores
    fill: float  # what a masked score became
    output: Array  # (head, query, d_v), before any ablation
    ablated: tuple[int, ...]  # heads whose output was then zeroed
    vectors: tuple[Array, Array, Array]  # query, key, value as recorded: grouped heads kept once
    own_mask: Mask | None  # (query, key) or (head, query, key)
    look_ahead: bool
    steps: Mapping[str, Array]  # of an explicit pass, (head, query, key)
    projection: Projection = AS_IN_GPT2

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
    def mask(self) -> Mask | None:
        """(query, key), True = may look; (head, query, key) where heads have masks of their own.
        None only where every query may look at every key."""
        if self.look_ahead:
            queries, keys = self.vectors[0].shape[1], self.vectors[1].shape[1]
            return read_only(np.tri(queries, keys, dtype=bool))
        return self.own_mask

    def mask_of(self, head: int) -> Mask | None:
        """(query, key): the mask of one head, where each may have its own."""
        mask = self.mask
        return mask if mask is None or mask.ndim == 2 else mask[head]

    def scores(self, head: int) -> Array:
        """(query, key): query · key."""
        if "scores" in self.steps:
            return self.steps["scores"][head]
        return read_only(self.query[head] @ self._of(1, head).T)

    def scaled(self, head: int) -> Array:
        """(query, key): score · scale."""
        return read_only(self.scores(head) * np.float32(self.scale))

    def masked(self, head: int) -> Array:
        """(query, key): scaled scores, with the fill where the mask forbids to look."""
        if "masked" in self.steps:
            return self.steps["masked"][head]
        scaled, mask = self.scaled(head), self.mask_of(head)
        return scaled if mask is None else read_only(np.where(mask, scaled, np.float32(self.fill)))

    def weights(self, head: int) -> Array:
        """(query, key): how much each query looks at each key. Rows sum to 1, before any dropout;
        a row whose every key is masked by minus infinity is zero."""
        if "weights" in self.steps:
            return self.steps["weights"][head]
        return read_only(softmax(self.masked(head)))

    def dropped(self, head: int) -> Array:
        """(query, key): the weights after dropout, as applied to the values."""
        return self.steps["dropped"][head] if "dropped" in self.steps else self.weights(head)

    def context(self, head: int) -> Array:
        """(query, d_v): weights · value. The recorded `output` is what the model made of the
        same."""
        return read_only(self.dropped(head) @ self._of(2, head))

    def check(self) -> float:
        """Largest |weights · value - recorded output| over heads, queries and dimensions."""
        return max(self._gap(head) for head in range(self.heads))

    def _gap(self, head: int) -> float:
        if self.steps:
            return float(np.abs(self.context(head) - self.output[head]).max())
        return largest_gap(
            self.query[head],
            self._of(1, head),
            self._of(2, head),
            self.output[head],
            scale=self.scale,
            mask=None if self.look_ahead else self.mask_of(head),
            look_ahead=self.look_ahead,
            fill=self.fill,
        )

    def _of(self, which: int, head: int) -> Array:
        """One head's key (1) or value (2), without repeating the groups."""
        grouped = self.vectors[which]
        return grouped[head * grouped.shape[0] // self.heads]

    def _repeated(self, grouped: Array) -> Array:
        groups = self.heads // grouped.shape[0]
        return grouped if groups == 1 else read_only(np.repeat(grouped, groups, axis=0))


@dataclass(frozen=True, eq=False)
class NormRecord:
    """One norm of one pass, per token. The statistics are the kernel's own: biased, epsilon inside
    the root. An RMS norm subtracts no mean: `mean` is 0 and `variance` the mean square."""

    name: str
    kind: NormKind
    input: Array  # (token, d_model)
    mean: Array  # (token,)
    inverse_deviation: Array  # (token,): 1/sqrt(variance + epsilon)
    epsilon: float
    gamma: Array  # (d_model,)
    beta: Array  # (d_model,): zero for an RMS norm
    recorded: Array | None  # (token, d_model): the model's own output, kept at record="full"

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
        recomputed from the input in float64, in units of the normalized values."""
        x = self.input.astype(np.float64)
        mean = x.mean(-1) if self.kind == "layer" else np.zeros(len(x))
        variance = ((x - mean[:, None]) ** 2).mean(-1)
        normalized = (x - mean[:, None]) / np.sqrt(variance + self.epsilon)[:, None]
        worst = float(np.abs(normalized - self.normalized).max())
        if self.recorded is None:
            return worst
        expected = normalized * self.gamma + self.beta
        return max(worst, float(np.abs(expected - self.recorded).max()))


@dataclass(frozen=True, eq=False)
class FeedForwardRecord:
    """The hidden layer of one feed-forward."""

    name: str  # decoder.3.feed_forward
    before: Array  # (token, d_ff): before the activation (the gate's map, where there is a gate)
    kept: Array | None  # (token, d_ff): after it, where a gate or another library had a share in it
    activation: Activation | None = None  # what gives the rest

    @property
    def hidden(self) -> Array:
        """(token, d_ff): after the activation, as the outer map reads it. Without a gate it is not
        kept, for it doubles what a long text takes: the model's own function gives it again."""
        from model.activations import activated  # which reads records itself

        if self.kept is not None:
            return self.kept
        if self.activation is None:
            raise ValueError(f"{self.name} has neither hidden values nor an activation.")
        return activated(self.activation, self.before)


class Logits:
    """The logits of one pass, (token, vocabulary): after one token, or all.

    Those of a long text are made when they are asked for, and then kept: at 1,024 tokens of GPT-2
    they take a third of the pass and 206 MB, and few views read more than one row.
    """

    def __init__(self, shape: tuple[int, int], make: Callable[[slice], Array]) -> None:
        self.shape = shape
        self._make = make

    @classmethod
    def of(cls, recorded: Array) -> "Logits":
        """Those that a pass ended with. Raises ValueError for anything but (token, vocabulary)."""
        tokens, vocabulary = recorded.shape
        return cls((tokens, vocabulary), lambda rows: recorded[rows])

    @property
    def vocabulary(self) -> int:
        return self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, whether they are made yet or not."""
        return 4 * self.shape[0] * self.shape[1]

    def after(self, position: int) -> Array:
        """(vocabulary,): what is predicted after the token at a position; -1 is the last one.
        Raises IndexError for a position outside the text."""
        at = range(self.shape[0])[position]
        return self.rows(at, at + 1)[0]

    def rows(self, first: int, end: int) -> Array:
        """(end - first, vocabulary): what is predicted after the tokens from `first` to before `end`."""
        are_made = "all" in vars(self)
        return self.all[first:end] if are_made else self._make(slice(first, end))

    @cached_property
    def all(self) -> Array:
        """(token, vocabulary)"""
        return self._make(slice(None))


class LateArrays(Mapping[str, Array]):
    """Arrays by name, each made when it is read, and not kept."""

    def __init__(self, make: Mapping[str, Callable[[], Array]]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> Array:
        return self._make[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)


@dataclass(frozen=True, eq=False)
class Trace:
    """One pass of one model over one text. Holds no model and no tokenizer; safe to share.

    Of a long text it holds the model's own tables, for logits and summands asked for later.
    """

    model: str
    text: str
    intervention: Intervention
    tokens: tuple[Token, ...]  # exactly the ids fed, special tokens included
    target_tokens: tuple[Token, ...]  # exactly the decoder's input ids; () without a second stack
    attention: tuple[Attention, ...]  # in order of execution
    norms: tuple[NormRecord, ...]
    states: Mapping[Stack, tuple[Array, ...]]  # the residual stream, (token, d_model) each
    summands: Mapping[Stack, Mapping[str, Array]]  # what the embedding added up, (token, d_model)
    angles: Array | None  # (token, d_k/2): rotary positions
    feed_forward: tuple[FeedForwardRecord, ...]
    prediction: Logits | None  # None for an encoder without a head
    device: str = (
        ""  # that the pass ran on: "the CPU", "CUDA (NVIDIA H100)"; "" where nobody noted it
    )

    @property
    def logits(self) -> Array | None:
        """(token, vocabulary): all of `prediction`, made now if they are not yet; None for an encoder
        without a head."""
        return None if self.prediction is None else self.prediction.all

    @property
    def source(self) -> Stack:
        """The stack that read the text."""
        return "encoder" if "encoder" in self.states else "decoder"

    @property
    def embeddings(self) -> Array:
        """(token, d_model): the token vectors of the text, before positions."""
        return self.summands[self.source]["tokens"]

    @property
    def positions(self) -> Array | None:
        """(token, d_model) as added, or the rotary angles (token, d_k/2); None without
        positions."""
        return self.summands[self.source].get("positions", self.angles)

    @property
    def streams(self) -> dict[Stack, Array]:
        """(state, token, d_model) by stack: before, between and after the sub-layers. A copy is
        made at each reading; `states` hands out single states without one."""
        return {stack: read_only(np.stack(states)) for stack, states in self.states.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of the recorded arrays, each counted once, and of logits that may still be made."""
        arrays = [array for states in self.states.values() for array in states]
        kept = [parts for parts in self.summands.values() if not isinstance(parts, LateArrays)]
        arrays += [array for parts in kept for array in parts.values()]
        for attention in self.attention:
            arrays += [*attention.vectors, attention.output, *attention.steps.values()]
        arrays += [norm.input for norm in self.norms]
        arrays += [norm.recorded for norm in self.norms if norm.recorded is not None]
        for record in self.feed_forward:
            arrays += [record.before] if record.kept is None else [record.before, record.kept]
        addresses = {array.__array_interface__["data"][0]: array.nbytes for array in arrays}
        return sum(addresses.values()) + (self.prediction.nbytes if self.prediction else 0)

    def tokens_of(self, stack: Stack) -> tuple[Token, ...]:
        """The tokens that a stack reads."""
        return self.target_tokens if self.target_tokens and stack == "decoder" else self.tokens

    def queries_of(self, attention: Attention) -> tuple[Token, ...]:
        """The tokens that look, in one of this trace's attention sub-layers."""
        return self.tokens_of(attention.stack)

    def keys_of(self, attention: Attention) -> tuple[Token, ...]:
        """The tokens looked at, in one of this trace's attention sub-layers."""
        return self.tokens_of("encoder" if attention.kind == "cross" else attention.stack)

    def find(self, name: str) -> Attention:
        """The attention sub-layer of this name. Raises ValueError if the pass has none."""
        for attention in self.attention:
            if attention.name == name:
                return attention
        names = ", ".join(attention.name for attention in self.attention)
        raise ValueError(f"There is no attention sub-layer {name!r}; there are {names}.")

    def check(self) -> float:
        """Largest |recomputed - recorded| over attention outputs and norms. Computed once."""
        return self._check

    @property
    def is_checked(self) -> bool:
        """Whether `check` has its answer already."""
        return "_check" in vars(self)

    @cached_property
    def _check(self) -> float:
        records: tuple[Attention | NormRecord, ...] = (*self.attention, *self.norms)
        return max(record.check() for record in records)


def softmax(masked: Array) -> Array:
    """Softmax over the last axis, with rows of nothing but minus infinity left at zero."""
    top = masked.max(-1, keepdims=True)
    exponentials = np.exp(masked - np.where(np.isneginf(top), 0, top))
    sums = exponentials.sum(-1, keepdims=True)
    return (exponentials / np.where(sums == 0, 1, sums)).astype(np.float32)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Closes an array for writing; floats of other widths become float32."""
    if array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    array.flags.writeable = False
    return array
