"""Heads that can be compared: those of one stack that look from and at the same tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from model.nn.config import Stack
from model.nn.places import Head
from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace


@dataclass(frozen=True)
class Family:
    """The attention sub-layers of one kind in one stack, one a layer."""

    stack: Stack
    cross: bool

    @property
    def title(self) -> str:
        """In words: "Decoder self-attention"."""
        return "Cross-attention" if self.cross else f"{self.stack.title()} self-attention"

    def members(self, trace: Trace) -> tuple[Attention, ...]:
        """The sub-layers of this family in a pass, from the first layer on."""
        return tuple(one for one in trace.attention if family_of(one) == self)

    def heads(self, trace: Trace) -> tuple[Head, ...]:
        return heads_of(self.members(trace))

    def queries(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that look."""
        return trace.tokens_of(self.stack)

    def keys(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that are looked at."""
        return trace.tokens_of("encoder" if self.cross else self.stack)


def family_of(attention: Attention) -> Family:
    return Family(attention.stack, attention.kind == "cross")


def families(trace: Trace) -> tuple[Family, ...]:
    """The families of a pass: one, or three in an encoder–decoder, in order of execution."""
    return tuple(dict.fromkeys(family_of(attention) for attention in trace.attention))


def heads_of(members: Iterable[Attention]) -> tuple[Head, ...]:
    """Every head of some sub-layers, in order."""
    return tuple((one.name, head) for one in members for head in range(one.heads))


def head_weights(members: Iterable[Attention]) -> Iterator[Array]:
    """(query, key): the weights of every head of some sub-layers, one at a time."""
    return (one.weights(head) for one in members for head in range(one.heads))
