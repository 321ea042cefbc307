"""The same head on two sentences, or a head of one model beside one of another."""

from dataclasses import dataclass, replace

import streamlit as st

from model.analysis.heads.families import Family
from model.analysis.heads.statistics import distance, entropy
from model.download.sources import is_on_disk
from model.loading.registry import hub_models, models, others_allowed
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed
from viz.figures.heatmap import NARROW, weights_of_head
from viz.notation.markdown import plain
from viz.shell.model_picker import model_title
from viz.shell.pictures import chart, look_for, of_all_pairs, readout_of
from viz.state.examples import EXAMPLES
from viz.state.held import is_loaded, loaded, traced
from viz.state.look import Look, labels_of
from viz.state.session import change_view, current, second_text, shown, write_link
from viz.state.view import TEXT_LIMIT
from viz.views.all_heads.choice import choose_family, name_of


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
