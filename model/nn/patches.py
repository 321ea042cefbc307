"""Parts of one pass put into another, at the places where a pass hands its numbers on.

Sources: Vig et al. 2020, "Causal Mediation Analysis"; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT". Axes: R rows of a batch; H heads, T tokens, D width of a head, C any width.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from model.nn.places import Place

if TYPE_CHECKING:  # pages are drawn first
    from torch import Tensor

PatchKind = Literal["head", "weights", "stream", "feed_forward"]
PatchPart = tuple[PatchKind, str, int]  # a kind, a sub-layer's name, and a head or a token of it
SiteKind = Literal["query", "key", "value", "bias", "output", "stream", "before", "hidden"]
Site = tuple[SiteKind, str]  # and a sub-layer's name
Where = tuple[int | None, int | None]  # a head and a token; None: all
Through = Callable[
    [SiteKind, str, "Tensor"], "Tensor"
]  # what passes a site, and what goes on from there
PATCH_KINDS: tuple[PatchKind, ...] = get_args(PatchKind)
OF_HEADS: frozenset[str] = frozenset({"head", "weights"})
_SITES: Mapping[PatchKind, tuple[SiteKind, ...]] = {
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
    def sites(self) -> dict[Site, set[Where]]:
        """Where its parts pass, and which heads or tokens there."""
        sites: dict[Site, set[Where]] = {}
        for kind, name, index in self.parts:
            where = (index, None) if kind in OF_HEADS else (None, index)
            for site in _SITES[kind]:
                sites.setdefault((site, name), set()).add(where)
        return sites

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


def cache_hook(kept: dict[Site, "Tensor"], sites: Collection[Site]) -> Through:
    """Keeps what passes these sites, and lets it go on unchanged."""

    def through(kind: SiteKind, name: str, x: "Tensor") -> "Tensor":
        if (kind, name) in sites:
            kept[kind, name] = x
        return x

    return through


def patch_hook(
    kept: Mapping[Site, "Tensor"], rows: Sequence[Mapping[Site, Iterable[Where]]]
) -> Through:
    """Puts what was kept into each row of a batch, at that row's places. kept: of one row for all, or of as
    many rows. Sub-layers whose heads share keys and values get a copy for each head where any is put in."""
    parted = {name for row in rows for kind, name in row if kind in ("query", "key", "value")}

    def through(kind: SiteKind, name: str, x: "Tensor") -> "Tensor":
        if kind in ("key", "value") and name in parted:
            x = for_each_head(x, kept["query", name].shape[1])
        if not any((kind, name) in row for row in rows):
            return x
        given = kept[kind, name]
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
            for head, token in row.get((kind, name), ()):
                cells = _cells(head), _cells(token)
                into[(number, *cells)] = source[cells]
        return patched

    return through


def one_after_another(*steps: Through) -> Through:
    """What the first gives goes through the second, and so on."""

    def through(kind: SiteKind, name: str, x: "Tensor") -> "Tensor":
        for step in steps:
            x = step(kind, name, x)
        return x

    return through


def for_each_head(x: "Tensor", heads: int) -> "Tensor":
    """(R, H or fewer, T, D) with the vectors that heads share repeated for each."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def unchanged(kind: SiteKind, name: str, x: "Tensor") -> "Tensor":
    """What passes goes on."""
    return x


def _cells(index: int | None) -> slice:
    return slice(None) if index is None else slice(index, index + 1)
