"""One attention sub-layer as another program kept it: what is there is checked, what lacks is named."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.exchange.files import bound
from model.nn.config import Stack
from model.nn.places import Kind, Place
from model.system import deadline
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.description import LARGEST, holds
from model.trace.given import MASKED_BELOW, is_look_ahead, plain_numbers
from model.trace.partial import VECTORS, AttentionVector, PartialAttention
from model.trace.precision import HALVES, SINGLE, score_rounding, weight_rounding
from model.trace.records import Attention, largest
from model.trace.trace_file import grow_beyond

_NO_MASK = (
    "No mask, scores or weights were kept: every token is taken to look back only, and neither positions, "
    "a cap nor a bias to come between these queries and keys and their scores."
)
_NO_VECTORS = (
    "Its queries and keys do not give its weights, as where positions, a cap or a bias come "
    "between: they were left out."
)


@dataclass(frozen=True, eq=False)
class GivenLayer:
    """What was kept of a sub-layer, None where nothing was. Axes: head, query, key, d_k."""

    number: int
    module: str
    query: Array | None = None  # (head, query, d_k), as used: after rotary positions
    key: Array | None = None  # (head, key, d_k)
    value: Array | None = None  # (head, key, d_v)
    output: Array | None = None  # (head, query, d_v)
    scores: Array | None = None  # (head, query, key): scaled and masked
    weights: Array | None = None  # (head, query, key)
    stack: Stack | None = None  # None: decoder where it looks back
    crosses: bool = False
    scale: float | None = None
    precision: float = SINGLE


def one_text(given: Any, name: str, axes: int, batch: int, *, lowered: bool = False) -> Array:
    """A tensor of so many axes without its batch, in single precision.

    Args:
        name: of the tensor, for errors.
        axes: without the batch; a tensor of one axis more is a batch.
        batch: which text of it.
        lowered: it may hold minus infinity.

    Raises ValueError where it has others, the batch has no such text, or a number is none that a pass
    computes with.
    """
    array = plain_numbers(given, name).astype(np.float32, copy=False)
    if array.ndim == axes + 1:
        if not 0 <= batch < len(array):
            raise ValueError(
                f"{name} holds {len(array)} texts, and batch is {batch}; they are counted from 0."
            )
        array = array[batch]
    if array.ndim != axes or not array.size:
        raise ValueError(
            f"{name} has the shape {array.shape}; it must have {axes} axes, or a batch too."
        )
    if not holds(array, "lowered" if lowered else "finite"):
        raise ValueError(f"{name} holds numbers that are not finite, or beyond {LARGEST:g}.")
    return array


def precision_of(*given: Any) -> float:
    """The share by which the least precise of several tensors is rounded."""
    kinds = [str(getattr(one, "dtype", "")).removeprefix("torch.") for one in given]
    return max((HALVES.get(kind, SINGLE) for kind in kinds), default=SINGLE)


def records_of(layers: Sequence[GivenLayer]) -> tuple[Attention, ...]:
    """The records of all sub-layers. Raises ValueError for tensors that do not fit together, and for more
    cells of masks than there may be bytes; PassTooLongError as `deadline.look`."""
    bare = [one for one in layers if one.scores is None and one.weights is None]
    cells = sum(
        one.query.shape[1] * one.key.shape[1]
        for one in bare
        if one.query is not None and one.key is not None
    )
    if cells > bound():
        raise ValueError(f"{cells:,} pairs of a query and a key are too many for a mask.")
    return tuple(map(_record, layers))


def gives_weights(given: GivenLayer) -> bool:
    """Whether recorded weights are those of its queries and keys. Raises ValueError as `records_of`."""
    made = _record(given)
    return not (isinstance(made, PartialAttention) and "query" in made.absent)


def _record(given: GivenLayer) -> Attention:
    """The record of a sub-layer. Raises ValueError for tensors that do not fit together."""
    deadline.look()
    heads, queries, keys = _sizes(given)
    grouped = [one for one in (given.key, given.value) if one is not None]
    if grow_beyond(heads, *grouped):
        raise ValueError(
            f"The keys or values of {given.module} are more than is read: each of {heads:,} heads has its "
            "own."
        )
    mask, doubts = _mask(given, queries, keys)
    looks_back = mask is None or is_look_ahead(mask) or (queries == 1 and mask.all())
    by_rule = bool(looks_back and queries == keys)
    if mask is None and not by_rule:
        mask = _look_back(queries, keys)
    kind: Kind = "cross" if given.crosses else "causal" if looks_back else "self"
    stack = given.stack or ("decoder" if looks_back or given.crosses else "encoder")
    absent = tuple(name for name in VECTORS if getattr(given, name) is None)
    empty = {"key": keys, "value": keys}
    vectors = {
        name: np.zeros((heads, empty.get(name, queries), 0), np.float32)
        if name in absent
        else read_only(getattr(given, name))
        for name in VECTORS
    }
    steps = {"masked": given.scores, "weights": given.weights}
    hides = mask is not None and not by_rule and not mask.all()
    made = PartialAttention(
        place=Place(stack, given.number, kind, given.module),
        heads=heads,
        scale=_scale(given, mask),
        mask_value=_mask_value(given.scores, mask),
        output=vectors["output"],
        ablated=(),
        vectors=(vectors["query"], vectors["key"], vectors["value"]),
        own_mask=read_only(mask.copy()) if mask is not None and hides else None,
        look_ahead=by_rule,
        steps={name: read_only(step) for name, step in steps.items() if step is not None},
        absent=absent,
    )
    return _checked(made, [*doubts], given.precision)


def _sizes(given: GivenLayer) -> tuple[int, int, int]:
    """Heads, queries and keys. Raises ValueError where tensors have others, and where none has them."""
    cells = next((one for one in (given.weights, given.scores) if one is not None), None)
    if cells is None and (given.query is None or given.key is None):
        raise ValueError(
            f"Of {given.module} neither weights nor both queries and keys were kept: nothing can be shown."
        )
    sizes = cells.shape if cells is not None else (*given.query.shape[:2], given.key.shape[1])  # type: ignore[union-attr]
    for name, along, grouped in (
        ("query", sizes[1], False), ("output", sizes[1], False),
        ("key", sizes[2], True), ("value", sizes[2], True),
        ("scores", sizes[1], False), ("weights", sizes[1], False),
    ):  # fmt: skip
        one = getattr(given, name)
        if one is None:
            continue
        fits = one.shape[0] == sizes[0] or (grouped and sizes[0] % one.shape[0] == 0)
        if not fits or one.shape[1] != along:
            raise ValueError(
                f"The {name} of {given.module} has the shape {one.shape}, which does not fit {sizes[0]} "
                f"heads, {sizes[1]} queries and {sizes[2]} keys."
            )
    widths = {one.shape[2] for one in (given.query, given.key) if one is not None}
    if len(widths) > 1:
        raise ValueError(f"The queries and keys of {given.module} differ in d_k.")
    return sizes[0], sizes[1], sizes[2]


def _mask(given: GivenLayer, queries: int, keys: int) -> tuple[BoolArray | None, list[str]]:
    """(query, key) or (head, query, key), and what is not certain of it; None: it looks back, as no number
    says otherwise."""
    if given.scores is not None:
        allowed = given.scores > MASKED_BELOW
    elif given.weights is not None:
        allowed = given.weights > 0  # one that rounds to 0 looks masked, unless the future alone is
        of_any = allowed.any(0)
        if not np.triu(of_any, keys - queries + 1).any():
            allowed = np.broadcast_to(_look_back(queries, keys), allowed.shape)
        elif (given.weights.max(-1) > 0).all() and of_any.all():
            allowed = np.ones_like(allowed)
    else:
        return None, [] if queries == 1 else [_NO_MASK]
    one = bool((allowed == allowed[:1]).all())
    return np.array(allowed[0] if one else allowed), []


def _look_back(queries: int, keys: int) -> BoolArray:
    """(query, key)"""
    return np.tri(queries, keys, keys - queries, dtype=bool)


def _mask_value(scores: Array | None, mask: BoolArray | None) -> float:
    if scores is None or mask is None or mask.all():
        return -np.inf
    hidden = scores[~np.broadcast_to(mask, scores.shape)]
    return float(hidden[0]) if (hidden == hidden[0]).all() else -np.inf


def _scale(given: GivenLayer, mask: BoolArray | None) -> float:
    """The factor on the scores: as given, as the scores tell, or 1/√d_k; not a number without queries."""
    if given.scale is not None:
        return given.scale
    if given.query is None:
        return float("nan")
    usual = float(1 / np.sqrt(given.query.shape[2]))
    if given.scores is None or given.key is None or mask is None:
        return usual
    width = given.query.shape[2]
    rounding = score_rounding(
        given.query.reshape(-1, width),
        given.key.reshape(-1, width),
        scale=usual,
        precision=given.precision,
    ).max()
    group, gap, square, product = len(given.query) // len(given.key), 0.0, 0.0, 0.0
    for head, query in enumerate(given.query):  # one at a time: all would take six times the scores
        deadline.look()
        allowed = mask if mask.ndim == 2 else mask[head]
        key = given.key[head // group].astype(np.float64)
        ours = (query.astype(np.float64) @ key.T)[allowed]
        theirs = given.scores[head][allowed].astype(np.float64)
        gap = max(gap, float(np.abs(usual * ours - theirs).max(initial=0.0)))
        square, product = square + float(ours @ ours), product + float(ours @ theirs)
    return usual if not square or gap <= rounding else product / square  # of least squares


def _checked(made: PartialAttention, doubts: list[str], precision: float) -> Attention:
    """The record; without queries and keys where the recorded weights do not follow from them, as those of
    before their positions. Without anything absent it is a whole one."""
    if not {"query", "key"} & {*made.absent} and made.steps:
        bare = made.changed(steps={})
        gap = largest(_apart(made, bare, head, precision) for head in range(made.heads))
        if not gap <= 1:
            without: tuple[AttentionVector, ...] = ("query", "key", *made.absent)
            of_query, of_key, value = made.vectors
            no_key = np.zeros((made.heads, of_key.shape[1], 0), np.float32)
            vectors = of_query[:, :, :0], no_key, value
            made = made.changed(vectors=vectors, absent=without)
            doubts.append(_NO_VECTORS)
    made = made.changed(doubt=" ".join(doubts))
    if made.absent:
        return made
    return Attention(**{one.name: vars(made)[one.name] for one in fields(Attention)})


def _apart(made: Attention, bare: Attention, head: int, precision: float) -> float:
    """The largest difference of a head's recorded weights, or scores, from those that its queries and keys
    give, as a share of what rounding explains."""
    deadline.look()
    rounding = score_rounding(
        bare.query[head], bare.key[head], scale=bare.scale, precision=precision
    )
    scores = bare.masked(head)
    rounding += precision * np.abs(
        scores, where=np.isfinite(scores), out=np.zeros_like(scores)
    ).max(-1)
    if "weights" in made.steps:
        allowed = weight_rounding(bare.weights(head), rounding, precision)
        return float((np.abs(made.weights(head) - bare.weights(head)) / allowed).max())
    mask = bare.mask_of(head)
    compared = np.ones_like(scores, bool) if mask is None else mask  # two masked ones tell nothing
    gap = np.subtract(made.masked(head), scores, where=compared, out=np.zeros_like(scores))
    return float((np.abs(gap) / (rounding[:, None] + np.finfo(np.float32).tiny)).max())


def vectors_by_head(
    layers: tuple[Attention, ...],
) -> Iterator[tuple[Attention, dict[str, NDArray[Any]]]]:
    """Each sub-layer with what of it can be written: vectors as recorded, and scores and weights."""
    for one in layers:
        absent = one.absent if isinstance(one, PartialAttention) else ()
        known: dict[str, NDArray[Any]] = {
            name: one.output if name == "output" else one.vectors[number]
            for number, name in enumerate(VECTORS)
            if name not in absent
        }
        whole = not {"query", "key"} & {*absent}
        if whole or "masked" in one.steps:
            known["scores"] = np.stack([one.masked(head) for head in range(one.heads)])
        if whole or "weights" in one.steps:
            known["weights"] = one.weights()
        yield one, known
