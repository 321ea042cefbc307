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
from viz.notation.numbers import leaders
from viz.notation.words import sentences_of
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

say = sentences_of("all_heads.averages")

LAYER, ALL, ROLLED = "Mean of a layer", say("mean_heads"), "Rollout"


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
        label = say("up_including_layer") if kind == ROLLED else "Layer"
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
    taken = say("heads_sinks_take", most_sinks=sinks.max())
    table = None
    if len(queries) <= TABLED:  # the cells are those of single tokens
        columns = dict(zip(numbered_labels(keys), mean.cells.T, strict=True))
        table = Table({"query": numbered_labels(queries), **columns})
    figure = heatmap(
        mean.cells,
        rows=Axis("query", queries),
        columns=Axis("key" if kind != ROLLED else say("token_text"), keys),
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
            say("check_every_row", taken=taken if sinks.any() else "", off=off),
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
                    say(
                        "not_quantity_model",
                        kind_meaning=_MEANING[kind],
                        kind_left_out=_LEFT_OUT[kind],
                    ),
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
        return say("token_stands_out", most_share=share.max())
    place = bold_token(keys[most], most)
    if kind != ROLLED:
        more = say("more_any_other_token") * (len(keys) > 1)
        return say("gets_mean_weight", place=place, most_share=share[most], more=more)
    gain = say("early_tokens_always")
    words = say("layer_mean_share", place=place, most_share=share[most])
    return f"{words}{gain if looks_back else ''}."


_HIDES = say("mean_hides_single")
_LEFT_OUT = {
    LAYER: _HIDES,
    ALL: _HIDES,
    ROLLED: say("rollout_leaves_out"),
}
_MEANING = {
    LAYER: say("mean_over_h_heads"),
    ALL: say("mean_over_heads"),
    ROLLED: say("much_token_text"),
}
