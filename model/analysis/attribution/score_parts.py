"""One score as a sum over what wrote its query and what wrote its key."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.head_maps import HeadMap, Side, head_map, stack_of
from model.analysis.attribution.stream_parts import Positions, Reader, checked_head, parts_read
from model.analysis.heads.labels import allowed_cells
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.records import Attention
from model.trace.some_queries import of_query
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """A score, query · key before it is scaled (and capped and biased), over (what wrote the query) ×
    (what wrote the key).

    Parts are named "token", "position", "segment", "decoder.0.self.2" (sub-layer and head),
    "decoder.0.feed_forward" and "bias" (all biases together, those of norms too).
    """

    query_parts: tuple[str, ...]
    key_parts: tuple[str, ...]
    values: Wide  # (query part, key part): they add up to the score
    row_mean: Wide  # (query part, key part): the mean over the keys that the query may look at; 0 without any
    recorded: float  # the score that the model computed
    scale: float  # the factor on the score

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
def score_parts(
    model: "Model", trace: Trace, name: str, head: int, query: int, key: int
) -> ScoreParts:
    """The parts of one head's score of a key, for a query of a recorded pass.

    With the recorded statistics of the norms both vectors are linear in what earlier parts wrote to the
    residual stream, so their product is a sum over pairs of parts (Elhage et al. 2021). Exact up to
    rounding. Raises ValueError for a head or a position that is not there, and where the model makes its
    queries or keys in a way that is not linear even so.
    """
    attention = checked_head(model, trace, name, head)
    _, queries, keys = attention.sizes
    if not (0 <= query < queries and 0 <= key < keys):
        raise ValueError(
            f"{name} has {queries} queries and {keys} keys; there is no cell ({query}, {key})."
        )
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


def _reader(made: HeadMap, tokens: Positions, means: Wide) -> tuple[Reader, Callable[[Wide], Wide]]:
    """What reads the vectors of a head, and what makes means (M, d_k) of all that it reads. Only vectors
    that are turned, each by its own angles, must be read token by token."""
    if made.turn is not None:
        return Reader(made.matrix, tokens), lambda read: means @ made.linear(read, tokens)
    factor = made.factor if isinstance(made.factor, float) else made.factor[tokens, 0]
    return Reader(made.matrix, tokens, means * factor), lambda read: read * made.gamma
