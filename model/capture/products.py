"""Products of two tensors, however they are written, as letters of axes: "bhtd,bhsd->bhts"."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from model.capture.node import Node, tensors_of
from model.capture.operations import PRODUCTS

Letters = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """The sum over the axes that are not in `letters`. An axis of size 1 stretches."""

    node: Node
    operands: tuple[Node, Node]
    axes: tuple[Letters, Letters]  # of the operands
    letters: Letters  # of the result
    factor: float = 1.0
    added: Tensor | None = None  # to the product, as large as it or stretching

    def summed(self) -> Letters:
        return tuple(one for one in self.axes[0] if one in self.axes[1] and one not in self.letters)

    def only(self, side: int) -> Letters:
        """Axes of the result that one operand has and the other has not, or stretches along."""
        other = self.axes[1 - side]
        return tuple(one for one in self.letters if one in self.axes[side] and one not in other)


def product_of(node: Node) -> Product | None:
    """The product that a node is; None for any other operation."""
    if node.name not in PRODUCTS:
        return None
    if node.name == "einsum":
        return _einsum(node)
    if node.name == "baddbmm":
        first, second = node.argument(1, "batch1"), node.argument(2, "batch2")
        beta, alpha = node.argument(3, "beta", 1), node.argument(4, "alpha", 1)
        added = tensors_of(node.argument(0, "input"))
        added = None if beta == 0 else added * beta
        return _matmul(node, first, second, float(alpha), added)
    first, second = node.argument(0, "input"), _second(node)
    if node.name == "__rmatmul__":
        first, second = second, first
    return _matmul(node, first, second)


def _second(node: Node) -> Any:
    for name in ("other", "mat2"):
        if name in node.by.keywords:
            return node.by.keywords[name]
    return node.argument(1, "tensor2")


def _matmul(
    node: Node, first: Any, second: Any, factor: float = 1.0, added: Tensor | None = None
) -> Product | None:
    if not (isinstance(first, Node) and isinstance(second, Node)):
        return None
    counts = first.tensor.ndim, second.tensor.ndim
    if min(counts) < 2:
        return None
    rows = tuple(f"b{number}" for number in range(max(counts) - 2))
    one, other = (rows[len(rows) - count + 2 :] for count in counts)
    axes = (*one, "row", "inner"), (*other, "inner", "column")
    return Product(node, (first, second), axes, (*rows, "row", "column"), factor, added)


def _einsum(node: Node) -> Product | None:
    equation, *operands = node.by.arguments
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = list(operands[0])
    if not isinstance(equation, str) or len(operands) != 2:
        return None
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        right = "".join(sorted(one for one in {*left} - {",", "."} if left.count(one) == 1))
        right = f"...{right}" if "..." in left else right
    if len(terms) != 2:
        return None
    dots = [
        operand.tensor.ndim - len(term.replace("...", "")) if "..." in term else 0
        for term, operand in zip(terms, operands, strict=True)
    ]
    axes = [_spelled(term, count) for term, count in zip(terms, dots, strict=True)]
    if any(len({*one}) < len(one) for one in axes):
        return None  # a diagonal
    return Product(node, (operands[0], operands[1]), (axes[0], axes[1]), _spelled(right, max(dots)))


def _spelled(term: str, dots: int) -> Letters:
    """The letters of a term; "..." stands for so many axes, the last of them "…0"."""
    before, found, after = term.partition("...")
    middle = tuple(f"…{number}" for number in reversed(range(dots))) if found else ()
    return (*before, *middle, *after)


def arranged(tensor: Tensor, axes: Letters, wanted: Letters) -> Tensor:
    """A tensor with its axes in another order; one that it lacks has size 1."""
    tensor = tensor.permute([axes.index(one) for one in wanted if one in axes])
    for position, one in enumerate(wanted):
        if one not in axes:
            tensor = tensor.unsqueeze(position)
    return tensor


def as_vectors(tensor: Tensor, axes: Letters, rows: Letters, width: Letters) -> Tensor:
    """(*rows, width): a tensor's numbers as vectors, whose axes become one."""
    made = arranged(tensor, axes, (*rows, *width))
    return made.flatten(len(rows)) if width else made.unsqueeze(-1)
