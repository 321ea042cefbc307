"""Which text each row of heads belongs to, and which tokens its queries are: told by where they come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

import torch
from torch import Tensor

from model.capture.node import Axis, Node, UnreadableError

ONE_AXIS = "Its vectors came without a map before them: their first axis was taken for the texts of a batch."
UNKNOWN = "It is not known how its queries were made: {}."
CHANNELS = "its queries are channels, not tokens: each weight joins two channels over all tokens"
HEADS = "its queries are parts of one token, such as its heads, and not tokens"
Marks = dict[Axis, Tensor]  # (row, token, d_k): places on earlier axes, -1 for none


@dataclass(frozen=True, eq=False)
class Rows:
    """texts: (row,), the number of each row's text. in_parts: texts are read in parts, such as windows, each
    with a number of its own. places: (row, token), where the queries stand on earlier axes, such as that of
    the tokens of the text. doubt: what is not certain, in a sentence."""

    texts: Tensor
    in_parts: bool = False
    places: Mapping[Axis, Tensor] = field(default_factory=dict)
    doubt: str = ""

    def of(self, rows: Tensor) -> "Rows":
        places = {axis: place[rows] for axis, place in self.places.items()}
        return replace(self, texts=self.texts[rows], places=places)


def comes_from_elsewhere(query: Node, key: Node, *, equally_many: bool) -> bool:
    """Whether the keys were made of other vectors than the queries; one may have more than the other.
    Of vectors that no map made only the numbers of queries and keys are known."""
    if not (query.lineage.is_mapped or key.lineage.is_mapped):
        return not equally_many
    asking, read = query.lineage.stream, key.lineage.stream
    own, other = ({serial for serial in one if serial >= 0} for one in (asking, read))
    if not own or not other:  # vectors that the module holds itself
        return not asking & read
    return not (own <= other or other <= own)


def rows_of(query: Node, arrange: Callable[[Tensor], Tensor], leading: torch.Size) -> Rows:
    """arrange: a tensor laid out like the query to (row, token, d_k). leading: the axes of the rows.

    Raises UnreadableError where the queries are no tokens.
    """
    lineage = query.lineage
    marks = {one: arrange(mark.expand(query.tensor.shape)) for one, mark in lineage.marks.items()}
    places = {axis: mark for axis, mark in marks.items() if axis.kind != "feature"}
    features = [mark for axis, mark in marks.items() if axis.kind == "feature"]
    if not lineage.is_mapped:
        return _by_convention(marks, leading)
    if any(_changes(one) == (False, True) for one in places.values()) and any(
        _changes(one) == (True, False) for one in features
    ):
        raise UnreadableError(CHANNELS)
    by_token = {axis: _by_token(mark) for axis, mark in places.items()}
    known = {axis: place for axis, place in by_token.items() if place is not None}
    texts, parts = [], []
    for _, axes in groupby(sorted(known), key=lambda axis: axis.tensor):
        within = [known[axis] for axis in axes]
        fixed, moving = _split(within)
        texts += fixed[:1]
        parts += fixed[1:] + moving
    if any(bool((one < 0).any()) for one in texts):  # of some rows no text is known
        return _by_convention({}, leading)
    in_parts = any(len(one.unique()) > 1 for one in parts)
    if in_parts and not _split([*known.values()])[1] and any(_changes(one)[0] for one in features):
        raise UnreadableError(HEADS)
    return Rows(_numbered(texts + parts, leading), in_parts, known)


def _by_convention(marks: Marks, leading: torch.Size) -> Rows:
    """Of vectors with four axes or more the first is the batch. Of others it is the first that does not
    change within a row."""
    if len({axis.tensor for axis in marks}) != 1:
        rows = torch.arange(leading.numel())
        if len(leading) < 2:
            doubt = UNKNOWN.format("all rows were taken for the heads of one text")
            return Rows(torch.zeros_like(rows), doubt=doubt if len(rows) > 1 else "")
        doubt = UNKNOWN.format("their first axis was taken for the texts of a batch")
        return Rows(rows // leading[1:].numel(), doubt=doubt)
    ordered = [_by_token(marks[axis]) for axis in sorted(marks)]
    known = [one for one in ordered if one is not None]
    fixed, moving = _split(known)
    if all(
        mark.shape[-1] == 1 for mark in marks.values()
    ):  # of heads of width 1, the last numbers the heads
        fixed = fixed[:-1]
    if (
        len(ordered) < 4
    ):  # with four axes one text is seen as one; with fewer its heads may be first
        fixed = [one for one in fixed if len(one.unique()) > 1]
    texts = _numbered(fixed[:1] + moving, leading)
    return Rows(texts, doubt=ONE_AXIS if len(ordered) == 3 and int(texts.max()) else "")


def _by_token(mark: Tensor) -> Tensor | None:
    """(row, token): the place of each token; None where its numbers have different ones."""
    low, high = _ends(mark)
    return high if _same(low, high) else None


def _split(places: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """(row,): of axes on which all tokens of a row have one place, that; of others the smallest."""
    ends = [_ends(one) for one in places]
    fixed = [low for low, high in ends if _same(low, high)]
    return fixed, [low for low, high in ends if not _same(low, high)]


def _ends(places: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest along the last axis, of cells that have a place; -1 where none has."""
    high = places.amax(-1)
    unknown = places.masked_fill(places < 0, torch.iinfo(places.dtype).max)
    return unknown.amin(-1).minimum(high), high


def _changes(mark: Tensor) -> tuple[bool, bool]:
    """Whether it changes from token to token, and within one."""
    return not _same(mark, mark[:, :1]), not _same(mark, mark[:, :, :1])


def _same(one: Tensor, other: Tensor) -> bool:
    return bool((one == other).all())


def _numbered(places: list[Tensor], leading: torch.Size) -> Tensor:
    """(row,): rows with the same places have the same number."""
    if not places:
        return torch.zeros(leading.numel(), dtype=torch.long)
    return torch.unique(torch.stack(places, -1), dim=0, return_inverse=True)[1]
