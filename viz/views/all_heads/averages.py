"""The chosen head beside a mean of many, or beside rollout."""

from functools import lru_cache

import numpy as np

from model.analysis.heads.statistics import (
    Family,
    MeanWeights,
    mean_weights,
    reachable,
    rolled,
    sink_share,
)
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.blocks import block_of, largest_of_blocks
from viz.elements.one_of import one_listed
from viz.figures.heatmap import NARROW, Axis, framed, headed, heatmap, weights_of_head
from viz.notation.head_formulas import MEAN, ROLLOUT
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.notation.numbers import difference, leaders
from viz.shell.panel import (
    Check,
    Columns,
    Formula,
    Panel,
    Table,
    refusals,
)
from viz.shell.pictures import TABLED, of_all_pairs
from viz.state.look import Look, traced
from viz.views.all_heads.choice import cell_of, choose_family, name_of
from viz.views.all_heads.compare import side_by_side

LAYER, ALL, ROLLED = "Mean of a layer", "Mean of all heads", "Rollout"


@lru_cache(maxsize=16)
def _averaged(request: Request, family: Family, layers: range, kind: str) -> MeanWeights:
    """The mean over some layers, or rollout up to the last of them. Raises ValueError as `rolled`."""
    members = family.members(traced(request))
    if kind != ROLLED:
        return mean_weights(members[layers.start : layers.stop])
    below = members[: layers.stop]
    values = rolled(below)
    block = block_of(*values.shape)
    return MeanWeights(
        block,
        largest_of_blocks(values, block),
        ~largest_of_blocks(reachable(below), block),
        values.mean(0, dtype=np.float64),
        values.sum(-1, dtype=np.float64),
    )


@of_all_pairs
def averages(look: Look) -> Panel:
    """The chosen head beside one matrix for many heads, with what that leaves out."""
    family = choose_family(look)
    kinds = (LAYER, ALL) if family.cross else (LAYER, ALL, ROLLED)
    kind = kinds[one_listed("On the right", kinds, f"compare-means-{len(kinds)}")]
    members = family.members(look.trace)
    layer = last = len(members) - 1
    if kind != ALL:
        label = "Up to and including layer" if kind == ROLLED else "Layer"
        numbers = [str(number) for number in range(last + 1)]
        own = last if kind == ROLLED else cell_of(look, family)[0]
        layer = one_listed(label, numbers, f"compare-means-layer-{look.place}-{kind}", first=own)
    layers = range(last + 1) if kind == ALL else range(layer, layer + 1)
    with refusals():
        mean = _averaged(look.request, family, layers, kind)
    queries = [token.text for token in family.queries(look.trace)]
    keys = [token.text for token in family.keys(look.trace)]
    sinks = (
        np.zeros(len(queries))
        if kind == ROLLED
        else sink_share(members[layers.start : layers.stop])
    )
    off = float(np.abs(mean.of_queries + sinks - 1).max())
    taken = f", with what the heads' sinks take of it (up to {sinks.max():.2f}),"
    table = None
    if len(queries) <= TABLED:  # the cells are those of single tokens
        columns = dict(zip(numbered_labels(keys), mean.cells.T, strict=True))
        table = Table({"query": numbered_labels(queries), **columns})
    figure = heatmap(
        mean.cells,
        rows=Axis("query", queries),
        columns=Axis("key" if kind != ROLLED else "token of the text", keys),
        quantity="weight",
        blocked=mean.masked if mean.masked.any() else None,
        words=() if len(keys) > NARROW else None,
        square=True,
        block=mean.block,
    )
    if (most := _most(mean.of_keys)) is not None:
        framed(figure, range(len(queries)), [most])
    title = (
        kind if kind == ALL else f"{kind}, {'up to layer' if kind == ROLLED else 'layer'} {layer}"
    )
    combined = Panel(
        f"compare-{kind}-{layer}",
        picture=headed(figure, title),
        check=Check(
            f"Check: every row{taken if sinks.any() else ''} sums to 1, to within {difference(off)}.",
            off,
        ),
        table=table,
    )
    name = name_of(look, (look.place, look.head))
    own = weights_of_head(look.attention, look.head, queries=queries, keys=keys, fitting=NARROW)
    chosen = Panel(f"compare-own-{look.place}-{look.head}", picture=headed(own, f"{name} alone"))
    return Panel(
        "compare-averages",
        look_for=_look_for(
            kind, mean.of_keys, keys, family.stack == "decoder" and not family.cross
        ),
        picture=side_by_side([chosen, combined]),
        below=[
            Columns(
                [
                    "**Not a quantity of the model.** No head has these weights and nothing in the model "
                    f"computes them. {_MEANING[kind]} {_LEFT_OUT[kind]}",
                    Formula(ROLLOUT if kind == ROLLED else MEAN),
                ]
            )
        ],
    )


def _most(share: Wide) -> int | None:
    """The key with the largest share; None where several have it, as far as two decimals tell."""
    return int(share.argmax()) if len(leaders(share, decimals=2)) == 1 else None


def _look_for(kind: str, share: Wide, keys: list[str], looks_back: bool) -> str:
    """share (key,): the mean over the queries."""
    if (most := _most(share)) is None:
        return f"No token stands out: several get a mean weight of {share.max():.2f}."
    place = bold_token(keys[most], most)
    if kind != ROLLED:
        more = ", more than any other token" * (len(keys) > 1)
        return f"{place} gets a mean weight of {share[most]:.2f}{more}."
    gain = ". Early tokens always gain under a causal mask, because every path leads back to them"
    words = f"By this layer {place} has a mean share of {share[most]:.2f}"
    return f"{words}{gain if looks_back else ''}."


_HIDES = "A mean hides what single heads do: two opposite heads look like one that does neither."
_LEFT_OUT = {
    LAYER: _HIDES,
    ALL: _HIDES,
    ROLLED: (
        "Rollout leaves out values, W_O, norms and feed-forward layers, and assumes that half "
        "of every token stays unchanged at each layer."
    ),
}
_MEANING = {
    LAYER: "The mean over the *h* heads of one layer, all with equal weight.",
    ALL: "The mean over all heads of all layers, all with equal weight.",
    ROLLED: (
        "How much of each token of the text this layer and all before it would mix into a "
        "token, if there were only attention weights and shortcuts (Abnar and Zuidema 2020)."
    ),
}
