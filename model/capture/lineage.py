"""The lineage of the tensors of a pass: each with the operation that gave it, and how it follows from those
that it was made of, sums and products among them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class UnreadableError(ValueError):
    """A module computes attention with steps that none of this app's stages describes."""


class AxisOrigin(NamedTuple):
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

    marks: Mapping[AxisOrigin, Tensor] = field(default_factory=dict)
    stream: frozenset[int] = frozenset()

    @property
    def is_mapped(self) -> bool:
        return any(axis.kind == "mapped" for axis in self.marks)


@dataclass(eq=False)
class TensorOrigin:
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
    by: TensorOrigin

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
        """An argument of the operation, given by position or by name.

        Args:
            default: where it was given in neither way.
        """
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


# Move, repeat or leave out cells.
LAYOUT = frozenset({
    "T", "broadcast_to", "chunk", "contiguous", "expand", "expand_as", "flatten", "flip", "index_select",
    "__getitem__", "mT", "moveaxis", "movedim", "narrow", "permute", "repeat", "repeat_interleave", "reshape",
    "reshape_as", "roll", "select", "split", "squeeze", "swapaxes", "swapdims", "t", "tensor_split", "tile",
    "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as",
})  # fmt: skip
CASTS = frozenset({
    "alias", "bfloat16", "clone", "cpu", "cuda", "detach", "double", "float", "half", "to", "type", "type_as",
})  # fmt: skip
DROPOUTS = frozenset({
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout",
})  # fmt: skip
KEEPING = LAYOUT | CASTS | DROPOUTS
PRODUCTS = frozenset({"__matmul__", "__rmatmul__", "baddbmm", "bmm", "einsum", "matmul", "mm"})
SOFTMAX = frozenset({"_safe_softmax", "_softmax", "softmax"})
FACTORS = frozenset({"div", "divide", "mul", "multiply", "true_divide"})
TERMS = {"add": 1.0, "sub": -1.0, "subtract": -1.0}  # and their sign
MASKING = frozenset({"__setitem__", "masked_fill", "where"})
JOINING = frozenset({"cat", "concat", "concatenate"})
STACKING = frozenset({"column_stack", "dstack", "hstack", "row_stack", "stack", "vstack"})
WRITING = frozenset({"__setitem__", "copy", "index_copy", "index_put", "scatter", "slice_scatter"})
REDUCING = frozenset({"amax", "amin", "max", "mean", "median", "min", "std", "sum", "var"})
LARGER = frozenset({"max", "maximum"})
BETWEEN = KEEPING | FACTORS | MASKING | JOINING | LARGER | {*TERMS, "tanh"}  # scores and softmax
AFTER = KEEPING | MASKING | {"mul", "nan_to_num"}  # the softmax, before the values
FOLLOWED = BETWEEN | AFTER | PRODUCTS | SOFTMAX | {"amax", "exp", "sum"}


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
    """(*rows, width): a tensor's numbers as vectors.

    Args:
        axes: a letter for each axis of the tensor.
        rows: the axes that stay.
        width: those that become one, in this order; (): an axis of one number is added.
    """
    made = arranged(tensor, axes, (*rows, *width))
    return made.flatten(len(rows)) if width else made.unsqueeze(-1)


ELSEWHERE = -1  # the mark of a cell that comes from another tensor


def born(tensor: Tensor, serial: int) -> Lineage:
    """That of an input of the pass: its own axes."""
    is_wide = tensor.is_floating_point() and tensor.ndim in (2, 3)
    marks = {
        AxisOrigin(serial, axis, "last" if is_wide and axis == tensor.ndim - 1 else "given"): mark
        for axis, mark in ((axis, _index(tensor, axis)) for axis in range(tensor.ndim))
    }
    return Lineage(marks if tensor.numel() else {}, frozenset({serial}))


def axis_marks(tensor: Tensor) -> list[Tensor]:
    """For each axis of a tensor: where each cell stands on it, in the tensor's shape."""
    return [_index(tensor, axis).expand(tensor.shape) for axis in range(tensor.ndim)]


def inherited(node: Node) -> Lineage:
    """The lineage of what an operation gave; the operation still has its arguments."""
    read = [one for one in node.parents if one.tensor.ndim]
    stream = _union(read)
    if not read or not node.tensor.ndim or not node.tensor.numel():
        return Lineage(stream=stream)
    first = read[0]
    product = product_of(node)
    if product is not None:
        return _of_product(product)
    if node.name in ("scaled_dot_product_attention", "flex_attention"):
        return _of_kernel(node)
    ids = node.argument(1, "index") if node.name == "__getitem__" else node.argument(0, "input")
    looks_up = node.name == "__getitem__" and not first.lineage.marks
    if node.name == "embedding" or (looks_up and isinstance(ids, Node) and ids.lineage.marks):
        # Rows of a table.
        known = ids.lineage.marks.items()
        marks = {axis._replace(kind="mapped"): mark[..., None] for axis, mark in known}
        last = node.tensor.ndim - 1
        marks[AxisOrigin(node.serial, last, "feature")] = _index(node.tensor, last)
        return Lineage(marks, frozenset({node.serial}))
    if "linear" in node.name or "addmm" in node.name:
        return _of_map(node, node.argument(1, "mat1") if "addmm" in node.name else first, -1)
    if node.name.startswith("conv"):
        dimensions = re.search(r"\d", node.name)
        return _of_map(node, first, -1 - int(dimensions[0]) if dimensions else 1 - node.tensor.ndim)
    if node.name in JOINING | STACKING or (node.name == "__setitem__" and not first.lineage.marks):
        return Lineage(_together(node, read), stream)
    if node.name in _MOVING:
        return Lineage(_moved(node, first), first.lineage.stream)
    along = node.argument(1, "dim")
    if node.name in REDUCING and isinstance(along, int | tuple | list):
        return Lineage(_reduced(node, first, along), stream)
    sizes = [one.tensor.shape for one in read]
    if node.tensor.shape in sizes or _stretched(sizes) == node.tensor.shape:
        fitting = [one for one in read if _fits(one.tensor.shape, node.tensor.shape)]
        cells = _of_cells(node, fitting)
        return Lineage(cells.marks, stream) if node.name in WRITING else cells
    if node.tensor.shape[:-1] == first.tensor.shape[:-1]:
        return _of_map(node, first, -1)
    return Lineage(stream=stream)


_MOVING = LAYOUT - {"contiguous"} | {"pad", "view_as_complex", "view_as_real"}


def _of_cells(node: Node, read: list[Node]) -> Lineage:
    """Cell by cell: those of the first argument of the same shape, before one that stretches to it."""
    shape = node.tensor.shape
    known = [one for one in read if one.lineage.marks] or read
    best = min(known, key=lambda one: (one.tensor.shape != shape, not one.lineage.is_mapped))
    alike = [one for one in known if one.tensor.shape == shape]
    marks = {
        axis: mark[(None,) * (len(shape) - mark.ndim)] for axis, mark in best.lineage.marks.items()
    }
    return Lineage(marks, _union(alike or [best]))


def _of_map(node: Node, read: Node, feature: int) -> Lineage:
    """A linear map along one axis, or a convolution, which may number the axes behind it anew."""
    made, source, size = node.tensor, _known(read), node.tensor.shape
    kept = [_mapped(axis, mark, (feature,)) for axis, mark in source.marks.items()]
    marks = {axis: mark for axis, mark in filter(None, kept) if _fits(mark.shape, size)}
    along = feature % made.ndim
    if size[along + 1 :] != read.tensor.shape[made.ndim + feature + 1 :]:
        root = next((axis.tensor for axis in marks), node.serial)
        for other in range(along + 1, made.ndim):
            marks[AxisOrigin(root, made.ndim + other, "mapped")] = _index(made, other)
    marks[AxisOrigin(node.serial, along, "feature")] = _index(made, along)
    return Lineage(marks, source.stream)


def _of_product(product: Product) -> Lineage:
    """A map, where one operand is the module's own; else each token is mixed with others."""
    node, read = product.node, product.operands
    known = [bool(one.lineage.marks) for one in read]
    vectors = known.index(True) if any(known) else 0
    marks: dict[AxisOrigin, Tensor] = {}
    for side, operand in enumerate(read):
        if not all(known) and side != vectors:
            continue
        axes = product.axes[side]
        summed = tuple(at for at, one in enumerate(axes) if one not in product.letters)
        rest = tuple(one for one in axes if one in product.letters)
        source = operand.lineage if all(known) else _known(operand)
        for axis, mark in source.marks.items():
            if all(known):
                kept = None if any(mark.shape[one] > 1 for one in summed) else (axis, mark)
            else:
                kept = _mapped(axis, mark, summed)
            if kept is not None and kept[0] not in marks:
                laid = arranged(kept[1].squeeze(summed), rest, product.letters)
                if _fits(laid.shape, node.tensor.shape):
                    marks[kept[0]] = laid
    if all(known):
        return Lineage(marks, frozenset({node.serial}))
    for letter in product.only(1 - vectors):
        at = product.letters.index(letter)
        marks[AxisOrigin(node.serial, at, "feature")] = _index(node.tensor, at)
    return Lineage(marks, read[vectors].lineage.stream)


def _of_kernel(node: Node) -> Lineage:
    query, value = node.argument(0, "query"), node.argument(2, "value")
    marks: dict[AxisOrigin, Tensor] = {}
    for read, summed in ((query, -1), (value, -2)):
        for axis, mark in read.lineage.marks.items():
            if mark.shape[summed] == 1 and _fits(mark.shape, node.tensor.shape):
                marks.setdefault(axis, mark[(None,) * (node.tensor.ndim - mark.ndim)])
    return Lineage(marks, frozenset({node.serial}))


def _mapped(
    axis: AxisOrigin, mark: Tensor, along: Iterable[int]
) -> tuple[AxisOrigin, Tensor] | None:
    """A mark behind a linear map along some axes; None where it told features apart that are mixed now."""
    if axis.kind in ("feature", "last") and any(mark.shape[one] > 1 for one in along):
        return None
    if axis.kind == "feature":
        return axis, mark
    for one in along:
        mark = mark.amax(one, keepdim=True)
    return axis._replace(kind="mapped"), mark


def _known(read: Node) -> Lineage:
    """The lineage of what a map reads; vectors that a module holds itself are numbered here."""
    if read.lineage.marks:
        return read.lineage
    own = born(read.tensor, read.serial)
    return Lineage(own.marks, read.lineage.stream)


def _moved(node: Node, read: Node) -> dict[AxisOrigin, Tensor]:
    def again(mark: Tensor) -> Tensor:
        if node.name == "view_as_complex":
            return mark[..., 0]
        if node.name == "view_as_real":
            return mark.unsqueeze(-1).expand(node.tensor.shape)
        if node.name == "pad":
            return F.pad(mark, node.argument(1, "pad"), value=ELSEWHERE)
        return node.again(mark)

    return _replayed(read.lineage.marks, lambda axis: again(_mark_of(read, axis)))


def _reduced(node: Node, read: Node, along: Any) -> dict[AxisOrigin, Tensor]:
    """Each cell stands at the first place of those that it was made of."""
    keeps = node.tensor.ndim == read.tensor.ndim
    marks = _replayed(
        read.lineage.marks, lambda axis: _mark_of(read, axis).amin(along, keepdim=keeps)
    )
    return {axis: mark for axis, mark in marks.items() if _fits(mark.shape, node.tensor.shape)}


def _together(node: Node, read: list[Node]) -> dict[AxisOrigin, Tensor]:
    """Several tensors in one, or one written into another."""

    def again(axis: AxisOrigin) -> Tensor:
        def mark(argument: Any) -> Any:
            if isinstance(argument, Node):
                return _mark_of(argument, axis)
            if isinstance(argument, tuple | list):
                return [mark(one) for one in argument]
            return argument

        by = node.by
        if node.name == "__setitem__":
            target = mark(by.arguments[0]).clone()
            target[tensors_of(by.arguments[1])] = mark(by.arguments[2])
            return target
        named = {name: mark(one) for name, one in by.keywords.items()}
        return by.function(*map(mark, by.arguments), **named) if by.function else target

    return _replayed([axis for one in read for axis in one.lineage.marks], again)


def _mark_of(read: Node, axis: AxisOrigin) -> Tensor:
    """In the tensor's shape."""
    mark = read.lineage.marks.get(axis)
    mark = torch.tensor(ELSEWHERE, dtype=torch.int32) if mark is None else mark
    return mark.expand(read.tensor.shape)


def _replayed(
    axes: Iterable[AxisOrigin], again: Callable[[AxisOrigin], Tensor]
) -> dict[AxisOrigin, Tensor]:
    """The marks after an operation; none where it cannot be done with integers."""
    try:
        return {axis: _compressed(again(axis)) for axis in dict.fromkeys(axes)}
    except (RuntimeError, IndexError, TypeError):
        return {}


def _union(read: Iterable[Node]) -> frozenset[int]:
    return frozenset[int]().union(*(one.lineage.stream for one in read))


def _stretched(sizes: list[torch.Size]) -> torch.Size | None:
    try:
        return torch.broadcast_shapes(*sizes)
    except RuntimeError:
        return None


def _fits(shape: torch.Size, whole: torch.Size) -> bool:
    """Whether one shape stretches to another."""
    return len(shape) <= len(whole) and all(
        one in (1, other) for one, other in zip(reversed(shape), reversed(whole), strict=False)
    )


def _index(tensor: Tensor, axis: int) -> Tensor:
    sizes = [1] * tensor.ndim
    sizes[axis] = tensor.shape[axis]
    return torch.arange(tensor.shape[axis], dtype=torch.int32).view(sizes)


def _compressed(mark: Tensor) -> Tensor:
    """With size 1 along the axes on which it does not change."""
    for axis in range(mark.ndim):
        if mark.stride(axis) == 0:
            mark = mark.narrow(axis, 0, 1)
    for axis in range(mark.ndim):
        first = mark.narrow(axis, 0, 1)
        if mark.shape[axis] > 1 and bool((mark == first).all()):
            mark = first
    return mark
