"""Weights of many heads in one picture: means and rollout, which are not the model's own."""

from functools import lru_cache

import numpy as np
import streamlit as st

from model.analysis.heads.families import Family
from model.analysis.heads.statistics import (
    MeanWeights,
    mean_weights,
    reachable,
    rolled,
    sink_share,
)
from model.serving.engine import Request
from model.trace.arrays import Array, Mask, Wide
from model.trace.blocks import block_of, largest_of_blocks
from viz.elements.one_of import one_listed, one_of
from viz.figures.heatmap import Axis, heatmap
from viz.notation.head_formulas import MEAN, ROLLOUT
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import difference, leaders
from viz.shell.pictures import TABLED, chart, look_for, table
from viz.state.held import traced
from viz.state.look import Look
from viz.views.all_heads.choice import choose_family

LAYER, ALL, ROLLED = "Mean of a layer's heads", "Mean of all heads", "Rollout"


@lru_cache(maxsize=16)
def _mean(request: Request, family: Family, layers: range) -> MeanWeights:
    members = family.members(traced(request))
    return mean_weights(members[layers.start : layers.stop])


@lru_cache(maxsize=4)
def _rolled(request: Request, family: Family, layer: int) -> tuple[Array, Mask]:
    """Rollout up to a layer, and where no path leads."""
    layers = family.members(traced(request))[: layer + 1]
    return rolled(layers), ~reachable(layers)


def means_and_rollout(seen: Look) -> None:
    """One matrix for many heads, with what it leaves out."""
    picture, words = st.columns([3, 2], gap="large")
    family = choose_family(seen)
    kinds = (LAYER, ALL) if family.cross else (LAYER, ALL, ROLLED)
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    kind = one_of("Picture", kinds, f"all-heads-means-{len(kinds)}", box=left, quiet=True)
    members = family.members(seen.trace)
    layer = last = len(members) - 1
    if kind != ALL:
        label = "Up to and including layer" if kind == ROLLED else "Layer"
        layers = [str(number) for number in range(last + 1)]
        layer = one_listed(label, layers, "all-heads-means-layer", first=last, box=right)
    words.warning(
        "**Not a quantity of the model.** No head has these weights and nothing in the model "
        f"computes them. {_LEFT_OUT[kind]}"
    )
    counted = range(last + 1) if kind == ALL else range(layer, layer + 1)
    try:
        found = _shown(seen, family, layer if kind == ROLLED else counted)
    except ValueError as refusal:
        picture.info(plain(str(refusal)))
        return
    key = f"all-heads-means-{kind}-{layer}"
    queries = [token.text for token in family.queries(seen.trace)]
    keys = [token.text for token in family.keys(seen.trace)]
    looks_back = family.stack == "decoder" and not family.cross
    look_for(_look_for(kind, found.of_keys, keys, looks_back), words)
    with picture:
        figure = heatmap(
            found.cells,
            rows=Axis("query", queries),
            columns=Axis("key" if kind != ROLLED else "token of the text", keys),
            quantity="weight",
            blocked=found.masked if found.masked.any() else None,
            square=True,
            block=found.block,
        )
        chart(figure, key)
    with words:
        st.latex(ROLLOUT if kind == ROLLED else MEAN)
        st.markdown(_MEANING[kind])
        taken = (
            np.zeros(len(queries))
            if kind == ROLLED
            else sink_share(members[counted.start : counted.stop])
        )
        off = float(np.abs(found.of_queries + taken - 1).max())
        sinks = f", with what the heads' sinks take of it (up to {taken.max():.2f}),"
        st.caption(
            f"Check: every row{sinks if taken.any() else ''} sums to 1, to within {difference(off)}."
        )
    if len(queries) <= TABLED:
        columns = dict(zip(numbered_labels(keys), found.cells.T, strict=True))
        table({"query": numbered_labels(queries), **columns}, key)


def _shown(seen: Look, family: Family, layers: range | int) -> MeanWeights:
    """The mean over some layers, or rollout up to one. Raises ValueError as `rolled`."""
    if isinstance(layers, range):
        return _mean(seen.request, family, layers)
    values, masked = _rolled(seen.request, family, layers)
    block = block_of(*values.shape)
    return MeanWeights(
        block,
        largest_of_blocks(values, block),
        ~largest_of_blocks(~masked, block),
        values.mean(0, dtype=np.float64),
        values.sum(-1, dtype=np.float64),
    )


def _look_for(kind: str, share: Wide, keys: list[str], looks_back: bool) -> str:
    """share (key,): the mean over the queries."""
    most = int(share.argmax())
    if len(leaders(share, decimals=2)) > 1:
        return f"No token stands out: several get a mean weight of {share[most]:.2f}."
    place = bold_token(keys[most], most)
    if kind != ROLLED:
        more = ", more than any other token" * (len(keys) > 1)
        return f"{place} gets a mean weight of {share[most]:.2f}{more}."
    gain = ". Early tokens always gain under a causal mask, because every path leads back to them"
    said = f"By this layer {place} has a mean share of {share[most]:.2f}"
    return f"{said}{gain if looks_back else ''}."


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
