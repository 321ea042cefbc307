"""Parts of one pass put into another, at the places where a pass hands its numbers on.

Sources: Vig et al. 2020, "Causal Mediation Analysis"; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT". Axes: R rows of a batch; H heads, T tokens, D width of a head, C any width.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from model.nn.places import Head, Place

if TYPE_CHECKING:  # pages are drawn first
    from torch import Tensor

PatchKind = Literal["head", "weights", "stream", "feed_forward"]
PatchPart = tuple[PatchKind, str, int]  # a kind, a sub-layer's name, and a head or a token of it
HookKind = Literal["query", "key", "value", "bias", "output", "stream", "before", "hidden"]
HookPoint = tuple[HookKind, str]  # and a sub-layer's name
# As PyTorch's forward hooks: it is given what passes a point, and what it returns goes on; None: the same.
Hooks = Mapping[HookPoint, Callable[["Tensor"], "Tensor | None"]]
Where = tuple[int | None, int | None]  # a head and a token; None: all
PATCH_KINDS: tuple[PatchKind, ...] = get_args(PatchKind)
OF_HEADS: frozenset[str] = frozenset({"head", "weights"})
_POINTS: Mapping[PatchKind, tuple[HookKind, ...]] = {
    "head": ("query", "key", "value", "bias"),
    "weights": ("query", "key", "bias"),
    "stream": ("stream",),
    "feed_forward": ("before", "hidden"),
}
_BY_HEAD = ("query", "key", "value", "bias", "output")


@dataclass(frozen=True)
class Patch:
    """Parts of another run of the same model, to be put into a pass: where they come from, and which.

    A part is ("head", "decoder.1.self", 7): the head runs on the other run's queries, keys and values (and
    the bias on its scores), so its output is the other run's; "weights": on its queries and keys, so its
    weights are. ("stream",
    "decoder.1.self", 4): the residual stream before that layer at token 4. ("feed_forward",
    "decoder.1.feed_forward", 4): what it writes at token 4. The other run has the same further changes.
    Raises ValueError for anything else.
    """

    model: str
    text: str
    parts: frozenset[PatchPart]

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("A patch needs the sentence that it comes from.")
        parts = frozenset(map(_part, self.parts))
        if not parts:
            raise ValueError("A patch needs a part that it puts in.")
        object.__setattr__(self, "parts", parts)

    @property
    def points(self) -> dict[HookPoint, set[Where]]:
        """Where its parts pass, and which heads or tokens there."""
        points: dict[HookPoint, set[Where]] = {}
        for kind, name, index in self.parts:
            where = (index, None) if kind in OF_HEADS else (None, index)
            for point in _POINTS[kind]:
                points.setdefault((point, name), set()).add(where)
        return points

    def touches(self, name: str) -> bool:
        """Whether it changes what a head of this attention sub-layer attends with."""
        return any(kind in OF_HEADS and place == name for kind, place, _ in self.parts)


def _part(part: object) -> PatchPart:
    match tuple(part) if isinstance(part, list) else part:
        case (str(kind), str(name), int(index)) if kind in PATCH_KINDS and index >= 0:
            place = Place.named(name)
            if (place.kind == "feed_forward") == (
                kind == "feed_forward"
            ) and place.layer is not None:
                return kind, place.name, index
    raise ValueError(
        f"A patch holds {part!r}; each part is a kind ({', '.join(PATCH_KINDS)}), a sub-layer's name, "
        "and a head or a token, counted from 0."
    )


def cache_hooks(kept: dict[HookPoint, "Tensor"], points: Collection[HookPoint]) -> Hooks:
    """Keeps what passes these points."""
    return {point: partial(kept.__setitem__, point) for point in points}


def patch_hooks(
    kept: Mapping[HookPoint, "Tensor"], rows: Sequence[Mapping[HookPoint, Iterable[Where]]]
) -> Hooks:
    """Puts what was kept into each row of a batch, at that row's places. kept: of one row for all, or of as
    many rows. Sub-layers whose heads share keys and values get a copy for each head where any is put in."""
    points = {point for row in rows for point in row}
    parted = {name for kind, name in points if kind in ("query", "key", "value")}
    points |= {(kind, name) for name in parted for kind in _SHARED}
    return {point: partial(_patched, kept, rows, point) for point in points}


_SHARED: tuple[HookKind, ...] = ("key", "value")


def _patched(
    kept: Mapping[HookPoint, "Tensor"],
    rows: Sequence[Mapping[HookPoint, Iterable[Where]]],
    point: HookPoint,
    x: "Tensor",
) -> "Tensor":
    kind, name = point
    if kind in _SHARED:
        x = for_each_head(x, kept["query", name].shape[1])
    if not any(point in row for row in rows):
        return x
    given = kept[point]
    if kind == "bias":
        if x.is_cpu and given.equal(x):
            return x  # one of positions alone, which both runs have
        shape = (-1, *kept["query", name].shape[1:3], -1)
        given, x = given.expand(shape), x.expand(shape).expand(len(rows), -1, -1, -1)
    patched = x.clone()
    if kind in _BY_HEAD:
        into, theirs = patched, for_each_head(given, x.shape[1])
    else:  # OPT leaves the batch axis out of some
        into = patched.view(len(rows), 1, -1, x.shape[-1])
        theirs = given.reshape(1, 1, -1, x.shape[-1])
    for number, row in enumerate(rows):
        source = theirs[number if len(theirs) > 1 else 0]
        for head, token in row.get(point, ()):
            cells = _cells(head), _cells(token)
            into[(number, *cells)] = source[cells]
    return patched


def zero_hooks(rows: Sequence[Mapping[HookPoint, Iterable[Where]]]) -> Hooks:
    """Puts zeros into each row of a batch (R, H, T, D), at that row's places."""

    def zeroed(point: HookPoint, x: "Tensor") -> "Tensor":
        changed = x.clone()
        for number, row in enumerate(rows):
            for head, token in row.get(point, ()):
                changed[number, _cells(head), _cells(token)] = 0.0
        return changed

    return {point: partial(zeroed, point) for row in rows for point in row}


def ablation_hooks(rows: Sequence[Iterable[Head]]) -> Hooks:
    """Leaves heads out of the rows of a batch: their outputs are zero. rows: the heads of each."""
    places: list[dict[HookPoint, list[Where]]] = [{} for _ in rows]
    for row, heads in zip(places, rows, strict=True):
        for name, head in heads:
            row.setdefault(("output", name), []).append((head, None))
    return zero_hooks(places)


def for_each_head(x: "Tensor", heads: int) -> "Tensor":
    """(R, H or fewer, T, D) with the vectors that heads share repeated for each."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _cells(index: int | None) -> slice:
    return slice(None) if index is None else slice(index, index + 1)
