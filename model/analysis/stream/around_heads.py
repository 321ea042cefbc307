"""What leads to the queries and keys of one attention sub-layer, and what becomes of its heads' outputs.

Axes: n query tokens, C d_model, T numbers of a head that rotary positions turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.head_maps import (
    HeadMap,
    Rotation,
    Side,
    head_map,
    read_by,
    where_read,
)
from model.analysis.stream.stream import contributions, weight_and_bias
from model.nn.places import Place
from model.system.remote import asked
from model.trace.arrays import Array, read_only
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace
from model.trace.unproven import proven_states

if TYPE_CHECKING:
    from model.run.model import Model

_COMPARED = 8  # tokens by which a norm is recognized
_CLOSE = 1e-4  # of the largest number: what rounding in single precision explains


@dataclass(frozen=True, eq=False)
class AroundHeads:
    """Positions, norm, outputs side by side, and their product with W_O. Computed when asked for."""

    model: "Model"
    trace: Trace
    attention: Attention

    @cached_property
    def norm(self) -> NormRecord | None:
        """The norm whose output the queries are made of; None without one."""
        try:
            read = where_read(self.model, self.trace, self.attention, "query")
            if isinstance(read, NormRecord):
                return read
            stack, number = read
            state = self.trace.residual[stack][number][:_COMPARED]
        except ValueError:
            return None
        return next((norm for norm in self.trace.norms if _makes(norm, stack, state)), None)

    @property
    def is_first(self) -> bool:
        """Whether no sub-layer of its stack comes before it, so that it reads what the embedding made."""
        return self.attention.layer == 0 and self.attention.kind != "cross"

    @property
    def entering(self) -> Array | None:
        """(n, C): the state of the stream that the norm of the queries reads, or else the queries; None where
        it is not known which."""
        if self.norm is not None:
            return self.norm.input
        try:
            read = where_read(self.model, self.trace, self.attention, "query")
        except ValueError:
            return None
        return read.input if isinstance(read, NormRecord) else self.trace.residual[read[0]][read[1]]

    @cached_property
    def summands(self) -> Mapping[str, Array]:
        """(n, C) each: what the embedding of the queries' stack added up, tokens first; empty where no
        positions are among it."""
        parts = proven_states(self.trace.summands).get(self.attention.stack, {})
        if "positions" not in parts or "stream" in self.trace.unproven:
            return {}
        shape = self.trace.residual[self.attention.stack][0].shape
        return {name: np.broadcast_to(part, shape) for name, part in parts.items()}

    @cached_property
    def turn(self) -> Rotation | None:
        """By which angles, (n, T/2), rotary positions turn the queries; None where they do not, or where
        queries turned so are not the recorded ones: some layers turn none."""
        angles, pairs = self.trace.angles, self.model.config.rotary_pairs
        queries = self.attention.sizes[1]
        if not self.attention.projection.turned or angles is None or pairs == "other":
            return None
        if not self._knows_queries:
            return None
        return (
            None if len(angles) < queries else Rotation(angles[:queries].astype(np.float64), pairs)
        )

    def turned_back(self, head: int, side: Side = "query") -> Array:
        """(n, d_k): the queries or keys of a head before rotary positions turned them."""
        turn, vectors = self.turn, getattr(self.attention, side)[head]
        if turn is None:
            return read_only(vectors)
        back = Rotation(-turn.angles, turn.pairs)
        return read_only(
            back.of(vectors.astype(np.float64), np.arange(len(vectors))).astype(np.float32)
        )

    def norms(self, side: Side) -> bool:
        """Whether a norm of each head's queries or keys follows W_Q or W_K, in a way that is known."""
        if not self.attention.projection.normed or not self._knows_queries:
            return False
        if side == "key" and self.attention.kind == "cross":  # its keys are another text's
            return False
        try:
            return isinstance(self.map_of(0, side).gamma, np.ndarray)
        except ValueError:
            return False

    @cached_property
    def _knows_queries(self) -> bool:
        """Whether the map to the queries, their norm and their turn give the recorded ones."""
        try:
            self.map_of(0)
        except ValueError:
            return False
        return True

    def map_of(self, head: int, side: Side = "query") -> HeadMap:
        """How the queries or keys of a head are made. Raises ValueError where that is not known."""
        return head_map(self.model, self.trace, self.attention, head, side)

    def mapped(self, head: int, side: Side = "query") -> Array:
        """(n, d_k): what W_Q or W_K makes for a head, before that norm, less its mean where that is
        subtracted."""
        read = read_by(self.model, self.trace, self.attention, side).astype(np.float64)
        found = self.map_of(head, side)
        return read_only((read @ found.matrix.T + found.bias).astype(np.float32))

    @cached_property
    def joined(self) -> Array:
        """(n, heads · d_v): the outputs of all heads side by side, those of ablated heads zero."""
        outputs = self.attention.output.copy()
        outputs[list(self.attention.ablated)] = 0
        return read_only(np.concatenate(outputs, axis=-1))

    @cached_property
    def output_map(self) -> tuple[Array, Array]:
        """W_O (C, heads · d_v) and its bias (C,), zero where it has none."""
        return output_map(self.model, self.attention.name)

    @cached_property
    def written(self) -> Array:
        """(n, C): W_O times the outputs side by side, and its bias."""
        weight, bias = self.output_map
        return read_only(self.joined @ weight.T + bias)

    @cached_property
    def added(self) -> Array | None:
        """(n, C): what the sub-layer added to the stream, as the pass recorded it; None where that is another
        vector, for instance because a norm comes between."""
        try:
            parts = contributions(self.model, self.trace, self.attention.stack)
        except ValueError:
            return None
        found = next((part.added for part in parts if part.name == self.attention.name), None)
        if found is None or found.shape != self.written.shape:
            return None
        size = max(float(np.abs(self.trace.residual[self.attention.stack][-1]).max()), 1.0)
        return found if np.abs(found - self.written).max() <= _CLOSE * size else None


@asked
def output_map(model: "Model", name: str) -> tuple[Array, Array]:
    """W_O of a sub-layer and its bias."""
    return weight_and_bias(model.layer(name).output)


def _makes(norm: NormRecord, stack: str, state: Array) -> bool:
    """Whether a norm's output is this state of a stack, by its first tokens."""
    if Place.named(norm.name).stack != stack:
        return False
    made = norm.output[:_COMPARED]
    return made.shape == state.shape and bool(np.allclose(made, state, rtol=_CLOSE, atol=_CLOSE))
