"""How the lineage of a tensor follows from those of the tensors that it was made of."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from model.capture.node import Axis, Lineage, Node, tensors_of
from model.capture.operations import JOINING, LAYOUT, REDUCING, STACKING, WRITING
from model.capture.products import Product, arranged, product_of

ELSEWHERE = -1  # the mark of a cell that comes from another tensor


def born(tensor: Tensor, serial: int) -> Lineage:
    """That of an input of the pass: its own axes."""
    is_wide = tensor.is_floating_point() and tensor.ndim in (2, 3)
    marks = {
        Axis(serial, axis, "last" if is_wide and axis == tensor.ndim - 1 else "given"): mark
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
        return _of_embedding(node, ids)
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
            marks[Axis(root, made.ndim + other, "mapped")] = _index(made, other)
    marks[Axis(node.serial, along, "feature")] = _index(made, along)
    return Lineage(marks, source.stream)


def _of_embedding(node: Node, ids: Node) -> Lineage:
    """Rows of a table."""
    known = ids.lineage.marks.items()
    marks = {axis._replace(kind="mapped"): mark[..., None] for axis, mark in known}
    last = node.tensor.ndim - 1
    marks[Axis(node.serial, last, "feature")] = _index(node.tensor, last)
    return Lineage(marks, frozenset({node.serial}))


def _of_product(product: Product) -> Lineage:
    """A map, where one operand is the module's own; else each token is mixed with others."""
    node, read = product.node, product.operands
    known = [bool(one.lineage.marks) for one in read]
    vectors = known.index(True) if any(known) else 0
    marks: dict[Axis, Tensor] = {}
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
        marks[Axis(node.serial, at, "feature")] = _index(node.tensor, at)
    return Lineage(marks, read[vectors].lineage.stream)


def _of_kernel(node: Node) -> Lineage:
    query, value = node.argument(0, "query"), node.argument(2, "value")
    marks: dict[Axis, Tensor] = {}
    for read, summed in ((query, -1), (value, -2)):
        for axis, mark in read.lineage.marks.items():
            if mark.shape[summed] == 1 and _fits(mark.shape, node.tensor.shape):
                marks.setdefault(axis, mark[(None,) * (node.tensor.ndim - mark.ndim)])
    return Lineage(marks, frozenset({node.serial}))


def _mapped(axis: Axis, mark: Tensor, along: Iterable[int]) -> tuple[Axis, Tensor] | None:
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


def _moved(node: Node, read: Node) -> dict[Axis, Tensor]:
    def again(mark: Tensor) -> Tensor:
        if node.name == "view_as_complex":
            return mark[..., 0]
        if node.name == "view_as_real":
            return mark.unsqueeze(-1).expand(node.tensor.shape)
        if node.name == "pad":
            return F.pad(mark, node.argument(1, "pad"), value=ELSEWHERE)
        return node.again(mark)

    return _replayed(read.lineage.marks, lambda axis: again(_mark_of(read, axis)))


def _reduced(node: Node, read: Node, along: Any) -> dict[Axis, Tensor]:
    """Each cell stands at the first place of those that it was made of."""
    keeps = node.tensor.ndim == read.tensor.ndim
    marks = _replayed(
        read.lineage.marks, lambda axis: _mark_of(read, axis).amin(along, keepdim=keeps)
    )
    return {axis: mark for axis, mark in marks.items() if _fits(mark.shape, node.tensor.shape)}


def _together(node: Node, read: list[Node]) -> dict[Axis, Tensor]:
    """Several tensors in one, or one written into another."""

    def again(axis: Axis) -> Tensor:
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


def _mark_of(read: Node, axis: Axis) -> Tensor:
    """In the tensor's shape."""
    mark = read.lineage.marks.get(axis)
    mark = torch.tensor(ELSEWHERE, dtype=torch.int32) if mark is None else mark
    return mark.expand(read.tensor.shape)


def _replayed(axes: Iterable[Axis], again: Callable[[Axis], Tensor]) -> dict[Axis, Tensor]:
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
