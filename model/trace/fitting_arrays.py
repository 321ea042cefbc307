"""Which arrays a description asks for, of what shape and with what numbers. Nothing is read here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.nn.config import Stack
from model.trace.array_file import Stored
from model.trace.description import LARGEST, AttentionEntry, Description

VECTORS = ("query", "key", "value")
NORM_ARRAYS = ("input", "mean", "inverse_deviation", "gamma", "beta")
EXPERT_ARRAYS = ("logits", "weights", "chosen")
# What numbers an array may hold. "lowered": also minus infinity, and what stands for it in single precision.
Numbers = Literal["any", "finite", "lowered", "positive", "counts"]
_LOWERED_STEPS = ("biased", "masked")
_STEPS = ("scores", "capped", "biased", "masked", "weights", "dropped")


@dataclass(frozen=True)
class DivisorOf:
    """Any size that divides a number: heads share keys in groups."""

    number: int


# A size, the name of one that is the same elsewhere, one of several, or a divisor.
Axis = int | str | tuple[int, ...] | DivisorOf


class Wanted:
    """Takes arrays out of those that a file has. `numbers` says what each of them may hold."""

    def __init__(self, stored: Mapping[str, Stored], same: Mapping[str, str]) -> None:
        self.numbers: dict[str, set[Numbers]] = {}
        self._stored, self._same = stored, same
        self._left = {*stored, *same}
        self._sizes: dict[str, int] = {}
        if any(name in stored or other not in stored for name, other in same.items()):
            raise ValueError("it lists an array that is the same as none")

    def has(self, name: str) -> bool:
        return name in self._stored or name in self._same

    def take(self, name: str, kind: str, *axes: Axis, numbers: Numbers = "finite") -> None:
        """Raises ValueError where the array is missing, or has another kind or shape."""
        if not self.has(name):
            raise ValueError(f"the array {name} is missing")
        at = self._same.get(name, name)
        stored = self._stored[at]
        if stored.kind != kind:
            raise ValueError(f"the array {name} holds other numbers than {kind}")
        if len(stored.shape) != len(axes) or not all(map(self._fits, stored.shape, axes)):
            raise ValueError(f"the array {name} has the shape {stored.shape}, which does not fit")
        self._left.discard(name)
        self.numbers.setdefault(at, set()).add(numbers)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._stored[self._same.get(name, name)].shape

    def refuse_others(self) -> None:
        """Raises ValueError for arrays that nothing has asked for."""
        if self._left:
            raise ValueError(f"it has an array that no trace has: {min(self._left)}")

    def _fits(self, size: int, axis: Axis) -> bool:
        if isinstance(axis, str):
            return size == self._sizes.setdefault(axis, size)
        if isinstance(axis, DivisorOf):
            return axis.number % size == 0
        return size in axis if isinstance(axis, tuple) else size == axis


def fitted(said: Description, stored: Mapping[str, Stored]) -> Wanted:
    """The arrays of a description. Raises ValueError, in a clause, where those of a file are others."""
    wanted = Wanted(stored, said.same)
    for stack, count in said.states.items():
        tokens = _tokens(said, stack)
        for number in range(count):
            wanted.take(f"states/{stack}/{number}", "F32", tokens, "d_model")
    for stack, parts in said.summands.items():
        tokens = _tokens(said, stack)
        for part in parts:
            wanted.take(f"summands/{stack}/{part}", "F32", (1, tokens), "d_model")
    if wanted.has("angles"):
        wanted.take("angles", "F32", tuple(map(said.tokens_of, said.stacks)), "turned pairs")
    for entry in said.attention:
        _attention(wanted, said, entry)
    _require_readers(wanted, said)
    _sub_layers(wanted, said)
    _logits(wanted, said)
    wanted.refuse_others()
    return wanted


def holds(array: NDArray[Any], numbers: Numbers) -> bool:
    """Whether an array holds only such numbers."""
    match numbers:
        case "finite":
            return bool((np.abs(array) <= LARGEST).all())  # false for what is no number
        case "lowered":
            return bool((array <= LARGEST).all())
        case "positive":
            return bool(((array > 0) & (array <= LARGEST)).all())
        case "counts":
            return bool((array >= 0).all())
    return True


def _tokens(said: Description, stack: Stack) -> int:
    if stack not in said.stacks:
        raise ValueError(f"it has states of the {stack}, which did not run")
    return said.tokens_of(stack)


def _attention(wanted: Wanted, said: Description, entry: AttentionEntry) -> None:
    place, heads = f"attention/{entry.name}", entry.heads
    queries: Axis = said.tokens_of(entry.stack)
    keys: Axis = said.tokens_of("encoder" if entry.kind == "cross" else entry.stack)
    if not (said.states or said.config):  # of attention alone: it may read others than the text
        queries, keys = f"queries of {place}", f"keys of {place}"
    groups = DivisorOf(heads)
    d_k, d_v = f"d_k of {place}", f"d_v of {place}"
    wanted.take(f"{place}/query", "F32", heads, queries, d_k)
    wanted.take(f"{place}/key", "F32", groups, keys, d_k)
    wanted.take(f"{place}/value", "F32", groups, keys, d_v)
    wanted.take(f"{place}/output", "F32", heads, queries, d_v)
    _weights_set(wanted, entry)
    if wanted.has(mask := f"{place}/mask"):
        each: tuple[Axis, ...] = () if len(wanted.shape(mask)) == 2 else (heads,)
        wanted.take(mask, "BOOL", *each, queries, keys, numbers="any")
    if wanted.has(bias := f"{place}/bias"):
        rows: Axis = 1 if wanted.shape(bias)[1:2] == (1,) else queries
        wanted.take(bias, "F32", (1, heads), rows, keys, numbers="lowered")
    if wanted.has(sinks := f"{place}/sinks"):
        wanted.take(sinks, "F32", heads)
    for step in entry.steps:
        if step == "sink_weights":
            wanted.take(f"{place}/steps/{step}", "F32", heads, queries)
        elif step in _STEPS:
            numbers: Numbers = "lowered" if step in _LOWERED_STEPS else "finite"
            wanted.take(f"{place}/steps/{step}", "F32", heads, queries, keys, numbers=numbers)
        else:
            raise ValueError(f"{entry.name} has a step of an unknown kind")


def _weights_set(wanted: Wanted, entry: AttentionEntry) -> None:
    heads, queries, _ = wanted.shape(f"attention/{entry.name}/query")
    keys = wanted.shape(f"attention/{entry.name}/key")[1]
    for head, query, key, _ in entry.weights_set:
        if head >= heads or query >= queries or key >= keys:
            raise ValueError(f"{entry.name} has no such weight as was set by hand")


def _require_readers(wanted: Wanted, said: Description) -> None:
    """Raises ValueError for tokens that no attention reads: pages draw every one of them."""
    read = {
        wanted.shape(f"attention/{entry.name}/{vectors}")[1]
        for entry in said.attention
        for vectors in ("query", "key")
    }
    if any(len(tokens) not in read for tokens in (said.tokens, said.target_tokens) if tokens):
        raise ValueError("it has more or fewer tokens than its attention reads")


def _sub_layers(wanted: Wanted, said: Description) -> None:
    """Norms and feed-forwards. Their names were checked with the description."""
    for norm in said.norms:
        place, width = f"norms/{norm.name}", f"width of {norm.name}"
        tokens = _tokens(said, _stack(norm.name))
        wanted.take(f"{place}/input", "F32", tokens, width)
        wanted.take(f"{place}/mean", "F32", tokens)
        wanted.take(f"{place}/inverse_deviation", "F32", tokens, numbers="positive")
        for name in ("gamma", "beta"):
            wanted.take(f"{place}/{name}", "F32", width)
        if wanted.has(output := f"{place}/output"):
            wanted.take(output, "F32", tokens, width)
    for name in said.feed_forward:
        for array in ("before", "hidden"):
            wanted.take(
                f"feed_forward/{name}/{array}",
                "F32",
                _tokens(said, _stack(name)),
                f"d_mlp of {name}",
            )
    for name in said.experts:
        place, tokens = f"experts/{name}", _tokens(said, _stack(name))
        wanted.take(f"{place}/logits", "F32", tokens, f"experts of {name}", numbers="lowered")
        wanted.take(f"{place}/weights", "F32", tokens, f"chosen of {name}")
        wanted.take(f"{place}/chosen", "I64", tokens, f"chosen of {name}", numbers="counts")
    for name in said.written:
        wanted.take(f"written/{name}", "F32", _tokens(said, _stack(name)), "d_model")


def _logits(wanted: Wanted, said: Description) -> None:
    if not wanted.has("logits"):
        return  # an array of a vocabulary is then one too many
    tokens = _tokens(said, said.stacks[-1])
    wanted.take("logits", "F32", tokens, "vocabulary", numbers="lowered")
    if wanted.has("vocabulary/ends"):
        wanted.take("vocabulary/text", "U8", "letters", numbers="any")
        wanted.take("vocabulary/ends", "I64", "named tokens", numbers="counts")
        wanted.take("vocabulary/special", "BOOL", "named tokens", numbers="any")
        if wanted.shape("vocabulary/ends") > wanted.shape("logits")[1:]:
            raise ValueError("it names more tokens than it has logits of")


def _stack(name: str) -> Stack:
    return "encoder" if name.startswith("encoder") else "decoder"
