"""Heads beside heads: one head on two sentences or of two models, and means and rollout of many."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import streamlit as st

from model.analysis.heads.statistics import (
    Family,
    MeanWeights,
    distance,
    entropy,
    mean_weights,
    reachable,
    rolled,
    sink_share,
)
from model.download.entries import is_on_disk
from model.loading.registry import hub_models, models, others_allowed
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.blocks import block_of, largest_of_blocks
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.figures.heatmap import NARROW, Axis, heatmap, weights_of_head
from viz.notation.head_formulas import MEAN, ROLLOUT
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import difference, leaders
from viz.shell.model_picker import model_title
from viz.shell.panel import (
    Caption,
    Check,
    Columns,
    Formula,
    Panel,
    Part,
    Table,
    below_controls,
    refusals,
)
from viz.shell.pictures import TABLED, look_for, of_all_pairs, readout_of
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, is_loaded, labels_of, loaded, traced
from viz.state.presets import EXAMPLES
from viz.state.session import change_view, current, second_text, shown, write_link
from viz.views.all_heads.choice import choose_family, name_of


@of_all_pairs
def compare(look: Look) -> Panel:
    """Two heatmaps on one scale, of heads that are chosen above them."""
    family = choose_family(look)
    model = _second_model(look)
    text = _second_text(look, model)
    here = f"{name_of(look, (look.place, look.head))} on your sentence"
    there: Part
    try:
        there = _there(look, family, model, text)
    except ValueError as refusal:
        there = partial(st.warning, plain(str(refusal)))
    return Panel(
        "all-heads-compare",
        below=[
            Columns([_weights("here", look.trace, look.attention, look.head, here), there]),
            partial(
                look_for,
                "Both pictures use the same scale from 0 to 1. A head that attends by position shows "
                "the same pattern for every sentence; a head that attends by content changes with the "
                "words.",
            ),
            write_link,
        ],
    )


def _second_model(look: Look) -> str:
    """The model on the right: the same one unless another is chosen."""
    own, chosen = look.request.model, current().second_model
    here = [name for name, entry in hub_models.items() if others_allowed() and is_on_disk(entry)]
    names = list(dict.fromkeys([*models, *here, own]))

    def take(picked: str) -> None:
        change_view(replace(current(), second_model="" if picked == own else picked))

    start = chosen if chosen in names else own
    model: str = st.selectbox(
        "Model on the right",
        names,
        format_func=model_title,
        **shown("all-heads-second-model", start, take),
    )
    return model


def _second_text(look: Look, model: str) -> str:
    """The sentence on the right: the visitor's; else the same one for another model and a recorded run, and
    for the same model another one: an example of its own, or the words in reverse order."""
    start = text = look.request.text
    if model == look.request.model and look.model.runs:
        others = [
            one.view.text for one in EXAMPLES if one.view.model == model and one.view.text != text
        ]
        start = others[0] if others else " ".join(reversed(text.split()))
    return st.text_input(
        "Sentence on the right",
        max_chars=TEXT_LIMIT,
        **second_text("all-heads-second-text", start),
    )


def _there(look: Look, family: Family, model: str, text: str) -> Panel:
    """The head on the right: the same one, or in another model or a recorded run one that is chosen there.
    Raises ValueError where that model cannot read the text."""
    if not is_loaded(model):
        with below_controls():
            place = st.empty()
        bar = place.progress(0.0, text=f"Loading {plain(model_title(model))}")
        loaded(model, lambda sentence, share: bar.progress(share or 0.0, text=plain(sentence)))
        place.empty()
    changed = loaded(model).changed
    request = replace(
        look.request, model=model, text=text, target=None, continued=(), changed=changed
    )
    trace = traced(request)
    if model == look.request.model and look.model.runs:
        attention, head = trace.find(current().place), current().head
        title = f"{name_of(look, (attention.name, head))} on the other sentence"
        return _weights("there", trace, attention, head, title)
    known = family.members(trace) or trace.attention
    names = [one.name for one in known]
    attention = known[one_listed("Layer on the right", names, "all-heads-second-layer")]
    heads = [str(head) for head in range(attention.heads)]
    head = one_listed("Head on the right", heads, "all-heads-second-head")
    of = model if look.model.runs or model != look.request.model else "the same run"
    return _weights("there", trace, attention, head, f"{attention.place.head(head)} of {of}")


def _weights(side: str, trace: Trace, attention: Attention, head: int, title: str) -> Panel:
    queries, keys = labels_of(trace, attention)
    weights = attention.weights(head)
    words = (
        f"Mean entropy {float(entropy(weights).mean()):.2f} nats, mean largest weight "
        f"{float(weights.max(-1).mean()):.2f}"
    )
    if attention.kind != "cross":
        words += f", mean distance between query and key {distance(weights):.2f} tokens"
    return Panel(
        f"all-heads-compare-{side}",
        picture=weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW),
        below=[
            f"**{plain(title)}**",  # below: on a phone nothing else fits above the picture
            partial(readout_of, attention, head, queries, keys),
            Caption(f"{words}."),
        ],
    )


LAYER, ALL, ROLLED = "Mean of a layer's heads", "Mean of all heads", "Rollout"


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


def means_and_rollout(look: Look) -> Panel:
    """One matrix for many heads, with what it leaves out."""
    family = choose_family(look)
    kinds = (LAYER, ALL) if family.cross else (LAYER, ALL, ROLLED)
    kind = one_of("Picture", kinds, f"all-heads-means-{len(kinds)}")
    members = family.members(look.trace)
    layer = last = len(members) - 1
    if kind != ALL:
        label = "Up to and including layer" if kind == ROLLED else "Layer"
        numbers = [str(number) for number in range(last + 1)]
        layer = one_listed(label, numbers, "all-heads-means-layer", first=last)
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
    return Panel(
        f"all-heads-means-{kind}-{layer}",
        look_for=_look_for(
            kind, mean.of_keys, keys, family.stack == "decoder" and not family.cross
        ),
        picture=heatmap(
            mean.cells,
            rows=Axis("query", queries),
            columns=Axis("key" if kind != ROLLED else "token of the text", keys),
            quantity="weight",
            blocked=mean.masked if mean.masked.any() else None,
            square=True,
            block=mean.block,
        ),
        beside=[
            partial(
                st.warning,
                "**Not a quantity of the model.** No head has these weights and nothing in the model "
                f"computes them. {_LEFT_OUT[kind]}",
            ),
            Formula(ROLLOUT if kind == ROLLED else MEAN),
            _MEANING[kind],
        ],
        check=Check(
            f"Check: every row{taken if sinks.any() else ''} sums to 1, to within {difference(off)}.",
            off,
        ),
        table=table,
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
