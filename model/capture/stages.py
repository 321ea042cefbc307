"""What happens between the product of queries and keys and the softmax: the stages of attention."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from model.capture.node import Node, UnreadableError, tensors_of
from model.capture.operations import FACTORS, JOINING, LARGER, LAYOUT, MASKING, TERMS
from model.trace.given import MASKED_BELOW


@dataclass
class Stages:
    """The stages so far, for scores laid out as at one point of the pass. Tensors broadcast to them."""

    shape: torch.Size
    scale: float = 1.0
    outer: float = 1.0  # the factor behind a tanh
    cap: bool = False
    rows: Tensor | None = None  # a factor for each row: it belongs to the queries
    forbidden: Tensor | None = None
    fills: list[float] = field(default_factory=list)  # what forbidden scores became
    added: Tensor | None = None
    sinks: Tensor | None = None  # the score of one more column, for each row
    marks: dict[str, Tensor] = field(default_factory=dict)  # where each score comes from

    def pass_through(self, node: Node, main: Node) -> None:
        """Takes one operation into account. main: the argument that holds the scores."""
        name = node.name
        if name in LAYOUT:
            self._move(node)
        elif name in FACTORS:
            self._multiply(node, main)
        elif name in TERMS:
            self._add(node, main)
        elif name in MASKING:
            self._mask(node, main)
        elif name == "tanh":
            self._cap()
        elif name in JOINING:
            self._join(node, main)
        elif name in LARGER:  # XGLM: masked scores go no lower than the type's least number
            least = scalar(_other(node, main))
            if least is None or least > MASKED_BELOW:
                raise UnreadableError("its scores are raised to a least number")
        self._arrive(node)

    def follow(self, node: Node) -> None:
        """Takes only the order of the axes into account: of weights, after the softmax."""
        if node.name in LAYOUT:
            self._move(node)
        self._arrive(node)

    def _arrive(self, node: Node) -> None:
        self.shape = node.tensor.shape  # broadcasting may have given more axes
        self.marks = {name: mark.expand(self.shape) for name, mark in self.marks.items()}

    def _move(self, node: Node) -> None:
        for name in ("rows", "forbidden", "added", "sinks"):
            tensor = getattr(self, name)
            if tensor is not None:
                setattr(self, name, node.again(tensor.expand(self.shape)))
        self.marks = {name: node.again(mark) for name, mark in self.marks.items()}

    def _multiply(self, node: Node, main: Node) -> None:
        other = _other(node, main)
        factor = scalar(other)
        divides = "div" in node.name
        if divides and node.argument(0, "input") is not main:
            raise UnreadableError("a number is divided by its scores")
        if factor is None:
            if self.cap or self.added is not None or self.forbidden is not None:
                raise UnreadableError("its scores are multiplied after something was added to them")
            tensor = tensors_of(other).float()
            if bool(
                ((tensor == 0) | (tensor == 1)).all()
            ):  # GPT's first code: w * b - 1e4 * (1 - b)
                self.forbid(tensor == 0, 0.0)
                return
            if tensor.ndim and tensor.shape[-1] != 1:
                raise UnreadableError("each of its scores is multiplied by a number of its own")
            tensor = 1 / tensor if divides else tensor
            self.rows = tensor if self.rows is None else self.rows * tensor
            return
        factor = 1 / factor if divides else factor
        if self.cap:
            self.outer *= factor
        else:
            self.scale *= factor
        self.added = None if self.added is None else self.added * factor
        self.sinks = None if self.sinks is None else self.sinks * factor
        self.fills = [fill * factor for fill in self.fills]

    def _add(self, node: Node, main: Node) -> None:
        other, sign = _other(node, main), TERMS[node.name]
        sign *= float(node.by.keywords.get("alpha", 1))
        if node.argument(0, "input") is not main and sign < 0:
            raise UnreadableError("its scores are subtracted from something")
        number = scalar(other)
        if number is not None:
            return  # the same for all keys: no weight changes
        tensor = tensors_of(other)
        if isinstance(other, Node) and not other.is_intact:
            raise UnreadableError("what it adds to its scores was overwritten")
        self.add(tensor.float() * sign)

    def add(self, tensor: Tensor) -> None:
        """Adds numbers to the scores. Very negative ones are a mask."""
        if tensor.shape[-1:] == (1,) and self.shape[-1] > 1:
            return  # one number for a whole row, such as its maximum: no weight changes
        hidden = tensor <= MASKED_BELOW
        if hidden.any():
            self.forbid(hidden, float(tensor[hidden].max()))
            tensor = tensor.masked_fill(hidden, 0.0)
        if tensor.any():
            self.added = tensor if self.added is None else self.added + tensor

    def _mask(self, node: Node, main: Node) -> None:
        if node.name == "where":
            condition, kept = node.argument(0, "condition"), node.argument(1, "input")
            if condition is main or tensors_of(condition).dtype is not torch.bool:
                condition, kept = kept, condition  # as a tensor's method
            keeps = kept is main
            other = node.argument(2, "other") if keeps else kept
            hidden = tensors_of(condition).bool()
            self.forbid(~hidden if keeps else hidden, _one_number(other))
            return
        place, value = node.argument(1, "mask"), node.argument(2, "value")
        if node.name == "masked_fill":
            self.forbid(tensors_of(place).bool(), _one_number(value))
            return
        added = _added_in_place(value, main)
        cells = torch.zeros(self.shape, device=node.tensor.device)
        cells[tensors_of(place)] = 1.0 if added is None else added
        if added is None:
            self.forbid(cells.bool(), _one_number(value))
        else:
            self.add(cells)

    def _join(self, node: Node, main: Node) -> None:
        """One more column joins the softmax: a sink (gpt-oss)."""
        parts, axis = node.argument(0, "tensors"), node.argument(1, "dim", 0)
        others = [one for one in parts if one is not main]
        column = [*self.shape[:-1], 1]
        if (
            len(parts) != 2
            or axis not in (-1, len(column) - 1)
            or [*others[0].tensor.shape] != column
        ):
            raise UnreadableError("its scores are joined with others")
        self.sinks = others[0].tensor.float()

        def joined(cells: Tensor, more: Tensor) -> Tensor:
            return torch.cat([cells, more] if parts[0] is main else [more, cells], -1)

        for name in ("forbidden", "added"):
            cells = getattr(self, name)
            if cells is not None:
                cells = cells.expand(self.shape)
                setattr(self, name, joined(cells, torch.zeros_like(cells[..., :1])))
        self.marks = {name: joined(mark, mark[..., :1]) for name, mark in self.marks.items()}

    def forbid(self, hidden: Tensor, fill: float) -> None:
        self.forbidden = hidden if self.forbidden is None else self.forbidden | hidden
        self.fills.append(fill)

    def _cap(self) -> None:
        if self.cap or self.added is not None or self.forbidden is not None:
            raise UnreadableError("its scores go through a tanh after something was added to them")
        self.cap = True


def _added_in_place(value: Any, main: Node) -> Tensor | None:
    """What `scores[place] += numbers` added."""
    if not (isinstance(value, Node) and value.name in TERMS):
        return None
    part, number = value.argument(0, "input"), tensors_of(value.argument(1, "other"))
    if not (isinstance(part, Node) and part.name == "__getitem__" and isinstance(number, Tensor)):
        return None
    return number.float() * TERMS[value.name] if next(part.parents).tensor is main.tensor else None


def _other(node: Node, main: Node) -> Any:
    """The argument of an operation of two that does not hold the scores."""
    first, second = node.argument(0, "input"), node.argument(1, "other")
    if first is second:
        raise UnreadableError("its scores meet themselves")
    return second if first is main else first


def scalar(argument: Any) -> float | None:
    """A number, or the one number of a tensor; None for a tensor of more."""
    tensor = tensors_of(argument)
    if isinstance(tensor, Tensor):
        return float(tensor) if tensor.numel() == 1 else None
    return float(tensor)


def _one_number(argument: Any) -> float:
    number = scalar(argument)
    if number is not None:
        return number
    values = tensors_of(argument).float()
    if values.numel() and bool((values == values.flatten()[0]).all()):
        return float(values.flatten()[0])
    return -math.inf if bool((values <= MASKED_BELOW).all()) else _unequal()


def _unequal() -> float:
    raise UnreadableError("its masked scores become different numbers")
