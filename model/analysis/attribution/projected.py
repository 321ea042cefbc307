"""A head's query, key or value of one token as the products that it is the sum of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.head_maps import Side, head_map, read_by
from model.analysis.attribution.stream_parts import checked_head
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class Projected:
    """x · matrixᵀ + bias; then what norms of queries and keys and rotary positions make of it."""

    x: Wide  # (d_model,): what the map reads, after the norm where there is one
    matrix: (
        Wide  # (d_k, d_model): the head's rows of W; less their mean before a layer norm of queries
    )
    bias: Wide  # (d_k,): zero where there is none
    after: Wide  # (d_k,): what the head uses; a norm of queries divides by what the recorded length tells
    recorded: Wide  # (d_k,)
    normed: bool
    turned: bool

    @property
    def sums(self) -> Wide:
        """(d_k,): each entry before norms and rotary positions."""
        return self.matrix @ self.x + self.bias

    def products(self, dimension: int) -> Wide:
        """(d_model,): what one entry is the sum of, beside its bias."""
        return self.matrix[dimension] * self.x


@asked
def projected(
    model: "Model", trace: Trace, name: str, head: int, token: int, side: Side
) -> Projected:
    """The vector of one head at one token. Raises ValueError where no map of the model gives the recorded
    vectors again."""
    attention = checked_head(model, trace, name, head)
    made = head_map(model, trace, attention, head, side)
    x = read_by(model, trace, attention, side)[token].astype(np.float64)
    tokens = np.array([token])
    after = made.linear((made.matrix @ x)[None], tokens) + made.constant(tokens)
    vectors = {"query": attention.query, "key": attention.key, "value": attention.value}[side]
    return Projected(
        x=x,
        matrix=made.matrix,
        bias=made.bias,
        after=after[0],
        recorded=vectors[head, token].astype(np.float64),
        normed=not isinstance(made.gamma, float),
        turned=made.turn is not None,
    )
