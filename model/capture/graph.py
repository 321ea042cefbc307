"""What a pass computed from what: the last operations behind each tensor, by the names of PyTorch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from torch import Tensor
from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary

from model.capture.operations import CASTS, FOLLOWED, LAYOUT

DEEPEST = 64  # operations that are remembered behind a tensor
Given: TypeAlias = tuple[Any, ...]  # the arguments of a call
Named: TypeAlias = Mapping[str, Any]


class UnreadableError(ValueError):
    """A module computes attention with steps that none of this app's stages describes."""


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
    # What a forgotten operation read, views and casts undone: its serial, and the tensor while it lives.
    reads: tuple[int, TensorWeakRef] | None = None


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
        given = [tensors_of(one) for one in self.by.arguments[1:]]
        named = {name: tensors_of(one) for name, one in self.by.keywords.items()}
        made = function(other, *given, **named)
        return made if self.by.output is None else made[self.by.output]


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


class Graph:
    """The operations behind all tensors that are alive, `DEEPEST` at most behind each."""

    def __init__(self) -> None:
        self._operations = WeakIdKeyDictionary()
        self._serials = count()

    def node(self, tensor: Tensor) -> Node:
        """A tensor with what is known of it; a new one came from outside."""
        known: Operation | None = self._operations.get(tensor)
        return Node(tensor, self._note(tensor) if known is None else known)

    def _note(self, tensor: Tensor) -> Operation:
        made = self._operations[tensor] = Operation(next(self._serials), version(tensor))
        return made

    def _nodes_for(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return self.node(argument)
        if type(argument) in (tuple, list):
            return type(argument)(self._nodes_for(one) for one in argument)
        return argument

    def call(
        self, name: str, function: Callable[..., Any], given: Given, named: Named
    ) -> Operation:
        """An operation with what it read, of no tensor yet."""
        arguments = tuple(self._nodes_for(one) for one in given)
        keywords = {key: self._nodes_for(one) for key, one in named.items()}
        return Operation(-1, 0, name, function, arguments, keywords)

    def add(self, call: Operation, result: Any) -> None:
        """Notes what an operation gave. What is not in `FOLLOWED` keeps only the number of what it read."""
        several = isinstance(result, tuple | list)
        read = [*nodes_in((call.arguments, tuple(call.keywords.values())))]
        depth = 1 + max((node.by.depth for node in read), default=0)
        follows = call.name in FOLLOWED and depth <= DEEPEST
        for number, tensor in enumerate(result if several else (result,)):
            if not isinstance(tensor, Tensor) or not read:
                continue
            if any(tensor is node.tensor and node.is_intact for node in read):
                continue  # handed through unchanged
            made = self._note(tensor)
            if follows:
                made.name, made.function, made.depth = call.name, call.function, depth
                made.arguments, made.keywords = call.arguments, call.keywords
                made.output = number if several else None
            else:
                first = origin(read[0])
                made.reads = first.serial, TensorWeakRef(first.tensor)

    def forget(self, tensor: Tensor) -> None:
        """Drops what is behind a tensor: attention was found there."""
        self._note(tensor)


def origin(node: Node) -> Node:
    """The tensor of which a node is a view or a cast."""
    while node.name in LAYOUT | CASTS:
        node = next(node.parents)
    return node


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
