"""What to change in one pass of a model: a plain, hashable description."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, get_args

MaskChoice = Literal["model", "none", "causal"]


@dataclass(frozen=True)
class Intervention:
    """A change of the mechanism. The default changes nothing.

    `scale`, `mask`, `hidden`, `blocked`, `fill` and `dropout` hold in the attention sub-layers
    named by `only` (None: in all). `positions` and `ablated` hold for the whole model. Positions
    are token numbers, counted from 0. A causal mask concerns self-attention; cross-attention joins
    two sequences and gets one only where `only` names it.

    Raises ValueError for values outside their range.
    """

    scale: float | None = None  # factor on the scores instead of the model's own; 1.0: not scaled
    mask: MaskChoice = "model"  # "none": causal lifted; "causal": also where the model has none
    hidden: frozenset[int] = frozenset()  # keys treated as padding, in the source sequence
    blocked: frozenset[tuple[int, int]] = frozenset()  # single (query, key) edges cut
    fill: float = -math.inf  # what a masked score becomes, after scaling
    positions: bool = True  # False: added positions are zero, rotary angles are zero
    ablated: frozenset[tuple[str, int]] = frozenset()  # (attention name, head): output is zero
    dropout: float = 0.0  # on the weights
    seed: int = 0  # of the dropout
    only: frozenset[str] | None = None  # names of attention sub-layers

    def __post_init__(self) -> None:
        for name in ("hidden", "blocked", "ablated", "only"):
            members = getattr(self, name)
            if members is not None:
                object.__setattr__(self, name, frozenset(_members(name, members)))
        if self.mask not in get_args(MaskChoice):
            raise ValueError(f"mask is {self.mask!r}; it must be one of {get_args(MaskChoice)}.")
        if self.scale is not None and not math.isfinite(self.scale):
            raise ValueError(f"scale is {self.scale}; it must be a finite number.")
        if math.isnan(self.fill) or self.fill == math.inf:
            raise ValueError(f"fill is {self.fill}; it must be a number or minus infinity.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it must be at least 0 and below 1.")
        if any(position < 0 for position in self.hidden):
            raise ValueError("hidden positions are counted from 0.")

    @property
    def changes(self) -> bool:
        """Whether anything differs from the unchanged model."""
        unchanged = Intervention()
        return any(
            getattr(self, field.name) != getattr(unchanged, field.name)
            for field in fields(self)
            if field.name not in ("seed", "only")
        )

    def applies(self, name: str) -> bool:
        """Whether the attention sub-layer of this name is changed."""
        return self.only is None or name in self.only

    def ablated_heads(self, name: str) -> tuple[int, ...]:
        """The heads of one attention sub-layer whose output is zero."""
        return tuple(sorted(head for place, head in self.ablated if place == name))


def _members(name: str, members: Iterable[object]) -> Iterable[object]:
    """The members of a set field, pairs as tuples, so that equal changes hash alike."""
    if isinstance(members, str):
        raise ValueError(f"{name} is a text; it must be a set.")
    return (tuple(member) if isinstance(member, list) else member for member in members)
