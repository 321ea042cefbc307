"""Heads beside heads: one head on two sentences or of two models, means and rollout of many, and a run in
which no token attends to one."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import streamlit as st

from model.analysis.heads.sinks import TokenAsKey, hiding, moved_weight
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
from model.trace.arrays import Array, Mask, Wide
from model.trace.blocks import block_of, largest_of_blocks
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.figures.heatmap import NARROW, Axis, heatmap, weights_of_head
from viz.notation.head_formulas import MEAN, ROLLOUT
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import difference, leaders, signed
from viz.shell.model_picker import model_title
from viz.shell.pictures import TABLED, chart, look_for, of_all_pairs, readout_of, table
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, is_loaded, labels_of, loaded, traced
from viz.state.navigation import view_link
from viz.state.presets import EXAMPLES
from viz.state.session import change_view, current, second_text, shown, write_link
from viz.views.all_heads.choice import choose_family, name_of
from viz.views.laboratory.effects import Effect, effects


@dataclass(frozen=True)
class Side:
    trace: Trace
    attention: Attention
    head: int
    title: str


@of_all_pairs
def compare(seen: Look) -> None:
    """Two heatmaps on one scale, of heads that are chosen above them."""
    left, right = st.columns(2, gap="large")
    with right:
        picture = st.container()
        family = choose_family(seen)
        model = _second_model(seen)
        text = _second_text(seen, model)
        other = _there(seen, family, model, text)
        if other is not None:
            with picture:
                _picture(other, "there")
    attention, head = seen.attention, seen.head
    here = f"{name_of(seen, (attention.name, head))} on your sentence"
    with left:
        _picture(Side(seen.trace, attention, head, here), "here")
        look_for(
            "Both pictures use the same scale from 0 to 1. A head that attends by position shows "
            "the same pattern for every sentence; a head that attends by content changes with the "
            "words."
        )
    write_link()


def _second_model(seen: Look) -> str:
    """The model on the right: the same one unless another is chosen."""
    own, chosen = seen.request.model, current().second_model
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


def _second_text(seen: Look, model: str) -> str:
    """The sentence on the right: the visitor's; else the same one for another model and a recorded run, and
    for the same model another one: an example of its own, or the words in reverse order."""
    start = text = seen.request.text
    if model == seen.request.model and seen.model.runs:
        others = [
            one.view.text for one in EXAMPLES if one.view.model == model and one.view.text != text
        ]
        start = others[0] if others else " ".join(reversed(text.split()))
    return st.text_input(
        "Sentence on the right",
        max_chars=TEXT_LIMIT,
        **second_text("all-heads-second-text", start),
    )


def _there(seen: Look, family: Family, model: str, text: str) -> Side | None:
    """The head on the right: the same one, or in another model or a recorded run one that is chosen there."""
    try:
        trace = _second_trace(seen, model, text)
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None
    if model == seen.request.model and seen.model.runs:
        attention, head = trace.find(current().place), current().head
        title = f"{name_of(seen, (attention.name, head))} on the other sentence"
        return Side(trace, attention, head, title)
    known = family.members(trace) or trace.attention
    boxes = st.columns(2)
    names = [one.name for one in known]
    attention = known[one_listed("Layer on the right", names, _LAYER, box=boxes[0])]
    heads = [str(head) for head in range(attention.heads)]
    head = one_listed("Head on the right", heads, _HEAD, box=boxes[1])
    of = model if seen.model.runs or model != seen.request.model else "the same run"
    return Side(trace, attention, head, f"{attention.place.head(head)} of {of}")


_LAYER, _HEAD = "all-heads-second-layer", "all-heads-second-head"


def _second_trace(seen: Look, name: str, text: str) -> Trace:
    if not is_loaded(name):
        place = st.empty()
        bar = place.progress(0.0, text=f"Loading {plain(model_title(name))}")
        loaded(name, lambda sentence, share: bar.progress(share or 0.0, text=plain(sentence)))
        place.empty()
    changed = loaded(name).changed
    request = replace(
        seen.request, model=name, text=text, target=None, continued=(), changed=changed
    )
    return traced(request)


def _picture(side: Side, key: str) -> None:
    queries, keys = labels_of(side.trace, side.attention)
    chart(
        weights_of_head(side.attention, side.head, queries=queries, keys=keys, fitting=NARROW),
        f"all-heads-compare-{key}",
    )
    st.markdown(f"**{plain(side.title)}**")  # below: on a phone nothing else fits above the picture
    readout_of(side.attention, side.head, queries, keys)
    weights = side.attention.weights(side.head)
    said = (
        f"Mean entropy {float(entropy(weights).mean()):.2f} nats, mean largest weight "
        f"{float(weights.max(-1).mean()):.2f}"
    )
    if side.attention.kind != "cross":
        said += f", mean distance between query and key {distance(weights):.2f} tokens"
    st.caption(f"{said}.")


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


NAMED = 3  # tokens to which the weight goes


@lru_cache(maxsize=16)
def _moved(request: Request, hidden: Request, family: Family, position: int) -> Wide:
    return moved_weight(traced(request), traced(hidden), family, position)


def has_sinks(seen: Look, family: Family) -> bool:
    """Whether heads of the family have a learned sink."""
    return any(one.sinks is not None for one in family.members(seen.trace))


def hidden(seen: Look, family: Family, position: int) -> Look:
    """The run in which no other token attends to that one."""
    intervention = hiding(seen.trace, family, position)
    return Look(replace(seen.request, intervention=intervention))


def draw_moved(seen: Look, family: Family, position: int) -> None:
    """By layer and key: the weight that the hidden token loses and the others gain."""
    before, hidden = seen.requests[1], seen.request
    layers = len(family.members(seen.trace))
    moved = _moved(before, hidden, family, position).reshape(layers, -1, len(_keys(seen, family)))
    figure = heatmap(
        moved.mean(1),
        rows=Axis("layer", [str(layer) for layer in range(layers)], tokens=False),
        columns=Axis("key", _keys(seen, family)),
        quantity="difference",
        height=min(max(26 * layers + 130, 220), 800),
    )
    figure.data[-1].colorbar.title = {"text": "change of weight", "side": "right"}
    chart(figure, f"all-heads-first-moved-{position}")


def _keys(seen: Look, family: Family) -> list[str]:
    return [token.text for token in family.keys(seen.trace)]


def say_moved(seen: Look, family: Family, found: TokenAsKey, token: str) -> None:
    """To which tokens the weight goes, and a link to the run in the laboratory."""
    moved = np.nanmean(_moved(seen.requests[1], seen.request, family, found.position), axis=0)
    keys = _keys(seen, family)
    ranked = np.argsort(-moved, kind="stable")[:NAMED].tolist()
    most = [key for key in ranked if round(moved[key], 2) > 0]
    gains = [f"{bold_token(keys[key], key)} {signed(f'{moved[key]:+.2f}')}" for key in most]
    if has_sinks(seen, family):
        gains.append(f"the learned sink {signed(f'{-moved.sum():+.2f}')}")
    goes = f": {', '.join(gains)}" if gains else ", each a little"
    look_for(
        f"{token} is hidden from the other tokens. It had {np.nanmean(found.weight):.2f} of their weight, on "
        f"average over the heads. Others gain what it loses{goes}. The picture shows by layer how much each "
        "key's mean weight changes. A later layer also reads what the earlier ones have changed."
    )
    read = "encoder" if family.cross else family.stack
    own_row = found.position if read == seen.model.stacks()[-1] else None
    told = effects(seen, traced(seen.requests[1]), seen.trace, hidden=own_row)
    st.markdown(" · ".join(map(_written, told)))
    view = replace(current(), show="", intervention=seen.request.intervention)
    view_link("pages/laboratory.py", "Open this run in the laboratory →", view)


def _written(effect: Effect) -> str:
    """An effect on one line: its name, the number before and after."""
    was = f"{plain(effect.before)} → " if effect.before else ""
    return f"{effect.name}: {was}**{plain(effect.after)}**"
