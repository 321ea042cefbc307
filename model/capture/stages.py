"""How calls of attention are found in a pass: fused kernels, attention written by hand, and the stages
between the product of queries and keys and the softmax."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from model.capture.lineage import (
    AFTER,
    BETWEEN,
    FACTORS,
    JOINING,
    LARGER,
    LAYOUT,
    MASKING,
    PRODUCTS,
    SOFTMAX,
    TERMS,
    Letters,
    Node,
    Product,
    UnreadableError,
    arranged,
    as_vectors,
    axis_marks,
    product_of,
    require_intact,
    tensors_of,
    way_back,
)
from model.capture.record import Seen, comes_from_elsewhere, reads_cache, rows_of
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
        laid = self._output(rows)
        return Seen(
            query=q,
            key=vectors(k, side, keys),
            value=self._values(rows),
            output=laid.reshape(-1, *laid.shape[-2:]),
            laid=laid,
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
            has_cache=reads_cache(query, key),
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
        return as_vectors(written, self.product.letters, rows[:-1], self._width())

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


FLEX = "flex_attention"
KERNELS = frozenset({"scaled_dot_product_attention", FLEX})
BY_SIZE = "Its `score_mod` changes each score by its size: the change is kept as a bias."


def by_kernel(call: Node) -> Seen:
    """A call of one of `KERNELS`."""
    query, key, value = (
        call.argument(number, name) for number, name in enumerate(("query", "key", "value"))
    )
    require_intact(query, key, value)
    q, k, v = query.tensor, key.tensor, value.tensor
    if call.by.keywords.get("enable_gqa") or call.name == FLEX:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    cells = torch.Size((*leading, q.shape[-2], k.shape[-2]))
    stages, doubt = Stages(cells), ""
    mask = tensors_of(call.argument(3, "attn_mask"))
    if call.name == FLEX:
        doubt = _flexed(stages, call, q, k, v)
    elif call.argument(5, "is_causal", False):
        stages.forbid(torch.ones(cells[-2:], dtype=torch.bool).triu(1).to(q.device), -math.inf)
    elif mask is not None and mask.dtype is torch.bool:
        stages.forbid(~mask, -math.inf)
    elif mask is not None:
        stages.add(mask.float())
    scale = call.argument(5 if call.name == FLEX else 6, "scale")

    def rows(tensor: Tensor) -> Tensor:
        return tensor.expand(*leading, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])

    origin = rows_of(query, rows, leading)
    return Seen(
        query=rows(q),
        key=rows(k),
        value=rows(v),
        output=rows(call.tensor),
        laid=call.tensor,
        weights=None,
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        cap=None,
        forbidden=_cells(stages.forbidden, cells),
        fills=tuple(stages.fills),
        added=_cells(stages.added, cells),
        sinks=None,
        rows=origin,
        crosses=comes_from_elsewhere(query, key, equally_many=cells[-2] == cells[-1]),
        has_cache=reads_cache(query, key),
        doubts=(*filter(None, (origin.doubt, doubt)),),
    )


def _flexed(stages: Stages, call: Node, query: Tensor, key: Tensor, value: Tensor) -> str:
    """What `flex_attention` masks and adds, by its own functions; and what is not certain about that."""
    from torch._higher_order_ops.flex_attention import _math_attention_inner  # not public

    score_mod, block_mask, scale, options, *buffers = tensors_of(call.by.arguments[3:])

    def change(asking: Tensor) -> Tensor:
        given = score_mod, block_mask, scale, options, *buffers
        scores, changed = _math_attention_inner(asking, key, value, *given)
        return changed - scores

    added = change(query)
    hidden = added == -math.inf
    if hidden.any():
        stages.forbid(hidden, -math.inf)
    if bool((added != 0).any()):
        stages.add(added.masked_fill(hidden, 0.0))
    by_place = change(torch.zeros_like(query))
    return "" if torch.allclose(added, by_place, rtol=1e-4, atol=1e-4) else BY_SIZE


def _cells(tensor: Tensor | None, sizes: torch.Size) -> Tensor | None:
    """(N, T, S), or (1, T, S) where all rows have the same."""
    if tensor is None:
        return None
    if tensor.ndim <= 2 or tensor.shape[:-2].numel() == 1:
        return tensor.reshape(-1, *tensor.shape[-2:]).expand(1, *sizes[-2:])
    return tensor.expand(sizes).reshape(-1, *sizes[-2:])
