"""A head's numbers as sums: a score over what wrote its query and its key, a query as products, and what each
edge of attention carries to the stream and to a logit."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.head_maps import HeadMap, Side, head_map, read_by, stack_of
from model.analysis.attribution.modules import wide
from model.analysis.attribution.stream_parts import (
    Positions,
    StreamReader,
    checked_head,
    parts_read,
    sub_layers_back,
)
from model.analysis.heads.labels import allowed_cells
from model.nn.places import within
from model.run.protocols import check_id
from model.system.border import at_border
from model.system.remote import asked
from model.trace.arrays import Wide
from model.trace.blocks import of_query
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace
from model.trace.unproven import require

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """A score, query · key before it is scaled (and capped and biased), over (what wrote the query) ×
    (what wrote the key).

    Parts are named "token", "position", "segment", "decoder.0.self.2" (sub-layer and head),
    "decoder.0.feed_forward" and "bias" (all biases together, those of norms too).

    >>> from model.analysis import score_parts
    >>> parts = score_parts(model, trace, "decoder.1.self", head=7, query=12, key=1)
    >>> row, column = np.unravel_index(parts.values.argmax(), parts.values.shape)
    >>> parts.query_parts[row], parts.key_parts[column]
    ('decoder.0.self.1', 'decoder.0.self.2')
    >>> bool(np.isclose(parts.above_mean.sum(), parts.total - parts.row_mean.sum()))
    True
    """

    query_parts: tuple[str, ...]
    key_parts: tuple[str, ...]
    values: Wide  # (query part, key part): they add up to the score
    row_mean: Wide  # (query part, key part): the mean over the keys that the query may look at; 0 without any
    recorded: float  # the score that the model computed
    scale: float  # the factor on the score

    def __repr__(self) -> str:
        queries, keys = self.values.shape
        return f"<ScoreParts: {queries} × {keys} parts, total {self.total:.6g}>"

    def __post_init__(self) -> None:
        for array in (self.values, self.row_mean):
            array.flags.writeable = False

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return float(self.values.sum())

    @property
    def above_mean(self) -> Wide:
        """(query part, key part): what raises this key above the others of its row, as softmax sees it,
        for a number added to all scores of a row changes no weight. A cap, a bias or a sink come after this
        sum."""
        return self.values - self.row_mean


@asked
@at_border
def score_parts(
    model: "Model", trace: Trace, name: str | int, head: int, query: int, key: int
) -> ScoreParts:
    """The parts of one head's score of a key, for a query of a recorded pass.

    With the recorded statistics of the norms both vectors are linear in what earlier parts wrote to the
    residual stream, so their product is a sum over pairs of parts (Elhage et al. 2021). Exact up to
    rounding.

    Args:
        name: of the attention sub-layer, or the number of its layer.
        query, key: positions, from 0; negative ones count from the end.

    Raises ValueError for a head or a position that is not there, and where the model makes its queries or
    keys in a way that is not linear even so.

    >>> from model.analysis import score_parts
    >>> parts = score_parts(model, trace, "decoder.1.self", head=7, query=12, key=1)
    >>> round(parts.total, 2), round(parts.recorded, 2), parts.values.shape
    (42.52, 42.52, (12, 12))
    """
    attention, head = checked_head(model, trace, name, head)
    _, queries, keys = attention.sizes
    query = within(query, queries, f"{attention.name} has queries")
    key = within(key, keys, f"{attention.name} has keys")
    allowed = allowed_cells(attention, head)[query].astype(np.float64)
    row = allowed / max(allowed.sum(), 1.0)
    # Both sides read what the embedding added up; for a long text that is computed when it is read.
    trace = replace(trace, summands={stack: dict(of) for stack, of in trace.summands.items()})
    query_parts, ours = _vectors(model, trace, attention, head, "query", np.eye(1, queries, query))
    key_parts, theirs = _vectors(
        model, trace, attention, head, "key", np.stack([np.eye(1, keys, key)[0], row])
    )
    return ScoreParts(
        query_parts=query_parts,
        key_parts=key_parts,
        values=ours[:, 0] @ theirs[:, 0].T,
        row_mean=ours[:, 0] @ theirs[:, 1].T,
        recorded=float(of_query(attention, query).scores(head)[0, key]),
        scale=attention.scale,
    )


def _vectors(
    model: "Model", trace: Trace, attention: Attention, head: int, side: Side, means: Wide
) -> tuple[tuple[str, ...], Wide]:
    """The parts of a head's queries or keys by name, and of each its weighted means over the tokens,
    (part, mean, d_k). means (mean, token): the weights."""
    stack, before = stack_of(attention, side)
    made = head_map(model, trace, attention, head, side)
    tokens = np.flatnonzero(means.any(0))
    means = means[:, tokens]
    reader, finish = _reader(made, tokens, means)
    names, found = [], []
    for name, read in parts_read(model, trace, stack, reader, before):
        vectors = finish(read)
        names.append(name)
        found.append(vectors + means @ made.constant(tokens) if name == "bias" else vectors)
    *others, bias = zip(names, found, strict=True)
    ordered = [*reversed(others), *([bias] if bias[1].any() else [])]
    return tuple(name for name, _ in ordered), np.stack([vectors for _, vectors in ordered])


def _reader(
    made: HeadMap, tokens: Positions, means: Wide
) -> tuple[StreamReader, Callable[[Wide], Wide]]:
    """What reads the vectors of a head, and what makes means (M, d_k) of all that it reads. Only vectors
    that are turned, each by its own angles, must be read token by token."""
    if made.turn is not None:
        return StreamReader(made.matrix, tokens), lambda read: means @ made.linear(read, tokens)
    factor = made.factor if isinstance(made.factor, float) else made.factor[tokens, 0]
    return StreamReader(made.matrix, tokens, means * factor), lambda read: read * made.gamma


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
    model: "Model", trace: Trace, name: str | int, head: int, token: int, side: Side
) -> Projected:
    """The vector of one head at one token, and the map that makes it.

    Args:
        name: of the attention sub-layer, or the number of its layer.
        token: its position, from 0.

    Raises ValueError where no map of the model gives the recorded vectors again.
    """
    attention, head = checked_head(model, trace, name, head)
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


@dataclass(frozen=True, eq=False)
class EdgeValues:
    """What each edge of one head writes to the residual stream, or to the norm on the way to it (Gemma 2).

    >>> from model.analysis import edge_values
    >>> edges = edge_values(model, trace, "decoder.1.self", head=7)
    >>> edges.norms.shape, int(edges.carries_most[12])
    ((13, 13), 1)
    >>> hill, anna = trace.tokens[1].id, trace.tokens[7].id
    >>> round(float(edges.logit(hill, against=anna)[12, 1]), 2)
    0.63
    """

    weights: Wide  # (query, key): as applied to the values; zero for an ablated head
    written: Wide  # (key, d_model): each key's value through W_O, before any weight; or (key, d_v) before W_O
    _model: "Model" = field(repr=False)
    _trace: Trace = field(repr=False)
    _attention: Attention = field(repr=False)

    def __repr__(self) -> str:
        queries, keys = self.weights.shape
        return f"<EdgeValues of {self._attention.name}: {queries} × {keys}>"

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

    @at_border
    def logit(self, token_id: int, against: int | None = None, *, position: int = -1) -> Wide:
        """(query, key): what each edge adds to a logit, or to how far it lies above another token's.

        By the direct way, with the recorded statistics of every norm on it: what the edge changes in
        later heads and feed-forwards is counted there. So edges of other queries add nothing.

        Args:
            against: the id of the other token; None: the logit alone.
            position: of the query whose prediction it is; -1: the last.

        Raises ValueError for an id that is not there, and where the head is not in the stream of the logits.
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
        at = within(position, len(self.weights), f"{attention.name} has queries")
        reader = StreamReader(row[None], np.array([at]))
        for part in sub_layers_back(model, trace, "decoder", reader, None):
            if part.name == attention.name:
                reader = reader.through(part)
                break  # the reader stands behind it now
        added = np.zeros_like(self.weights)
        added[at] = self.weights[at] * reader.factor[0] * (self.written @ reader.rows[0])
        return added


@asked
@at_border
def edge_values(
    model: "Model", trace: Trace, name: str | int, head: int, *, through_output: bool = True
) -> EdgeValues:
    """What each edge of a head carries.

    Args:
        name: of the attention sub-layer, or the number of its layer.
        through_output: False: what it hands to W_O instead, for which a recorded run is enough.

    Raises ValueError for a head that is not there.

    >>> from model.analysis import edge_values
    >>> edges = edge_values(model, trace, "decoder.1.self", head=7)
    >>> round(float(edges.logit(trace.tokens[1].id)[12, 1]), 2)
    1.29
    """
    attention, head = checked_head(model, trace, name, head)
    weights = attention.dropped(head).astype(np.float64)
    written = attention.value[head].astype(np.float64)
    if through_output:
        written = written @ numbers_of(model.w_o(attention.name, head)).T
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
