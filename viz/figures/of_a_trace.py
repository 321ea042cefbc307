"""The pictures of one run for scripts and notebooks: a trace in, a Plotly figure out, on white.

`from viz import figures` has them by name: `figures.weights(trace, "decoder.1.self", 7)`. Each counts heads
from 0, and raises ValueError, with a sentence, for a layer, head or statistic that the run does not have.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.heads.ranking import STATISTICS, Statistic, scores
from model.analysis.heads.statistics import Family, families, family_of, tiles
from model.nn.places import within
from model.system.border import at_border, check_name
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.figures.bars import part_bars
from viz.figures.chart import Axis, numbered, on_white
from viz.figures.head_tiles import head_grid, head_map
from viz.figures.heatmap import heatmap, weights_of_head
from viz.figures.vectors import token_rows
from viz.notation.theme import QuantityName

VectorName = Literal["query", "key", "value", "output"]


@at_border
def weights(trace: Trace, place: str | int, head: int) -> go.Figure:
    """How much each query attends to each key: weights (query, key) of one head, rows sum to 1, masked cells
    hatched; of a head with a learned sink that is one more column.

    >>> from viz import figures
    >>> figures.weights(trace, "decoder.1.self", 7).data[0]["type"]
    'heatmap'
    """
    attention = _head_of(trace, place, head)
    queries, keys = _tokens(trace, attention)
    return on_white(weights_of_head(attention, head, queries=queries, keys=keys))


@at_border
def difference(trace: Trace, other: Trace, place: str | int, head: int) -> go.Figure:
    """Weights (query, key) of one head in `other` minus those in `trace`, red where they are larger.

    Args:
        place: the name of the sub-layer, in both runs.
        head: from 0.

    Raises ValueError also where the two runs have not as many tokens.

    >>> from model import Intervention
    >>> from viz import figures
    >>> other = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> type(figures.difference(trace, other, "decoder.1.self", 7))
    <class 'plotly.graph_objs._figure.Figure'>
    """
    before, after = (_head_of(run, place, head).weights(head) for run in (trace, other))
    if before.shape != after.shape:
        raise ValueError(
            f"{place} has weights of {before.shape} in one run, {after.shape} in the other."
        )
    queries, keys = _tokens(other, other.find(place))
    return matrix(after - before, rows=queries, columns=keys, quantity="difference")


@at_border
def token_vectors(
    trace: Trace, place: str | int, head: int, which: VectorName = "query"
) -> go.Figure:
    """Queries, keys, values or outputs of one head as rows (token, d_k); colours diverge around 0.

    Args:
        place: the name of the sub-layer.
        head: from 0, of the queries: heads may share keys and values.
        which: "query", "key", "value" or "output".

    >>> from viz import figures
    >>> figures.token_vectors(trace, "decoder.1.self", 7, which="key").to_dict()["data"][0]["type"]
    'heatmap'
    """
    attention = _head_of(trace, place, head)
    queries, keys = _tokens(trace, attention)
    values: NDArray[np.float32] = getattr(attention, which)[head]
    columns = numbered("dimension", values.shape[1])
    tokens = queries if which in ("query", "output") else keys
    return on_white(token_rows(values, tokens=tokens, columns=columns, quantity=which))


@at_border
def heads(trace: Trace, place: str | int | None = None) -> go.Figure:
    """Every head as a small map of its weights, a row a layer: of all layers like this one (self-attention of
    the same stack, or cross-attention). place: None: like the first layer.

    >>> from viz import figures
    >>> type(figures.heads(trace))
    <class 'plotly.graph_objs._figure.Figure'>
    """
    family = _family(trace, place)
    names = [trace.find(name).place.head(head) for name, head in family.heads(trace)]
    return on_white(head_grid(tiles(trace, family), chosen=None, words=names))


@at_border
def statistic(trace: Trace, name: str, place: str | int | None = None) -> go.Figure:
    """One number for each head (layer, head), for instance "previous": the mean weight on the token before.

    name: previous, induction, first, self, next, separators, distance or entropy. Raises ValueError also
    where the text cannot tell, for instance induction without a repeated token. place: as in `heads`.

    >>> from viz import figures
    >>> figure = figures.statistic(trace, "induction")
    >>> figure.write_html("induction.html", include_plotlyjs=True)  # works offline
    """
    known = {one.name: one for one in STATISTICS}
    check_name("statistic", name, known)
    family = _family(trace, place)
    found = scores(trace, family)
    if name in found.refused:
        raise ValueError(found.refused[name])
    table = found.values[name].reshape(len(family.members(trace)), -1)
    words = [
        f"{trace.find(layer).place.head(head)}<br>{value:.4f}"
        for (layer, head), value in zip(found.heads, found.values[name], strict=True)
    ]
    of = known[name]
    quantity: QuantityName = "weight" if of.unit == Statistic.unit else "score"
    title = f"{of.title}: {of.unit}"
    return on_white(head_map(table, quantity=quantity, title=title, chosen=None, words=words))


@at_border
def matrix(
    values: NDArray[np.floating],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    quantity: QuantityName = "score",
    names: tuple[str, str] = ("query", "key"),
) -> go.Figure:
    """Any values beside tokens or words.

    Args:
        values: (row, column).
        rows, columns: the words beside them.
        quantity: whose colours: "weight" runs from 0 to 1, all others diverge around 0.
        names: of the two axes.

    Raises ValueError for another quantity, and if labels and values do not fit.

    >>> from viz import figures
    >>> words = ["a", "b"]
    >>> figures.matrix(np.eye(2), rows=words, columns=words, quantity="weight").layout.xaxis.title.text
    'key'
    """
    axes = Axis(names[0], rows), Axis(names[1], columns)
    return on_white(
        heatmap(np.asarray(values), rows=axes[0], columns=axes[1], quantity=quantity, square=True)
    )


@at_border
def parts(names: Sequence[str], values: Sequence[float], *, title: str) -> go.Figure:
    """What each part adds to a sum (part,), from the top down, for instance to a score or a logit.

    >>> from viz import figures
    >>> type(figures.parts(["token", "position"], [1.5, -0.5], title="A score"))
    <class 'plotly.graph_objs._figure.Figure'>
    """
    return on_white(part_bars(names, [float(value) for value in values], title=title))


def _head_of(trace: Trace, place: str | int, head: int) -> Attention:
    attention = trace.find(place)
    within(head, attention.heads, f"{attention.name} has heads")
    return attention


def _tokens(trace: Trace, attention: Attention) -> tuple[list[str], list[str]]:
    """The texts of the tokens that look in a layer, and of those looked at."""
    both = trace.queries_of(attention), trace.keys_of(attention)
    queries, keys = ([token.text for token in tokens] for tokens in both)
    return queries, keys


def _family(trace: Trace, place: str | int | None) -> Family:
    return families(trace)[0] if place is None else family_of(trace, trace.find(place))
