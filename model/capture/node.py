"""Tensors of a pass, each with the operation that gave it, by the name of PyTorch, and with its lineage."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from torch import Tensor


class UnreadableError(ValueError):
    """A module computes attention with steps that none of this app's stages describes."""


class Axis(NamedTuple):
    """An axis of an earlier tensor. given: that of an input; last: the last of an input of vectors; mapped:
    since then a linear map was applied along another axis; feature: a linear map made it."""

    tensor: int
    number: int
    kind: Literal["given", "last", "mapped", "feature"]


@dataclass(frozen=True, eq=False)
class Lineage:
    """Where the cells of a tensor come from.

    marks: for each cell its index on an earlier axis, -1 for a cell that comes from elsewhere. A mark has as
    many axes as the tensor, of size 1 where it does not change.
    stream: the serial numbers of the tensors that it was made of, token by token, with no attention and no
    embedding between; those of parameters and buffers are negative.
    """

    marks: Mapping[Axis, Tensor] = field(default_factory=dict)
    stream: frozenset[int] = frozenset()

    @property
    def is_mapped(self) -> bool:
        return any(axis.kind == "mapped" for axis in self.marks)


@dataclass(eq=False)
class Operation:
    """What gave a tensor; tensors among its arguments are nodes. It does not hold the tensor itself."""

    serial: int
    version: int  # of the tensor's memory then: a higher one now means that it was overwritten
    name: str = ""  # "" for a tensor from outside, or whose past is not remembered
    function: Callable[..., Any] | None = None
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    output: int | None = None  # which of several outputs
    depth: int = 0
    lineage: Lineage = field(default_factory=Lineage)


@dataclass(frozen=True, eq=False)
class Node:
    """A tensor with the operation that gave it."""

    tensor: Tensor
    by: Operation

    @property
    def name(self) -> str:
        return self.by.name

    @property
    def serial(self) -> int:
        return self.by.serial

    @property
    def lineage(self) -> Lineage:
        return self.by.lineage

    @property
    def is_intact(self) -> bool:
        return version(self.tensor) == self.by.version

    @property
    def parents(self) -> Iterator["Node"]:
        """The tensors that the operation read."""
        return nodes_in((self.by.arguments, tuple(self.by.keywords.values())))

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument of the operation, given by position or by name."""
        if position < len(self.by.arguments):
            return self.by.arguments[position]
        return self.by.keywords.get(name, default)

    def again(self, other: Tensor) -> Tensor:
        """The operation with another tensor in the place of its first."""
        function, sizes = self.by.function, self.tensor.shape
        if function is None:
            raise ValueError("A tensor from outside was made by no operation.")
        if self.name in ("view", "view_as", "reshape", "reshape_as"):
            return other.reshape(sizes)
        if self.name == "expand_as":
            return other.expand(sizes)
        given = [_on(other, tensors_of(one)) for one in self.by.arguments[1:]]
        named = {name: _on(other, tensors_of(one)) for name, one in self.by.keywords.items()}
        made = function(other, *given, **named)
        return made if self.by.output is None else made[self.by.output]


def _on(other: Tensor, argument: Any) -> Any:
    """An argument with its tensors, which are indices, on the device of another tensor."""
    if isinstance(argument, Tensor):
        return argument.to(other.device)
    if isinstance(argument, tuple | list):
        return type(argument)(_on(other, one) for one in argument)
    return argument


def version(tensor: Tensor) -> int:
    """How often the memory of a tensor was written to; those of inference mode do not count it."""
    return 0 if tensor.is_inference() else tensor._version


def nodes_in(arguments: Any) -> Iterator[Node]:
    if isinstance(arguments, Node):
        yield arguments
    elif isinstance(arguments, tuple | list):
        for one in arguments:
            yield from nodes_in(one)


def tensors_of(argument: Any) -> Any:
    """An argument as PyTorch knows it."""
    if isinstance(argument, Node):
        return argument.tensor
    if isinstance(argument, tuple | list):
        return type(argument)(tensors_of(one) for one in argument)
    return argument


def way_back(
    node: Node, arrived: Callable[[Node], bool], through: frozenset[str]
) -> tuple[Node, ...] | None:
    """The shortest way from a node that has arrived to this one, through operations of these names;
    None where there is none."""
    ways: list[tuple[Node, ...]] = [(node,)]
    seen = {node.serial}
    for way in ways:
        if arrived(way[0]):
            return way
        if way[0].name not in through:
            continue
        for parent in way[0].parents:
            if parent.serial not in seen:
                seen.add(parent.serial)
                ways.append((parent, *way))
    return None


def require_intact(*vectors: Node) -> None:
    """Raises UnreadableError where a tensor holds other numbers than when it was used."""
    if not all(one.is_intact for one in vectors):
        raise UnreadableError("its queries, keys or values were overwritten before they were used")
