"""The masks that an intervention can set: the words, the models and the law of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.nn.config import Shape

MaskChoice = Literal["model", "none", "causal"]


@dataclass(frozen=True)
class Mask:
    """What one choice of a mask is called, where it is offered, and who may look at whom under it."""

    title: str  # in a list of masks
    change: str  # in a list of changes
    shapes: tuple[Shape, ...]  # of the models that offer it
    # (query, key): joins the own mask
    pattern: Callable[[int, int], NDArray[np.bool_]] | None = None
    lifts: bool = False  # whether it takes the model's own causal mask and windows away

    def title_for(self, shape: Shape) -> str:
        """What it is called for models of a shape: an encoder hides no future."""
        return "none: every token visible" if self.lifts and shape == "encoder" else self.title


MASKS: dict[MaskChoice, Mask] = {
    "model": Mask("the model's own", "", ("decoder", "encoder", "encoder-decoder")),
    "none": Mask("none: future visible", "no mask", ("decoder", "encoder-decoder"), lifts=True),
    "causal": Mask(
        "causal: no future",
        "causal mask",
        ("encoder", "encoder-decoder"),
        pattern=lambda queries, keys: np.tri(queries, keys, dtype=bool),
    ),
}


def masks_of(shape: Shape, *, windowed: bool = False) -> list[MaskChoice]:
    """The masks that models of a shape offer. windowed: whether some of their layers have a window."""
    return [
        name for name, mask in MASKS.items() if shape in mask.shapes or (mask.lifts and windowed)
    ]
