"""Heads that can be compared: those of one stack that look from and at the same tokens."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from model.nn.config import Stack
from model.nn.places import Head
from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace

Sizes = tuple[int, int, int]  # heads, queries and keys of a layer


@dataclass(frozen=True)
class Family:
    """The attention sub-layers of one kind in one stack, one a layer."""

    stack: Stack
    cross: bool
    # Where they differ from layer to layer, as in somebody's own modules.
    sizes: Sizes | None = None

    @property
    def title(self) -> str:
        """In words: "Decoder self-attention"."""
        title = "Cross-attention" if self.cross else f"{self.stack.title()} self-attention"
        if self.sizes is None:
            return title
        heads, queries, keys = self.sizes
        return f"{title}, {heads} head{'s' * (heads > 1)}, {queries} × {keys} tokens"

    def members(self, trace: Trace) -> tuple[Attention, ...]:
        """The sub-layers of this family in a pass, from the first layer on."""
        return tuple(
            one
            for one in trace.attention
            if _kind(one) == (self.stack, self.cross) and self.sizes in (None, one.sizes)
        )

    def heads(self, trace: Trace) -> tuple[Head, ...]:
        return heads_of(self.members(trace))

    def queries(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that look."""
        return trace.queries_of(self.members(trace)[0])

    def keys(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that are looked at."""
        return trace.keys_of(self.members(trace)[0])


def family_of(trace: Trace, attention: Attention) -> Family:
    """The family of one of a pass's sub-layers."""
    return _family(attention, _uneven(trace))


def families(trace: Trace) -> tuple[Family, ...]:
    """The families of a pass: one, or three in an encoder–decoder, in order of execution."""
    uneven = _uneven(trace)
    return tuple(dict.fromkeys(_family(attention, uneven) for attention in trace.attention))


def _family(attention: Attention, uneven: Container[tuple[Stack, bool]]) -> Family:
    kind = _kind(attention)
    return Family(*kind, attention.sizes if kind in uneven else None)


def _uneven(trace: Trace) -> set[tuple[Stack, bool]]:
    """The kinds of which a pass has layers of several sizes."""
    first: dict[tuple[Stack, bool], Sizes] = {}
    pairs = [(_kind(one), one.sizes) for one in trace.attention]
    return {kind for kind, sizes in pairs if first.setdefault(kind, sizes) != sizes}


def _kind(attention: Attention) -> tuple[Stack, bool]:
    return attention.stack, attention.kind == "cross"


def heads_of(members: Iterable[Attention]) -> tuple[Head, ...]:
    """Every head of some sub-layers, in order."""
    return tuple((one.name, head) for one in members for head in range(one.heads))


def head_weights(members: Iterable[Attention]) -> Iterator[Array]:
    """(query, key): the weights of every head of some sub-layers, one at a time."""
    return (one.weights(head) for one in members for head in range(one.heads))
