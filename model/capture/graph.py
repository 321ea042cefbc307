"""What a pass computed from what: the last operations behind each tensor that is alive."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from model.capture.lineage import born, inherited
from model.capture.node import Lineage, Node, Operation, nodes_in, version
from model.capture.operations import FOLLOWED

DEEPEST = 64  # operations that are remembered behind a tensor


class Graph:
    """The operations behind all tensors that are alive, `DEEPEST` at most behind each.

    inputs: tensors that the pass is given. own: parameters, buffers and other tensors of the module.
    """

    def __init__(self, inputs: Iterable[Tensor], own: Iterable[Tensor]) -> None:
        self._operations = WeakIdKeyDictionary()
        self._serials = count()
        for serial, tensor in enumerate(own, 1):
            lineage = Lineage(stream=frozenset({-serial}))
            self._operations[tensor] = Operation(-serial, version(tensor), lineage=lineage)
        for tensor in inputs:
            made = self._note(tensor)
            made.lineage = born(tensor, made.serial)

    def node(self, tensor: Tensor) -> Node:
        """A tensor with what is known of it; a new one came from outside."""
        known: Operation | None = self._operations.get(tensor)
        if known is None:
            known = self._note(tensor)
            known.lineage = Lineage(stream=frozenset({known.serial}))
        return Node(tensor, known)

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
        self,
        name: str,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Operation:
        """An operation with what it read, of no tensor yet."""
        arguments = tuple(self._nodes_for(one) for one in given)
        keywords = {key: self._nodes_for(one) for key, one in named.items()}
        return Operation(-1, 0, name, function, arguments, keywords)

    def add(self, call: Operation, result: Any) -> None:
        """Notes what an operation gave. What is not in `FOLLOWED` keeps its lineage, but no arguments."""
        several = isinstance(result, tuple | list)
        read = [*nodes_in((call.arguments, tuple(call.keywords.values())))]
        depth = 1 + max((node.by.depth for node in read), default=0)
        follows = call.name in FOLLOWED and depth <= DEEPEST
        for number, tensor in enumerate(result if several else (result,)):
            if not isinstance(tensor, Tensor):
                continue
            if any(tensor is node.tensor and node.is_intact for node in read):
                continue  # handed through unchanged
            made = self._note(tensor)
            by = replace(call, serial=made.serial, output=number if several else None)
            made.lineage = inherited(Node(tensor, by))
            if follows:
                made.name, made.function, made.depth = call.name, call.function, depth
                made.arguments, made.keywords, made.output = by.arguments, by.keywords, by.output

    def forget(self, tensor: Tensor) -> None:
        """Drops what is behind a tensor, except its lineage: attention was found there."""
        lineage = self.node(tensor).lineage
        self._note(tensor).lineage = lineage
