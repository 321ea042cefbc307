"""One call of attention as it was seen, with its texts and heads laid out as rows, and its record, which is
checked: recomputed from it, the module's own numbers must come out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.capture.lineage import AxisOrigin, Node, UnreadableError
from model.nn.places import Kind, Place
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.given import is_look_ahead
from model.trace.records import Attention, largest

ONE_AXIS = "Its vectors came without a map before them: their first axis was taken for the texts of a batch."
UNKNOWN = "It is not known how its queries were made: {}."
CHANNELS = "its queries are channels, not tokens: each weight joins two channels over all tokens"
HEADS = "its queries are parts of one token, such as its heads, and not tokens"
Marks = dict[AxisOrigin, Tensor]  # (row, token, d_k): places on earlier axes, -1 for none


@dataclass(frozen=True, eq=False)
class Rows:
    """texts: (row,), the number of each row's text. in_parts: texts are read in parts, such as windows, each
    with a number of its own. places: (row, token), where the queries stand on earlier axes, such as that of
    the tokens of the text. doubt: what is not certain, in a sentence."""

    texts: Tensor
    in_parts: bool = False
    places: Mapping[AxisOrigin, Tensor] = field(default_factory=dict)
    doubt: str = ""
    are_heads: bool = False  # the queries of a row are heads of one token, which share their keys

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


def reads_cache(query: Node, key: Node) -> bool:
    """Whether some keys are made of tensors that came with the call beside the text: those of tokens read
    before, as in a cache."""
    asking, read = query.lineage.stream, key.lineage.stream
    return query.lineage.is_mapped and any(serial >= 0 for serial in read - asking)


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
    are_heads = not _split([*known.values()])[1] and any(_changes(one)[0] for one in features)
    if in_parts and are_heads:
        raise UnreadableError(HEADS)
    return Rows(_numbered(texts + parts, leading), in_parts, known, are_heads=are_heads)


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


PARTS = (
    "It reads its input in {} parts, such as windows, rows or frames: this is part {}, counted from 0, and "
    "`batch=` chooses it."
)
CACHED = (
    "Its first {} keys came with the call, as those of a cache do: tokens are counted from the first of "
    "them."
)
LATER = "Its queries are tokens {} to {} of the text, counted from 0."
_BY_QUERY = ("query", "output", "weights", "forbidden", "added", "sinks")


@dataclass(frozen=True, eq=False)
class Seen:
    """A row is a head of a text. Axes: N rows, T queries, S keys, D width."""

    query: Tensor  # (N, T, D)
    key: Tensor  # (N, S, D)
    value: Tensor  # (N, S, D)
    output: Tensor  # (N, T, D): the module's own
    weights: Tensor | None  # (N, T, S): the module's own, where it computed some
    scale: float
    cap: float | None
    forbidden: Tensor | None  # (N, T, S) or stretching to it
    fills: tuple[float, ...]  # what forbidden scores became
    added: Tensor | None  # to the scaled scores, (N, T, S) or stretching to it
    sinks: Tensor | None  # (N, T): the score of one more column
    rows: Rows  # which text each row belongs to
    crosses: bool
    has_cache: bool = False  # its first keys are those of tokens read before
    doubts: tuple[str, ...] = ()
    laid: Tensor | None = (
        None  # (…, T, D): `output` in the module's memory, with the axes of the rows
    )

    def heads_apart(self) -> "Seen":
        """With a row for each head, where a row's queries are heads of one token that share their keys, as
        libraries pack them while they write token after token."""
        if not self.rows.are_heads:
            return self
        count, heads = self.query.shape[:2]

        def each(cells: Tensor | None) -> Tensor | None:
            if cells is None:
                return None
            return cells.expand(count, heads, *cells.shape[2:]).reshape(-1, 1, *cells.shape[2:])

        cells: dict[str, Any] = {name: each(getattr(self, name)) for name in _BY_QUERY}
        cells |= {
            name: getattr(self, name).repeat_interleave(heads, 0) for name in ("key", "value")
        }
        places = {axis: place.reshape(-1, 1) for axis, place in self.rows.places.items()}
        texts = self.rows.texts.repeat_interleave(heads)
        laid = None if self.laid is None else self.laid.unsqueeze(-2)
        rows = replace(self.rows, texts=texts, places=places, are_heads=False)
        return replace(self, **cells, rows=rows, laid=laid)

    def without_empty_places(self) -> "Seen":
        """Without the last keys that no query may look at, where a cache has room for tokens to come."""
        if not self.has_cache or self.forbidden is None:
            return self
        hidden = self.forbidden.expand(*self.forbidden.shape[:2], self.key.shape[1]).all((0, 1))
        count = int((~hidden).nonzero().max()) + 1 if not hidden.all() else len(hidden)
        cells = {
            name: cells[..., :count] if cells.shape[-1] == len(hidden) else cells
            for name in ("weights", "forbidden", "added")
            if (cells := getattr(self, name)) is not None
        }
        return replace(self, **cells, key=self.key[:, :count], value=self.value[:, :count])

    def of_text(self, number: int) -> "Seen":
        """The rows of one text, or of one part. Raises UnreadableError where there are fewer."""
        at = torch.nonzero(self.rows.texts == number)[:, 0]
        count = int(self.rows.texts.max()) + 1
        if not len(at):
            raise UnreadableError(
                f"it reads {count} text{'s' * (count > 1)} at once, and batch is {number}, counted from 0"
            )
        doubts = (PARTS.format(count, number), *self.doubts) if self.rows.in_parts else self.doubts
        cells: dict[str, Any] = {}
        for name in (*_BY_QUERY, "key", "value"):
            tensor: Tensor | None = getattr(self, name)
            if tensor is not None:
                cells[name] = tensor[at.to(tensor.device)] if len(tensor) > 1 else tensor
        return replace(self, **cells, rows=self.rows.of(at), doubts=doubts)

    def after(self, other: "Seen") -> "Seen | None":
        """Both in one, where the queries of this are the next tokens after those of the other, and the keys
        are the same; else None."""
        before, own = other.rows.places, self.rows.places
        next_ones = [
            axis
            for axis in before.keys() & own.keys()
            if bool((own[axis][:, 0] == before[axis][:, -1] + 1).all())
            and (before[axis].shape[1] == 1 or bool((before[axis] != before[axis][:, :1]).any()))
        ]
        same = all(
            one.shape == also.shape and torch.equal(one, also)
            for one, also in ((self.key, other.key), (self.value, other.value))
        )
        if not (next_ones and same) or (self.scale, self.cap) != (other.scale, other.cap):
            return None
        cells: dict[str, Any] = {name: _joined(other, self, name) for name in _BY_QUERY}
        places = {
            axis: torch.cat([before[axis], own[axis]], 1) for axis in before.keys() & own.keys()
        }
        return replace(
            self,
            **cells,
            rows=replace(self.rows, places=places),
            fills=(*other.fills, *self.fills),
            doubts=tuple(dict.fromkeys((*other.doubts, *self.doubts))),
        )

    @property
    def doubt(self) -> str:
        """What is not certain, in sentences."""
        moving = [one[0] for one in self.rows.places.values() if len(one[0].unique()) > 1]
        first, last = (int(moving[0][at]) for at in (0, -1)) if len(moving) == 1 else (0, 0)
        is_later = first > 0 and last - first + 1 == len(moving[0]) and not self.rows.in_parts
        earlier = self.key.shape[1] - self.query.shape[1]
        reads_earlier = self.has_cache and not self.crosses
        return " ".join(
            (
                *self.doubts,
                *([LATER.format(first, last)] if is_later else []),
                *([CACHED.format(earlier)] if reads_earlier and earlier > 0 else []),
            )
        )


def _joined(before: Seen, after: Seen, name: str) -> Tensor | None:
    """Cells of two records, one behind the other along the queries; None has zeros."""
    parts = getattr(before, name), getattr(after, name)
    known: Tensor | None = next((one for one in parts if one is not None), None)
    if known is None:
        return None
    rows, width = max(len(before.query), len(known)), known.shape[2:]
    cells = [
        (torch.zeros_like(known[:, :1]) if one is None else one).expand(
            rows, of.query.shape[1], *width
        )
        for one, of in zip(parts, (before, after), strict=True)
    ]
    return torch.cat(cells, 1)


NEAR = 1e-5  # of float32 numbers around 1
_UNPLACED = Place("decoder", 0, "self")


@dataclass(frozen=True)
class Gap:
    """The difference between what a record gives and what the module computed, relative to what rounding
    explains."""

    output: float
    weights: float  # 0 where the module computed none

    @property
    def holds(self) -> bool:
        return self.output <= 1 and self.weights <= 1


def recorded(seen: Seen) -> tuple[Attention, Gap]:
    """The record of one text's heads, placed nowhere yet. Raises UnreadableError where it does not hold."""
    output = _array(seen.output)
    if not all(np.isfinite(x).all() for x in (output, *map(_array, (seen.query, seen.key)))):
        raise UnreadableError("its own numbers are not finite")
    gap = None
    for record in _readings(seen, output):
        gap = gap_of(record, seen)
        if gap.holds:
            return record, gap
    if gap is None:
        raise UnreadableError("it has no heads")
    what, size = ("weights", gap.weights) if gap.weights > gap.output else ("output", gap.output)
    raise UnreadableError(
        f"its {what}, recomputed from what was seen, differs from its own by {size:.2g} times what rounding "
        "allows"
    )


def gap_of(record: Attention, seen: Seen) -> Gap:
    """A record against the weights and the output that the module itself computed.

    An output may be off by a share of the largest one. So may a weight, of the largest in its row; scores
    are rounded too, and large ones move it further.
    """
    precision = torch.finfo(seen.query.dtype if seen.weights is None else seen.output.dtype).eps
    precision = max(precision, torch.finfo(seen.output.dtype).eps)
    share = NEAR if precision <= torch.finfo(torch.float32).eps else 4 * precision
    most = max(float(np.abs(record.output).max()), torch.finfo(seen.output.dtype).tiny)
    output = record.check() / (share * most)
    weights = 0.0
    if seen.weights is not None:
        own = _array(seen.weights)
        weights = largest(
            _weights_gap(record, head, own[head], share) for head in range(record.heads)
        )
    return Gap(output, weights)


def _weights_gap(record: Attention, head: int, own: Array, share: float) -> float:
    found = record.weights(head)
    scores = np.abs(record.scaled(head)).max(-1, keepdims=True)
    most = np.maximum(found, own).max(-1, keepdims=True) * np.maximum(1, scores / 4)
    return float((np.abs(found - own) / np.clip(share * most, NEAR, share)).max())


def _readings(seen: Seen, output: Array) -> Iterator[Attention]:
    """The record for each number that a masked score may have become."""
    query, key, value = _array(seen.query), *_grouped(_array(seen.key), _array(seen.value))
    forbidden, added = seen.forbidden, seen.added
    sinks = None if seen.sinks is None else _array(seen.sinks)
    if sinks is not None and (sinks != sinks[:, :1]).any():
        raise UnreadableError("one more column joins its softmax, other for each query")
    mask = None if forbidden is None else _without_repeats(~forbidden.cpu().numpy())
    if mask is not None and mask.all():
        mask = None
    bias = None if added is None else _bias(added)
    queries, keys = query.shape[1], key.shape[1]
    looks_back = mask is not None and mask.ndim == 2 and is_look_ahead(mask)
    is_later = seen.has_cache and keys > queries
    hides_future = looks_back or (is_later and queries == 1)
    if mask is not None and queries > 1 and (is_later or queries == keys):
        hides_future |= not np.triu(mask, keys - queries + 1).any()
    kind: Kind = "cross" if seen.crosses else "causal" if hides_future else "self"
    by_rule = looks_back and kind == "causal" and queries == keys
    fills = dict.fromkeys([float(np.float32(fill)) for fill in (*seen.fills, -np.inf)])
    for fill in fills if mask is not None else [-np.inf]:
        yield Attention(
            place=Place(_UNPLACED.stack, 0, kind),
            heads=len(query),
            scale=seen.scale,
            mask_value=fill,
            output=output,
            ablated=(),
            vectors=(query, key, value),
            own_mask=None if by_rule or mask is None else read_only(mask),
            look_ahead=by_rule,
            steps={},
            cap=seen.cap,
            bias=bias,
            sinks=None if sinks is None else read_only(sinks[:, 0].copy()),
            doubt=seen.doubt,
        )


def _array(tensor: Tensor) -> Array:
    """float32, of its own: the module may use its memory again."""
    return read_only(tensor.detach().to("cpu", torch.float32, copy=True).contiguous().numpy())


def _grouped(key: Array, value: Array) -> tuple[Array, Array]:
    """Keys and values with those that several heads share kept once."""
    heads = len(key)
    for groups in range(1, heads):
        if heads % groups == 0 and all(
            (x.reshape(groups, -1, *x.shape[1:]) == x[:: heads // groups, None]).all()
            for x in (key, value)
        ):
            return key[:: heads // groups], value[:: heads // groups]
    return key, value


def _without_repeats(mask: BoolArray) -> BoolArray:
    """(query, key) where all heads have the same mask, else (head, query, key)."""
    return mask[0] if (mask == mask[:1]).all() else mask


def _bias(added: Tensor) -> Array | None:
    """(head or 1, query or 1, key): without the axes over which it is repeated; None for zeros."""
    bias = _array(added)
    if (bias == bias[:1]).all():
        bias = bias[:1]
    if (bias == bias[:, :1]).all():
        bias = bias[:, :1]
    return read_only(bias.copy()) if bias.any() else None
