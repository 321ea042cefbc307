"""Masks, bool, True = may look: the causal one, a batch's padding, and those that an intervention sets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from model.nn.config import Shape

MaskChoice = Literal["model", "none", "causal"]


def causal_mask(queries: int, keys: int | None = None) -> Tensor:
    """Look-ahead mask, (query, key): True at and below the diagonal."""
    return torch.ones(queries, keys or queries, dtype=torch.bool).tril()


def padding_mask(real: Tensor) -> Tensor:
    """(B, T), True = real token, to a (B, 1, 1, T) mask that hides padding from every query."""
    return real[:, None, None, :]


@dataclass(frozen=True)
class Mask:
    """A mask that an intervention can set: its words, where it is offered, and its law."""

    title: str  # in a list of masks
    change: str  # in a list of changes
    shapes: tuple[Shape, ...]  # the models in which it can be chosen
    pattern: Callable[[int, int], Tensor] | None = None  # (queries, keys): joins the model's own
    lifts: bool = False  # whether it takes the model's own causal mask away


MASKS: dict[MaskChoice, Mask] = {
    "model": Mask("the model's own", "", ("decoder", "encoder", "encoder-decoder")),
    "none": Mask("none: all may look", "no mask", ("decoder", "encoder-decoder"), lifts=True),
    "causal": Mask(
        "causal: no future", "causal mask", ("encoder", "encoder-decoder"), pattern=causal_mask
    ),
}


def masks_of(shape: Shape) -> list[MaskChoice]:
    """The masks that can be chosen in models of this shape."""
    return [name for name, mask in MASKS.items() if shape in mask.shapes]
