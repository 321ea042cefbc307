"""Attention that a module writes by hand: softmax(queries · keys) · values, however it is spelled."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from model.capture.batches import comes_from_elsewhere, rows_of
from model.capture.lineage import axis_marks
from model.capture.node import Node, UnreadableError, require_intact, way_back
from model.capture.operations import AFTER, BETWEEN, FACTORS, LAYOUT, PRODUCTS, SOFTMAX
from model.capture.products import Letters, Product, arranged, as_vectors, product_of
from model.capture.seen import Seen
from model.capture.stages import Stages, scalar

SECOND_PRODUCT = "A second product was added to its scores: it is kept as a bias."
WEIGHED = "Its values were made of attention weights: it may be a step of something else."
OWN_FACTORS = "Its heads or rows have factors of their own: they are shown as part of the queries."


def by_hand(node: Node) -> Seen | None:
    """What was seen of softmax(queries · keys) · values, where a product is its last step; None for any other
    product. Raises UnreadableError for one with steps that no stage stands for."""
    written = written_by_hand(node)
    return None if written is None else written.seen()


def written_by_hand(node: Node) -> "WrittenByHand | None":
    """The steps of such attention. Raises UnreadableError as `by_hand` does."""
    product = product_of(node)
    if product is None:
        return None
    for side in (0, 1):
        way = way_back(product.operands[side], is_softmax, AFTER)
        if way is not None:
            return WrittenByHand(product, side, way)
    return None


def is_softmax(node: Node) -> bool:
    return softmax_input(node) is not None


def softmax_input(node: Node) -> tuple[Node, int] | None:
    """The scores of a softmax, and its axis. exp(x) / exp(x).sum() is one too."""
    if node.name in SOFTMAX:
        scores = node.argument(0, "input")
        axis = node.argument(1, "dim")
        if axis is None:  # PyTorch's old choice
            axis = 0 if scores.tensor.ndim in (0, 1, 3) else 1
        return scores, axis
    if node.name not in ("div", "true_divide", "divide"):
        return None
    above, below = node.argument(0, "input"), node.argument(1, "other")
    if not (isinstance(above, Node) and above.name == "exp" and isinstance(below, Node)):
        return None
    while below.name in LAYOUT or below.name == "add":
        below = next(below.parents)
    axis = below.argument(1, "dim") if below.name == "sum" else None
    axis = axis[0] if isinstance(axis, tuple | list) and len(axis) == 1 else axis
    scores = above.argument(0, "input")
    summed = next(below.parents, None)
    if not isinstance(axis, int) or summed is None:
        return None
    same = summed is above or (summed.name == "exp" and next(summed.parents) is scores)
    return (scores, axis) if same else None


class WrittenByHand:
    """Attention whose steps a module takes itself.

    weights: the way from the softmax to the product with the values, whose operand `side` they are.
    """

    def __init__(self, product: Product, side: int, weights: tuple[Node, ...]) -> None:
        self.product, self.side, self.weights = product, side, weights
        found = softmax_input(weights[0])
        if found is None:
            raise UnreadableError("its weights come from no softmax")
        scores, self.axis = found
        way = way_back(scores, lambda node: product_of(node) is not None, BETWEEN)
        if way is None:
            raise UnreadableError("its softmax does not read a product of queries and keys")
        self.way = way
        made = product_of(way[0])
        if made is None:
            raise UnreadableError("its softmax does not read a product of queries and keys")
        self.scores = made
        self.key_side = 1  # which operand of the scores the keys are
        self.factors = 1.0, 1.0  # that were multiplied into the queries and the keys

    def seen(self) -> Seen:
        stages, keys = self._stages()
        side = int(keys in self.scores.axes[1])
        query, key = self.scores.operands[1 - side], self.scores.operands[side]
        value = self.product.operands[1 - self.side]
        require_intact(query, key, value)
        queries = self.scores.only(1 - side)
        if not queries:
            raise UnreadableError("its queries have no axis of their own")
        rows = self._weight_rows(stages, queries[-1], keys)
        batch = tuple(one for one in self.scores.letters if one not in (queries[-1], keys))
        at = [arranged(stages.marks[one], self.axes, rows)[..., 0, 0].flatten() for one in batch]
        sizes = dict(zip(self.scores.letters, self.scores.node.tensor.shape, strict=True))

        def vectors(tensor: Tensor, operand: int, token: str) -> Tensor:
            laid = as_vectors(
                tensor, self.scores.axes[operand], (*batch, token), self.scores.summed()
            )
            whole = laid.expand(*(sizes[one] for one in batch), *laid.shape[-2:])
            return whole[tuple(at)] if at else whole[None]

        (q, factor), (k, other) = unscaled(query), unscaled(key)
        self.key_side, self.factors = side, (factor, other)
        leading = self._leading(rows)
        origin = rows_of(query, lambda x: vectors(x, 1 - side, queries[-1]), leading)
        cells = torch.Size((leading.numel(), *(self.sizes[one] for one in rows[-2:])))
        q = vectors(q, 1 - side, queries[-1]).float()
        if stages.rows is not None:
            q = q * self._laid(stages.rows, stages, rows, cells)[..., :1]
        scale = stages.scale * factor * other
        return Seen(
            query=q,
            key=vectors(k, side, keys),
            value=self._values(rows),
            output=self._output(rows),
            weights=self._laid(self.weights[-1].tensor, stages, rows, cells),
            scale=scale * stages.outer if stages.cap else scale,
            cap=stages.outer if stages.cap else None,
            forbidden=self._laid(stages.forbidden, stages, rows, cells),
            fills=tuple(stages.fills),
            added=self._laid(stages.added, stages, rows, cells),
            sinks=None
            if stages.sinks is None
            else self._laid(stages.sinks, stages, rows, cells)[..., 0],
            rows=origin,
            crosses=comes_from_elsewhere(query, key, equally_many=cells[1] == cells[2]),
            doubts=(
                *filter(None, (origin.doubt, OWN_FACTORS if stages.rows is not None else "")),
                *self._doubts(),
            ),
        )

    def _stages(self) -> tuple[Stages, str]:
        """What happens to the scores on their way to the values, and the letter of their keys."""
        start = self.scores.node.tensor
        stages = Stages(start.shape, self.scores.factor)
        if self.scores.added is not None:
            stages.add(self.scores.added.float().expand(start.shape))
        stages.marks = dict(zip(self.scores.letters, axis_marks(start), strict=True))
        for before, node in pairwise(self.way):
            stages.pass_through(node, before)
        own = (*self.scores.only(0), *self.scores.only(1))
        found = [one for one in own if _varies(stages.marks[one], self.axis)]
        if stages.shape[self.axis] == 1:
            found = [*self.scores.only(1)][-1:]
        if len(found) != 1:
            raise UnreadableError("its softmax does not run over the keys of a query")
        for node in self.weights[1:]:
            stages.follow(node)
        return stages, found[0]

    def _weight_rows(self, stages: Stages, queries: str, keys: str) -> Letters:
        """The axes of the weights in the product with the values: rows, then queries, then keys."""
        self.axes = self.product.axes[self.side]
        self.sizes = dict(zip(self.axes, stages.shape, strict=True))
        summed = self.product.summed()
        if len(summed) != 1:
            raise UnreadableError("its weights and values meet along several axes")
        at = self.axes.index(summed[0])
        if stages.shape[at] > 1 and not _varies(stages.marks[keys], at):
            raise UnreadableError(
                "its weights are summed along another axis than its keys, as where heads mix their weights"
            )
        places = [axis for axis in range(len(self.axes)) if axis != at]
        along = [axis for axis in places if _varies(stages.marks[queries], axis)]
        along = along or [axis for axis in places if stages.shape[axis] == 1][-1:]
        if len(along) != 1:
            raise UnreadableError("its queries share an axis with something else")
        token = self.axes[along[0]]
        if token in self.product.axes[1 - self.side]:
            raise UnreadableError("each of its queries has values of its own")
        return (*(one for one in self.axes if one not in (token, summed[0])), token, summed[0])

    def _leading(self, rows: Letters) -> torch.Size:
        return torch.Size(self.sizes[one] for one in rows[:-2])

    def _width(self) -> Letters:
        """The axes of the values that the weights do not have."""
        return tuple(one for one in self.product.axes[1 - self.side] if one not in self.axes)

    def _values(self, rows: Letters) -> Tensor:
        value, axes = self.product.operands[1 - self.side].tensor, self.product.axes[1 - self.side]
        laid = as_vectors(value, axes, (*rows[:-2], rows[-1]), self._width())
        return laid.expand(*self._leading(rows), *laid.shape[-2:]).reshape(-1, *laid.shape[-2:])

    def _output(self, rows: Letters) -> Tensor:
        written = self.product.node.tensor
        if {*self.product.letters} != {*rows[:-1], *self._width()}:
            raise UnreadableError("its heads are summed with the values")
        laid = as_vectors(written, self.product.letters, rows[:-1], self._width())
        return laid.reshape(-1, *laid.shape[-2:])

    def _laid(self, cells: Tensor | None, stages: Stages, rows: Letters, sizes: torch.Size) -> Any:
        """(N, T, S): cells that are laid out, or stretch, like the weights."""
        if cells is None:
            return None
        return arranged(cells.expand(stages.shape), self.axes, rows).reshape(sizes)

    def _doubts(self) -> Iterator[str]:
        value = self.product.operands[1 - self.side]
        if way_back(value, is_softmax, AFTER | BETWEEN | PRODUCTS) is not None:
            yield WEIGHED
        for before, node in pairwise(self.way):
            if node.name in ("add", "sub") and any(
                way_back(one, lambda other: product_of(other) is not None, BETWEEN)
                for one in node.parents
                if one is not before
            ):
                yield SECOND_PRODUCT


def unscaled(node: Node) -> tuple[Tensor, float]:
    """Queries or keys before numbers were multiplied into them, and the factor."""
    if node.name not in LAYOUT | FACTORS or not node.is_intact:
        return node.tensor, 1.0
    first = next(node.parents)
    if not first.is_intact or node.by.arguments[0] is not first:
        return node.tensor, 1.0
    if node.name in LAYOUT:
        tensor, factor = unscaled(first)
        return (node.tensor, 1.0) if factor == 1.0 else (node.again(tensor), factor)
    number = scalar(node.argument(1, "other"))
    if number is None or number == 0.0:
        return node.tensor, 1.0
    tensor, factor = unscaled(first)
    return tensor, factor * (1 / number if "div" in node.name else number)


def _varies(mark: Tensor, axis: int) -> bool:
    """Whether cells change along an axis."""
    if mark.shape[axis] < 2:
        return False
    first, second, last = (mark.select(axis, at) for at in (0, 1, -1))
    return bool((first != second).any() or (first != last).any())
