"""Positions of every kind as tables, how alike they are, and what is summed before the first layer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.tokens.embeddings import cosines
from model.arithmetic import positions
from model.nn.places import Place
from model.system.elsewhere import asked
from model.trace.arrays import Array, read_only
from model.trace.collect import numbers_of
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


def sinusoidal(length: int, width: int) -> Array:
    """(position, d_model): sine in the even columns, cosine of the same angle in the odd ones.

    Source: Vaswani et al. 2017, section 3.5.
    """
    return read_only(positions.sinusoidal(np.arange(length, dtype=np.float64), width))


def rotary(length: int, width: int, base: float = 10_000.0) -> Array:
    """(position, d_k/2): the angle in radians by which each pair of a head is turned.

    Source: Su et al. 2021, "RoFormer", section 3.2.
    """
    where = np.arange(length, dtype=np.float64)
    return read_only(positions.angles(where, width, base)[:, ::2])


@asked
def learned(model: "Model") -> Array | None:
    """(context, d_model): the learned position table of a model; None where it has none."""
    table = model.module.embedding.positions
    return None if table is None else numbers_of(table.weight)


def likeness(table: Array) -> Array:
    """(position, position): the cosine of the angle between every two rows of a table; 0 where a
    row is zero. Computed in float64."""
    rows = table.astype(np.float64)
    return cosines(rows, rows)


def rotary_likeness(angles: Array) -> Array:
    """(position, position): the cosine of the difference of two positions' angles, averaged over
    the pairs: the score of equal pairs of length 1, turned by their positions."""
    turned = angles.astype(np.float64)
    sine, cosine = np.sin(turned), np.cos(turned)
    return read_only((cosine @ cosine.T + sine @ sine.T) / angles.shape[1])


@dataclass(frozen=True, eq=False)
class Sum:
    """What is added up for each token before the first layer, and what the pass recorded of it."""

    parts: dict[str, Array]  # "tokens", "positions", "segments": (token, d_model) each
    recorded: Array  # (token, d_model)
    into: str  # name of the norm that reads the sum; "" where the sum is the first state

    @property
    def total(self) -> Array:
        """(token, d_model): the sum, recomputed."""
        return read_only(np.stack(list(self.parts.values())).sum(axis=0))

    def check(self) -> float:
        """Largest |sum - recorded|."""
        return float(np.abs(self.total - self.recorded).max())


def summed(trace: Trace) -> Sum:
    """The sum that the stack which reads the text starts from."""
    parts = dict(trace.summands[trace.source])
    for norm in trace.norms:
        if norm.name == Place(trace.source, None, "embedding").norm:
            return Sum(parts, norm.input, norm.name)
    return Sum(parts, trace.residual[trace.source][0], "")
