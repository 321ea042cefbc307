"""Which of several texts each row of heads belongs to, told by where the queries come from."""

from collections.abc import Callable
from itertools import groupby

import torch
from torch import Tensor

from model.capture.node import Axis, Node, UnreadableError

ONE_AXIS = "Its vectors came without a map before them: their first axis was taken for the texts of a batch."
UNKNOWN = "It is not known how its queries were made: {}."
CHANNELS = "its queries are channels, not tokens: each weight joins two channels over all tokens"


def comes_from_elsewhere(query: Node, key: Node) -> bool:
    """Whether the keys were made of other vectors than the queries; one may have more than the other."""
    if not (query.lineage.is_mapped or key.lineage.is_mapped):
        return query.tensor.shape[-2] != key.tensor.shape[-2]
    asking, read = query.lineage.stream, key.lineage.stream
    own, other = ({serial for serial in one if serial >= 0} for one in (asking, read))
    if not own or not other:  # vectors that the module holds itself
        return not asking & read
    return not (own <= other or other <= own)


def batch_numbers(
    query: Node, arrange: Callable[[Tensor], Tensor], leading: torch.Size
) -> tuple[Tensor, bool, str]:
    """(row,): for each row the number of its text in the batch; whether these are parts of a text, such as
    windows; and what is not certain about that.

    arrange: a tensor laid out like the query to (row, token, d_k). leading: the axes of the rows.
    Raises UnreadableError where the queries are no tokens.
    """
    lineage = query.lineage
    marks = {one: arrange(mark.expand(query.tensor.shape)) for one, mark in lineage.marks.items()}
    if not lineage.is_mapped:
        numbers, doubt = _by_convention(marks, leading)
        return numbers, False, doubt
    _refuse_channels(marks)
    texts, parts = [], []
    known = sorted(axis for axis in marks if axis.kind != "feature")
    for _, axes in groupby(known, key=lambda axis: axis.tensor):
        ends = [(_ends(marks[axis], (1, 2)), _ends(marks[axis], (2,))) for axis in axes]
        rows = [low for (low, high), _ in ends if bool((low == high).all())]
        windows = [
            low
            for (low, high), (first, last) in ends
            if bool((first == last).all()) and not bool((low == high).all())
        ]
        texts += rows[:1]
        parts += rows[1:] + windows
    in_parts = any(len(one.unique()) > 1 for one in parts)
    return _numbered(texts + parts, leading), in_parts, ""


def _ends(mark: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The smallest and the largest place along some axes, of cells that have one."""
    high = mark.amax(axes)
    return mark.masked_fill(mark < 0, torch.iinfo(mark.dtype).max).amin(axes).minimum(high), high


def _numbered(places: list[Tensor], leading: torch.Size) -> Tensor:
    """(row,): rows with the same places have the same number."""
    if not places:
        return torch.zeros(leading.numel(), dtype=torch.long)
    return torch.unique(torch.stack(places, -1), dim=0, return_inverse=True)[1]


def _by_convention(marks: dict[Axis, Tensor], leading: torch.Size) -> tuple[Tensor, str]:
    """Of vectors with four axes or more the first is the batch. Of others it is the first that does not
    change within a row."""
    if len({axis.tensor for axis in marks}) != 1:
        rows = torch.arange(leading.numel())
        if len(leading) < 2:
            doubt = UNKNOWN.format("all rows were taken for the heads of one text")
            return torch.zeros_like(rows), doubt if len(rows) > 1 else ""
        doubt = UNKNOWN.format("their first axis was taken for the texts of a batch")
        return rows // leading[1:].numel(), doubt
    ordered = [marks[axis] for axis in sorted(marks)]
    rows, tokens = [], []
    for mark in ordered:
        (low, high), (first, last) = _ends(mark, (1, 2)), _ends(mark, (2,))
        if bool((low == high).all()):
            rows.append(low)
        elif bool((first == last).all()):
            tokens.append(low)
    if ordered[0].shape[-1] == 1:  # of heads of width 1, the last such axis numbers the heads
        rows = rows[:-1]
    if len(ordered) < 4:  # with four axes one text is seen as one; with fewer its heads may be first
        rows = [one for one in rows if len(one.unique()) > 1]
    numbers = _numbered(rows[:1] + tokens, leading)
    return numbers, ONE_AXIS if len(ordered) == 3 and int(numbers.max()) else ""


def _refuse_channels(marks: dict[Axis, Tensor]) -> None:
    """Queries whose numbers are tokens, and whose places are the features of a map."""
    by_feature = by_token = False
    for axis, mark in marks.items():
        changes = bool((mark != mark[:, :1]).any()), bool((mark != mark[:, :, :1]).any())
        by_feature |= axis.kind == "feature" and changes == (True, False)
        by_token |= axis.kind != "feature" and changes == (False, True)
    if by_feature and by_token:
        raise UnreadableError(CHANNELS)
