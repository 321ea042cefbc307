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
from model.trace.unproven import NotShownError
from model.worked.equality import settled
from viz.elements.one_of import one_listed
from viz.figures.cells import panels
from viz.figures.curves import bias_curves
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look, labels_of

say = sentences_of("positions.biases")

DRAWN = 12  # curves in one picture
TERMS_DRAWN = 40  # tokens in the picture of terms
TERMS = say("content_position_query")


def score_biases(look: Look) -> Panel:
    """The biases of one attention sub-layer and one head."""
    trace = look.baseline or look.trace
    layers = biased(trace)
    names = [layer_label(layer.name) for layer in layers]
    attention = layers[one_listed("Layer", names, f"bias-layer-{len(names)}")]
    heads = [str(head) for head in range(attention.heads)]
    head = one_listed("Head", heads, f"bias-head-{len(heads)}")
    bias = distance_bias(look.model, attention)
    if bias is not None:
        return _by_distance(bias, head, _remarks(look.model.config, attention, layers))
    terms = bias_terms(look.model, attention, head)
    if terms is None:
        raise NotShownError(f"What {attention.name} adds to its scores has no formula here.")
    return _of_terms(attention, terms, labels_of(trace, attention)[0], head)


def _by_distance(bias: DistanceBias, head: int, remarks: Sequence[Part]) -> Panel:
    """The bias of each head by distance; one distance is chosen and written in numbers."""
    nearest, farthest = int(bias.distances[-1]), int(bias.distances[0])
    key = f"bias-distance-{farthest}-{nearest}"
    distance = st.slider("Distance", farthest, nearest, -3, key=key, width=300)
    law, at = bias.law, bias.at(distance)
    slope = 0.0 if bias.slopes is None else float(bias.slopes[head])
    bucket = 0 if bias.buckets is None else int(bias.buckets[at])
    value = float(bias.values[head, at])
    cell = law.cell(distance, value, slope=slope, bucket=bucket, head=head)
    slopes = [] if bias.slopes is None else [Caption(f"Slope of head {head}: m = {slope:.6g}.")]
    first = head // DRAWN * DRAWN
    drawn = bias.values[first : first + DRAWN]
    apart = say("differ_model_added", check=bias.check)
    same = say("equal_model_added")
    words = say("check_over_pairs", apart=apart if bias.check else same)
    remark = law.remark.lstrip()
    if len(bias.values) > DRAWN:
        last = first + len(drawn) - 1
        remark += say("picture_shows_heads", first=first, last=last, values=len(bias.values))
    columns: dict[str, object] = {"distance": bias.distances}
    if bias.buckets is not None:
        columns["bucket"] = bias.buckets
    columns |= {f"head {number}": curve for number, curve in enumerate(bias.values)}
    return Panel(
        "positions-biases",
        look_for=law.look,
        picture=bias_curves(
            bias.distances.tolist(),
            drawn,
            chosen=head,
            first=first,
            stairs=law.in_steps,
            mark=distance,
        ),
        beside=[
            Formula(law.formula(two_ways=nearest > 0)),
            Formula(settled(cell)),
            *slopes,
            *remarks,
            *([Caption(remark)] if remark else []),
        ],
        check=Check(words, bias.check),
        table=Table(columns),
    )


def _remarks(
    config: TransformerConfig, attention: Attention, layers: Sequence[Attention]
) -> list[Part]:
    """The window of the layer; of buckets the sizes in the formula, and whether other layers add the same."""
    remarks: list[Part] = []
    if (width := attention.window) is not None:
        remarks.append(Caption(say("window_layer_distances", width=width)))
    if config.buckets:
        both = attention.stack == "encoder"
        each = config.buckets // 2 if both else config.buckets
        words = f"Here B = {config.buckets}, n = {each}, e = {each // 2} and D = {config.farthest}."
        if both:
            words += say("half_buckets_keys")
        own = [layer.bias for layer in layers if layer.stack == attention.stack]
        if all(np.array_equal(np.asarray(bias), np.asarray(attention.bias)) for bias in own):
            words += say("layers_share_table", own=len(own), stack=attention.stack)
        remarks.append(Caption(words))
    return remarks


def _of_terms(attention: Attention, terms: BiasTerms, tokens: list[str], head: int) -> Panel:
    """The terms as heatmaps side by side, and their sum."""
    count = min(len(tokens), TERMS_DRAWN)
    drawn = {name: term[:count, :count] for name, term in terms.terms.items()}
    mask = attention.mask_of(head)
    hidden = np.zeros((count, count), bool) if mask is None else ~mask[:count, :count]
    words = say("bucket_distance_r", scale=attention.scale)
    if count < len(tokens):
        words += say("picture_shows_first", count=count, tokens=len(tokens))
    columns: dict[str, object] = {
        "query": np.repeat(tokens[:count], count),
        "key": np.tile(tokens[:count], count),
    }
    return Panel(
        "positions-terms",
        look_for=TERMS,
        picture=panels(
            drawn, tokens=tokens[:count], quantity="score", blocked=[hidden] * len(drawn)
        ),
        beside=[
            Formula(
                r"\begin{aligned} s_{ij} = \tfrac{1}{\sqrt{t\,d_k}} \big(& q_i \cdot k_j \\"
                r" {}+{} & q_i \cdot r^{K}_{\delta(i - j)} + k_j \cdot r^{Q}_{\delta(j - i)} \big)"
                r" \end{aligned}"
            ),
            Caption(words),
        ],
        check=Check(
            say("check_over_pairs_terms", check=terms.check),
            terms.check,
        ),
        table=Table(columns | {name: term.ravel() for name, term in drawn.items()}),
    )
