"""What an edge of attention carries: its weight times the value, through W_O, and on to a logit."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.modules import wide
from model.analysis.attribution.stream_parts import (
    Positions,
    Reader,
    checked_head,
    sub_layers_back,
)
from model.run.refusals import check_id
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace
from model.trace.unproven import require

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class EdgeValues:
    """What each edge of one head writes to the residual stream, or to the norm on the way to it (Gemma 2)."""

    weights: Wide  # (query, key): as applied to the values; zero for an ablated head
    written: Wide  # (key, d_model): each key's value through W_O, before any weight; or (key, d_v) before W_O
    _model: "Model" = field(repr=False)
    _trace: Trace = field(repr=False)
    _attention: Attention = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.weights, self.written):
            array.flags.writeable = False

    @property
    def norms(self) -> Wide:
        """(query, key): the length of weight · value · W_O (Kobayashi et al. 2020). A large weight on a
        value of almost no length carries almost nothing."""
        return self.weights * np.linalg.norm(self.written, axis=-1)

    @property
    def carries_most(self) -> Positions:
        """(query,): the key whose edge carries the longest vector."""
        return self.norms.argmax(-1)

    def logit(self, token_id: int, against: int | None = None, *, position: int = -1) -> Wide:
        """(query, key): what each edge adds to a logit after a position, or to how far it lies above
        another token's.

        By the direct way, with the recorded statistics of every norm on it: what the edge changes in
        later heads and feed-forwards is counted there. So edges of other queries add nothing. Raises
        ValueError for an id that is not there, and where the head is not in the stream of the logits.
        """
        model, trace, attention = self._model, self._trace, self._attention
        trace.require_prediction()
        model.require("output")
        require(model.name, "logit_parts", trace.unproven)
        if attention.stack == "encoder":
            raise ValueError(
                f"{attention.name} writes to the encoder's stream; logits are read from the decoder's."
            )
        row = _output_row(model, token_id)
        row = row if against is None else row - _output_row(model, against)
        at = range(len(self.weights))[position]
        reader = Reader(row[None], np.array([at]))
        for part in sub_layers_back(model, trace, "decoder", reader, None):
            if part.name == attention.name:
                reader = reader.through(part)
                break  # the reader stands behind it now
        added = np.zeros_like(self.weights)
        added[at] = self.weights[at] * reader.factor[0] * (self.written @ reader.rows[0])
        return added


@asked
def edge_values(
    model: "Model", trace: Trace, name: str, head: int, *, through_output: bool = True
) -> EdgeValues:
    """What each edge of a head carries, or what it hands to W_O, for which a recorded run is enough. Raises
    ValueError for a head that is not there."""
    attention = checked_head(model, trace, name, head)
    weights = attention.dropped(head).astype(np.float64)
    written = attention.value[head].astype(np.float64)
    if through_output:
        written = written @ numbers_of(model.w_o(name, head)).T
    return EdgeValues(
        weights * (head not in attention.ablated),
        written,
        model,
        trace,
        attention,
    )


@asked
def _output_row(model: "Model", token: int) -> Wide:
    """(d_model,): the row of the output matrix that makes one token's logit, times the model's factor."""
    module = model.module
    matrix = (module.embedding.tokens if module.output is None else module.output).weight
    check_id(token, len(matrix), model.name)
    return wide(matrix[token]) * module.logit_factor
