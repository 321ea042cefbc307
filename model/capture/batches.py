"""Which of several texts each row of heads belongs to, told by where the queries come from."""

from collections.abc import Callable

import torch
from torch import Tensor

from model.capture.graph import Node, origin
from model.capture.operations import LAYOUT, PLACED

ONE_AXIS = "Its vectors came without a map before them: their first axis was taken for the texts of a batch."
WINDOWS = "It reads the text in windows, {} in all, of which this is one."


def root_of(vectors: Node) -> tuple[Node, ...]:
    """The way to some vectors from where their last numbers were computed: a linear map, mostly."""
    way = [vectors]
    while way[0].name in PLACED:
        parents = [*way[0].parents]
        alike = [one for one in parents if one.tensor.shape == way[0].tensor.shape]
        way.insert(0, (alike or parents)[0])
    return tuple(way)


def sources(vectors: Node) -> dict[int, Tensor | None]:
    """The inputs of the linear maps that made some vectors: serial numbers, and the tensors that are still
    alive. An input that was not concatenated with another comes first."""
    found: dict[int, Tensor | None] = {}
    waiting, seen = [vectors], {vectors.serial}
    for node in waiting:
        if node.by.reads is not None:
            serial, kept = node.by.reads
            found[serial] = kept()
        elif node.name not in PLACED:
            root = origin(next(node.parents)) if node.name else node  # a product by hand
            found[root.serial] = root.tensor
        for parent in node.parents if node.name in PLACED else ():
            if parent.serial not in seen:
                seen.add(parent.serial)
                waiting.append(parent)
    return found


def comes_from_elsewhere(query: Node, key: Node) -> bool:
    """Whether the keys were made of other vectors than the queries."""
    asking = sources(root_of(query)[0])
    read = sources(key)
    if asking.keys() & read.keys():
        return False
    one, other = next(iter(asking.values())), sources(root_of(key)[0])
    also = next(iter(other.values()))
    by_maps = all(
        root_of(vectors)[0].by.reads or root_of(vectors)[0].name for vectors in (query, key)
    )
    if one is None or also is None or not by_maps:
        return query.tensor.shape[-2] != key.tensor.shape[-2]
    return one.shape != also.shape or not torch.equal(one, also)


def batch_numbers(
    query: Node, arrange: Callable[[Tensor], Tensor], leading: torch.Size
) -> tuple[Tensor, str]:
    """(row,): for each row the number of its text in the batch, and what is not certain about that.

    arrange: a tensor laid out like the query to (row, token, d_k). leading: the axes of the rows. Rows of one
    text read the same token first, where their queries were computed. With four axes there, the first is the
    batch.
    """
    way = root_of(query)
    root = way[0].tensor
    try:
        marks = [arrange(_marked(axis, way)) for axis in range(root.ndim)]
    except (RuntimeError, IndexError):
        return _by_convention(leading), ""
    tokens, rows = [], []
    for axis, mark in enumerate(marks):
        if bool((mark == mark[:, :1, :1]).all()):
            rows.append((mark[:, 0, 0], root.shape[axis]))
        elif bool((mark[:, :, :1] == mark).all()):
            tokens.append(mark[:, 0, 0])
    if marks[0].shape[-1] == 1:  # of heads of width 1, the last such axis numbers the heads
        rows = rows[:-1]
    if root.ndim < 4:  # with four axes one text is seen as one; with fewer its heads may be first
        rows = [one for one in rows if one[1] > 1]
    found = [one for one, _ in rows[:1]] + tokens
    if not found:
        return _by_convention(leading), ""
    numbers = torch.unique(torch.stack(found, -1), dim=0, return_inverse=True)[1]
    doubt = ""
    if rows and any(len(one.unique()) > 1 for one in tokens):
        doubt = WINDOWS.format(int(numbers.max()) + 1)
    elif way[0].name == "" and way[0].by.reads is None and root.ndim == 3 and int(numbers.max()):
        doubt = ONE_AXIS
    return numbers, doubt


def _marked(axis: int, way: tuple[Node, ...]) -> Tensor:
    """For each cell of the last tensor of a path: its index along one axis of the first tensor."""
    mark = _axis_mark(way[0].tensor, axis)
    for node in way[1:]:
        mark = _moved(mark, node)
    return mark


def _by_convention(leading: torch.Size) -> Tensor:
    """The first of several axes is the batch; a single one is the heads of one text."""
    rows = torch.arange(leading.numel())
    return rows // leading[1:].numel() if len(leading) > 1 else torch.zeros_like(rows)


def _axis_mark(tensor: Tensor, axis: int) -> Tensor:
    """A tensor of this shape that says for each cell where it stands on an axis."""
    sizes = [1] * tensor.ndim
    sizes[axis] = tensor.shape[axis]
    return torch.arange(tensor.shape[axis]).view(sizes).expand(tensor.shape)


def axis_marks(tensor: Tensor) -> list[Tensor]:
    return [_axis_mark(tensor, axis) for axis in range(tensor.ndim)]


def _moved(mark: Tensor, node: Node) -> Tensor:
    """A mark after one operation, which moves or repeats its cells."""
    sizes = node.tensor.shape
    if node.name in LAYOUT:
        return node.again(mark)
    if node.name == "view_as_complex":
        return mark[..., 0]
    if node.name == "view_as_real":
        return mark.unsqueeze(-1).expand(sizes)
    if node.name == "stack":
        return mark.unsqueeze(node.argument(1, "dim", 0)).expand(sizes)
    if node.name in ("cat", "concat"):
        return mark.narrow(node.argument(1, "dim", 0), 0, 1).expand(sizes)
    return mark.expand(sizes)
