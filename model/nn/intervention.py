"""What to change in one pass of a model, and the masks that can be set: their words, their models, their
laws."""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from model.nn.config import Shape
from model.nn.patches import Patch
from model.nn.steering import Steering
from model.system.border import check_fields
from model.system.words import Words

say = Words("nn.intervention")

MaskChoice = Literal["model", "none", "causal"]


@dataclass(frozen=True)
class Mask:
    """What one choice of a mask is called, where it is offered, and who may look at whom under it."""

    title: str  # in a list of masks
    change: str  # in a list of changes
    shapes: tuple[Shape, ...]  # of the models that offer it
    # (query, key): joins the own mask
    pattern: Callable[[int, int], NDArray[np.bool_]] | None = None
    removes_model_mask: bool = (
        False  # whether it takes the model's own causal mask and windows away
    )
    is_causal: bool = False  # whether it hides the future

    def hides_future(self, *, own: bool) -> bool:
        """Whether no query of a stack reads a later key. own: whether the model's own mask sees to that."""
        return self.is_causal or (own and not self.removes_model_mask)

    def title_for(self, shape: Shape) -> str:
        """What it is called for models of a shape: an encoder hides no future."""
        return (
            say("every_token_visible")
            if self.removes_model_mask and shape == "encoder"
            else self.title
        )


MASKS: dict[MaskChoice, Mask] = {
    "model": Mask("the model's own", "", ("decoder", "encoder", "encoder-decoder")),
    "none": Mask(
        "none: future visible", "no mask", ("decoder", "encoder-decoder"), removes_model_mask=True
    ),
    "causal": Mask(
        "causal: no future",
        "causal mask",
        ("encoder", "encoder-decoder"),
        pattern=lambda queries, keys: np.tri(queries, keys, dtype=bool),
        is_causal=True,
    ),
}


def masks_of(shape: Shape, *, windowed: bool = False) -> list[MaskChoice]:
    """The masks that models of a shape offer. windowed: whether some of their layers have a window."""
    return [
        name
        for name, mask in MASKS.items()
        if shape in mask.shapes or (mask.removes_model_mask and windowed)
    ]


LARGEST_SCALE = 1e6  # scores times a larger factor leave single precision
LARGEST_MASK_VALUE = float(np.finfo(np.float32).max)  # what single precision holds
SMALLEST = float(
    np.finfo(np.float32).tiny
)  # nearer to 0 single precision loses digits, and 1 over it is infinite
WeightSet = tuple[int, int, int, float]  # head, query, key, and the weight that was set by hand
_MEMBERS = {
    "hidden": "positions, counted from 0",
    "blocked": "pairs of positions (query, key), counted from 0",
    "ablated": "pairs of an attention name and a head",
    "only": "names of attention sub-layers",
    "weights": "an attention name, a head, positions of query and key, and a weight from 0 to 1",
    "stream": "an attention name, a token, a dimension, and a number that single precision holds",
}


@dataclass(frozen=True)
class Intervention:
    """An intervention. The default changes nothing.

    `scale`, `cap`, `bias`, `sinks`, `mask`, `window`, `hidden`, `blocked`, `fill` and `dropout` hold in the
    attention sub-layers named by `only` (None: in all). `cap`, `bias` and `sinks` change nothing where the
    model has no such stage. `positions`, `ablated`, `weights`, `stream`, `patch` and `steering` hold for the
    whole model. A sub-layer goes by its name, or by the number of its layer where each layer has one; a run's
    own intervention has the names. Positions are token numbers, counted from 0. The weights of a row that are
    not set by hand share what is left to 1, in their own proportions. A causal mask and a window concern
    self-attention; cross-attention joins two sequences and gets one only where `only` names it.

    Raises ValueError for values outside their range.

    >>> from model import Intervention
    >>> without = Intervention(ablated={("decoder.1.self", 7)})
    >>> without.changes, without.masks, without.applies("decoder.1.self")
    (True, False, True)
    >>> without.ablated_heads("decoder.1.self")
    (7,)
    >>> hill = trace.tokens[1].id
    >>> other = model.trace(trace.text, intervention=without)
    >>> before, after = (run.require_prediction().after(-1)[hill] for run in (trace, other))
    >>> round(float(after - before), 2)
    -0.74
    >>> Intervention(weights={("decoder.0.self", 0, 2, 1, 0.5)}).weights_in("decoder.0.self")
    ((0, 2, 1, 0.5),)
    >>> by_hand = Intervention(stream={("decoder.1.self", 0, 5, 0.0)})
    >>> by_hand.stream_in("decoder.1.self"), by_hand.sets_stream
    (((0, 5, 0.0),), True)
    """

    scale: float | None = None  # factor on the scores instead of the model's own; 1.0: not scaled
    mask: MaskChoice = "model"  # one of MASKS; "none" lifts the causal mask and the windows
    hidden: frozenset[int] = frozenset()  # keys treated as padding, in the text that is read
    blocked: frozenset[tuple[int, int]] = frozenset()  # single (query, key) edges cut
    fill: float = -math.inf  # what a masked score becomes, after scaling
    positions: bool = True  # False: added positions are zero, rotary angles are zero
    ablated: frozenset[tuple[str, int]] = frozenset()  # (attention name, head): output is zero
    # (attention name, head, query, key, weight): weights set by hand
    weights: frozenset[tuple[str, int, int, int, float]] = frozenset()
    # (attention name, token, dimension, value): numbers of the residual stream that this layer reads
    stream: frozenset[tuple[str, int, int, float]] = frozenset()
    patch: Patch | None = None  # parts of another run, put into this one
    dropout: float = 0.0  # on the weights
    seed: int = 0  # of the dropout
    only: frozenset[str] | None = None  # names of attention sub-layers
    window: int | None = None  # keys that a query reads at most, itself included; joins the mask
    cap: bool = True  # False: scores are not capped
    bias: bool = True  # False: nothing is added to the scores
    sinks: bool = True  # False: no sink takes a part of the weight
    steering: Steering | None = None  # a direction added to the stream that a layer reads

    if TYPE_CHECKING:  # any collection serves where a set is kept

        def __init__(
            self,
            scale: float | None = None,
            mask: MaskChoice = "model",
            hidden: Collection[int] = (),
            blocked: Collection[tuple[int, int]] = (),
            fill: float = -math.inf,
            positions: bool = True,
            ablated: Collection[tuple[str | int, int]] = (),
            weights: Collection[tuple[str | int, int, int, int, float]] = (),
            stream: Collection[tuple[str | int, int, int, float]] = (),
            patch: Patch | None = None,
            dropout: float = 0.0,
            seed: int = 0,
            only: Collection[str | int] | None = None,
            window: int | None = None,
            cap: bool = True,
            bias: bool = True,
            sinks: bool = True,
            steering: Steering | None = None,
        ) -> None: ...

    def __repr__(self) -> str:
        """What it changes, as one writes it."""
        given = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        changed = (f"{name}={_as_code(value)}" for name, value, usual in given if value != usual)
        return f"Intervention({', '.join(changed)})"

    def __post_init__(self) -> None:
        # One from a file has annotations of its own, and is checked by them.
        if type(self) is Intervention:
            check_fields(self, besides=(*_MEMBERS, "mask"))  # masks can be added
        for field in _MEMBERS:
            members = getattr(self, field)
            is_empty = type(members) is frozenset and not members
            if not is_empty and (members is not None or field != "only"):
                object.__setattr__(self, field, _members(field, members))
        if len({cell[:4] for cell in self.weights}) < len(self.weights):
            raise ValueError("One weight is set to two values.")
        rows: dict[tuple[str, int, int], float] = {}
        for name, head, query, _, weight in self.weights:
            rows[name, head, query] = rows.get((name, head, query), 0.0) + weight
        for (name, head, query), total in rows.items():
            if total > 1 + 1e-9:
                raise ValueError(
                    f"The weights set in row {query} of {name}, head {head}, sum to {total:g}; they "
                    "can sum to 1 at most."
                )
        if len({cell[:3] for cell in self.stream}) < len(self.stream):
            raise ValueError("One number of the stream is set to two values.")
        for field in ("scale", "fill", "dropout"):
            if 0 < abs(getattr(self, field) or 0) < SMALLEST:
                raise ValueError(
                    f"{field} is {getattr(self, field)}; it must be 0, or at least {SMALLEST:.2g} away from "
                    "0, as far as single precision tells numbers apart."
                )
        given: object = self.mask  # that of a caller without types
        if not isinstance(given, str) or given not in MASKS:
            raise ValueError(f"mask is {self.mask!r}; it must be one of {tuple(MASKS)}.")
        if self.scale is not None and not abs(self.scale) <= LARGEST_SCALE:
            raise ValueError(
                f"scale is {self.scale}; it must be between -{LARGEST_SCALE:,.0f} and "
                f"{LARGEST_SCALE:,.0f}."
            )
        if self.window is not None and not (type(self.window) is int and self.window > 0):
            raise ValueError(f"window is {self.window!r}; it must be a number of keys from 1 up.")
        if self.fill != -math.inf and not abs(self.fill) <= LARGEST_MASK_VALUE:
            raise ValueError(
                f"fill is {self.fill}; it must be minus infinity, or a number that single "
                "precision holds."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it must be at least 0 and below 1.")

    @cached_property
    def changes(self) -> bool:
        """Whether anything differs from the unchanged model."""
        return replace(self, seed=0, only=None) != UNCHANGED

    @property
    def masks(self) -> bool:
        """Whether it changes who may look at whom."""
        return self.mask != "model" or bool(self.window or self.hidden or self.blocked)

    def applies(self, name: str) -> bool:
        """Whether the attention sub-layer of this name is changed."""
        return self.only is None or name in self.only

    def weights_in(self, name: str) -> tuple[WeightSet, ...]:
        """The weights set by hand in one attention sub-layer."""
        return tuple(sorted(cell[1:] for cell in self.weights if cell[0] == name))

    def stream_in(self, name: str) -> tuple[tuple[int, int, float], ...]:
        """The numbers set by hand in the stream that one layer reads: token, dimension, value."""
        return tuple(sorted(cell[1:] for cell in self.stream if cell[0] == name))

    @property
    def sets_stream(self) -> bool:
        """Whether the stream is no more the sum of what the layers wrote."""
        patched = self.patch is not None and any(kind == "stream" for kind, *_ in self.patch.parts)
        return bool(self.stream or self.steering or patched)

    def ablated_heads(self, name: str) -> tuple[int, ...]:
        """The heads of one attention sub-layer whose output is zero."""
        return tuple(sorted(head for place, head in self.ablated if place == name))


def _members(name: str, members: object) -> frozenset[object]:
    """The members of a set field, pairs as tuples, so that equal interventions hash alike."""
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise ValueError(f"{name} is {members!r}; it must be a set.")
    plain = frozenset(map(_plain, members))
    for member in plain:
        match name, member:
            case "hidden", int(position) if position >= 0:
                pass
            case "blocked", (int(query), int(key)) if min(query, key) >= 0:
                pass
            case ("ablated", (str() | int(), int())) | ("only", str() | int()):
                pass
            case "weights", (
                str() | int(),
                int(head),
                int(query),
                int(key),
                float() | int() as weight,
            ) if min(head, query, key) >= 0 and 0 <= weight <= 1:
                pass
            case "stream", (
                str() | int(),
                int(token),
                int(dimension),
                float() | int() as value,
            ) if min(token, dimension) >= 0 and abs(value) <= LARGEST_MASK_VALUE:
                pass
            case _:
                raise ValueError(f"{name} holds {member!r}; its members must be {_MEMBERS[name]}.")
    return plain


def _plain(member: object) -> object:
    """A list or an array as a tuple, and numbers of numpy and PyTorch as Python's."""
    if hasattr(member, "tolist"):
        member = member.tolist()
    return tuple(map(_plain, member)) if isinstance(member, list | tuple) else member


def _as_code(value: object) -> str:
    """A field's value; a set as a set with its members in order."""
    if isinstance(value, frozenset) and value:
        return "{" + ", ".join(map(repr, sorted(value, key=str))) + "}"
    return repr(value)


UNCHANGED = Intervention()
PassChange = Intervention | Steering  # what holds in a pass


def intervention_of(change: PassChange) -> Intervention:
    """A change as an intervention."""
    return change if isinstance(change, Intervention) else Intervention(steering=change)
