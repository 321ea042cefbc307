"""What is added to the scores: a number for each distance and head, or the terms of DeBERTa."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from model.analysis.stream.positions import (
    BiasTerms,
    DistanceBias,
    bias_terms,
    biased,
    distance_bias,
)
from model.nn.config import TransformerConfig
from model.nn.places import layer_label
from model.trace.records import Attention
from viz.elements.one_of import one_listed
from viz.figures.cells import panels
from viz.figures.curves import bias_curves
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, labels_of
from viz.views.positions.formulas import bias_formula, bias_in_numbers

DRAWN = 12  # curves in one picture
TERMS_DRAWN = 40  # tokens in the picture of terms
ALIBI = (
    "Each head subtracts its own slope for every step of distance. A steep head reads its neighbours, a "
    "flat one hardly notices the distance."
)
BUCKETS = (
    "Each bucket of distances has one learned number. Short distances have a bucket each, so the curve "
    "may change at every token; far ones share a bucket, so it turns into stairs."
)
TERMS = (
    "In “content → position” a query says which distances it looks for, in “position → content” a key says "
    "from which distance it wants to be read. Both are added to query · key."
)


def score_biases(seen: Look) -> None:
    """The biases of one attention sub-layer and one head."""
    trace = seen.baseline or seen.trace
    layers = biased(trace)
    picture, choices = st.columns([3, 2], gap="large")
    with choices:
        above = st.container()
        left, right = st.columns(2)
        names = [layer_label(layer.name) for layer in layers]
        number = one_listed("Layer", names, f"bias-layer-{len(names)}", box=left)
        attention = layers[number]
        heads = [str(head) for head in range(attention.heads)]
        head = one_listed("Head", heads, f"bias-head-{len(heads)}", box=right)
    found = distance_bias(seen.model, attention)
    if found is not None:
        with choices:
            look_for(ALIBI if found.kind == "alibi" else BUCKETS, above)
            distance = _at_a_distance(found, head)
            if attention.window is not None:
                width = attention.window
                st.caption(
                    f"The window of this layer is {width}: distances of {width} or more are never read."
                )
            if found.kind == "buckets":
                _say_buckets(seen.model.config, attention, layers)
        with picture:
            _curves(found, head, distance)
        return
    terms = bias_terms(seen.model, attention, head)
    tokens = labels_of(trace, attention)[0]
    with picture:
        _terms(attention, terms, tokens, head)
    if terms is not None:
        with choices:
            look_for(TERMS, above)
            _sum_of_terms(attention)


def _curves(found: DistanceBias, head: int, distance: int) -> None:
    """The bias of each head by distance. distance: the chosen one, marked."""
    first = head // DRAWN * DRAWN
    drawn = found.values[first : first + DRAWN]
    figure = bias_curves(
        found.distances.tolist(),
        drawn,
        chosen=head,
        first=first,
        stairs=found.kind == "buckets",
        mark=distance,
    )
    chart(figure, "positions-biases")
    apart = f"differ from what the model added by at most {difference(found.check)}"
    same = "equal what the model added"
    said = f"Check: over all pairs of your sentence these {apart if found.check else same}."
    if found.kind == "alibi":
        said += (
            " They are given relative to the token itself: a number that is added to a whole row of scores "
            "changes no weight."
        )
    if len(found.values) > DRAWN:
        last = first + len(drawn) - 1
        said += f" The picture shows heads {first} to {last} of {len(found.values)}."
    st.caption(said)
    columns: dict[str, object] = {"distance": found.distances}
    if found.buckets is not None:
        columns["bucket"] = found.buckets
    columns |= {f"head {number}": curve for number, curve in enumerate(found.values)}
    table(columns, "positions-biases")


def _at_a_distance(found: DistanceBias, head: int) -> int:
    """The formula, and one distance with its numbers; that distance."""
    both = bool(found.distances[-1] > 0)
    st.latex(bias_formula(found.kind, two_ways=both))
    nearest, farthest = int(found.distances[-1]), int(found.distances[0])
    distance = st.slider(
        "Distance", farthest, nearest, -3, key=f"bias-distance-{farthest}-{nearest}"
    )
    at = found.at(distance)
    value = float(found.values[head, at])
    slope = 0.0 if found.slopes is None else float(found.slopes[head])
    bucket = 0 if found.buckets is None else int(found.buckets[at])
    st.latex(bias_in_numbers(found.kind, distance, value, slope=slope, bucket=bucket, head=head))
    if found.slopes is not None:
        st.caption(f"Slope of head {head}: m = {slope:.6g}.")
    return distance


def _say_buckets(
    config: TransformerConfig, attention: Attention, layers: Sequence[Attention]
) -> None:
    """The sizes in the formula, and whether other layers add the same."""
    both = attention.stack == "encoder"
    each = config.buckets // 2 if both else config.buckets
    said = f"Here B = {config.buckets}, n = {each}, e = {each // 2} and D = {config.farthest}."
    if both:
        said += " One half of the buckets is for keys that come later."
    own = [layer.bias for layer in layers if layer.stack == attention.stack]
    if all(np.array_equal(np.asarray(bias), np.asarray(attention.bias)) for bias in own):
        said += f" All {len(own)} layers of the {attention.stack} share this table W."
    st.caption(said)


def _terms(attention: Attention, terms: BiasTerms | None, tokens: list[str], head: int) -> None:
    """The terms as heatmaps side by side, and their sum."""
    if terms is None:
        st.info(plain(f"What {attention.name} adds to its scores has no formula here."))
        return
    count = min(len(tokens), TERMS_DRAWN)
    drawn = {name: term[:count, :count] for name, term in terms.terms.items()}
    mask = attention.mask_of(head)
    hidden = np.zeros((count, count), bool) if mask is None else ~mask[:count, :count]
    chart(
        panels(drawn, tokens=tokens[:count], quantity="score", blocked=[hidden] * len(drawn)),
        "positions-terms",
    )
    said = (
        "Check: over all pairs the terms add up to what the model added, up to "
        f"{difference(terms.check)}."
    )
    if count < len(tokens):
        said += f" The picture shows the first {count} of {len(tokens)} tokens."
    st.caption(said)
    columns: dict[str, object] = {
        "query": np.repeat(tokens[:count], count),
        "key": np.tile(tokens[:count], count),
    }
    table(columns | {name: term.ravel() for name, term in drawn.items()}, "positions-terms")


def _sum_of_terms(attention: Attention) -> None:
    st.latex(
        r"\begin{aligned} s_{ij} = \tfrac{1}{\sqrt{t\,d_k}} \big(& q_i \cdot k_j \\"
        r" {}+{} & q_i \cdot r^{K}_{\delta(i - j)} + k_j \cdot r^{Q}_{\delta(j - i)} \big) \end{aligned}"
    )
    st.caption(
        f"δ is the bucket of a distance, r its learned vector, mapped to a key or a query; t counts the "
        f"terms. The factor is {attention.scale:.4g}."
    )
