"""The linear maps of a feed-forward layer and its activation, identified by the numbers of one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from model.hub.probe import CLOSE, Call
from model.nn.config import GATED, Activation
from model.nn.layers import ACTIVATIONS

Half = Literal["all", "first", "second"]


@dataclass(frozen=True, eq=False)
class FeedForwardParts:
    """The map whose values are activated (or a half of it), and the map back to the width."""

    before: nn.Module
    half: Half  # which part of its values: both maps of a gated layer may be one matrix
    w_out: nn.Module
    activation: Activation
    hidden: int

    def activated(self, values: Tensor) -> Tensor:
        """(…, M): the values before the activation, out of the map's output."""
        if self.half == "all":
            return values
        return values.chunk(2, -1)[0 if self.half == "first" else 1]


def feed_forward_parts(maps: Sequence[Call]) -> FeedForwardParts:
    """The parts of a layer with one map before the activation, or two (gated), or two in one matrix.

    The nearest of the known activations is taken. Raises ValueError where none is near.
    """
    *w_in, w_out = maps
    hidden = w_out.read
    if hidden is None or not 1 <= len(w_in) <= 2:
        raise ValueError(
            f"its feed-forward has {len(maps)} maps, a layout that this app does not know"
        )
    size = max(float(hidden.abs().max()), 1e-6)
    found: list[tuple[float, FeedForwardParts]] = []
    for module, before, half, other in _candidates(w_in, hidden.shape[-1]):
        for name in GATED if other is not None else sorted(set(ACTIVATIONS) - GATED):
            made = ACTIVATIONS[name](before) * (1.0 if other is None else other)
            if made.shape == hidden.shape:
                parts = FeedForwardParts(module, half, w_out.module, name, hidden.shape[-1])
                found.append((float((made - hidden).abs().max()) / size, parts))
    nearest = min(found, key=lambda pair: pair[0], default=None)
    if nearest is None or nearest[0] > CLOSE:
        raise ValueError("its feed-forward uses an activation that this app does not know")
    return nearest[1]


def _candidates(
    w_in: Sequence[Call], width: int
) -> list[tuple[nn.Module, Tensor, Half, Tensor | None]]:
    """Each map whose output may be activated, with its values and what they are multiplied by."""
    module, first = w_in[0].module, w_in[0].gave
    if len(w_in) == 2:
        second = w_in[1].gave
        return [(module, first, "all", second), (w_in[1].module, second, "all", first)]
    if first.shape[-1] == 2 * width:
        one, other = first.chunk(2, -1)
        return [(module, one, "first", other), (module, other, "second", one)]
    return [(module, first, "all", None)]
