"""The same head on two sentences, or a head of one model beside one of another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.heads.families import Family, family_of, head_label
from model.analysis.heads.statistics import distance, entropy
from model.download.sources import is_on_disk
from model.loading.registry import hub_models, models, others_allowed
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.figures.heatmap import NARROW, weights_of_head
from viz.notation.markdown import plain
from viz.shell import pictures
from viz.shell.controls import choose_head, choose_layer
from viz.shell.model_picker import model_title
from viz.shell.token_select import keep_within
from viz.state.engine import engine
from viz.state.examples import EXAMPLES
from viz.state.held import loaded, traced
from viz.state.look import Look
from viz.state.session import change_view, current, write_link
from viz.state.view import TEXT_LIMIT
from viz.views.all_heads.choice import choose_family, name_of

TEXT, MODEL = "all-heads-second-text", "all-heads-second-model"
LAYER, HEAD = "all-heads-second-layer", "all-heads-second-head"


@dataclass(frozen=True)
class Side:
    """One of the two heads that are compared."""

    trace: Trace
    attention: Attention
    head: int
    title: str

    def tokens(self) -> tuple[list[str], list[str]]:
        """The texts of the tokens that look, and of those looked at."""
        queries, keys = self.trace.queries_of(self.attention), self.trace.keys_of(self.attention)
        return [token.text for token in queries], [token.text for token in keys]


def compare(seen: Look) -> None:
    """Two heatmaps on one scale, of heads that are chosen above them."""
    st.markdown(
        "**What to look for.** A head that looks by position draws the same figure on any sentence; "
        "one that looks by content changes with the words."
    )
    family = choose_family(seen)
    boxes = st.columns([2, 1])
    second_model = _second_model(seen, boxes[1])
    text = _second_text(seen, second_model, boxes[0])
    choices = st.columns(4)
    one = _here(seen, family, choices[:2])
    other = _there(seen, family, second_model, text, choices[2:])
    for box, side, key in zip(
        st.columns(2, gap="large"), (one, other), ("here", "there"), strict=True
    ):
        if side is not None:
            with box:
                _picture(side, key)
    st.caption("Both pictures share the scale from 0 to 1.")
    write_link()


def _second_model(seen: Look, box: DeltaGenerator) -> str:
    """The model on the right: the same one unless another is chosen."""
    here = [name for name, entry in hub_models.items() if others_allowed() and is_on_disk(entry)]
    names = list(dict.fromkeys([*models, *here, seen.model.name]))
    chosen = current().second_model
    st.session_state[MODEL] = chosen if chosen in names else seen.model.name

    def take() -> None:
        picked = st.session_state[MODEL]
        change_view(replace(current(), second_model="" if picked == seen.model.name else picked))

    model: str = box.selectbox(
        "Model on the right",
        names,
        format_func=model_title,
        key=MODEL,
        on_change=take,
    )
    return model


def _second_text(seen: Look, model: str, box: DeltaGenerator) -> str:
    """The sentence on the right: the visitor's, or one to start from."""
    start = seen.request.text if model != seen.model.name else _another(seen)
    st.session_state[TEXT] = current().second_text or start

    def take() -> None:
        typed = st.session_state[TEXT]
        change_view(replace(current(), second_text=typed))

    text: str = box.text_input(
        "Sentence on the right", max_chars=TEXT_LIMIT, key=TEXT, on_change=take
    )
    return text


def _another(seen: Look) -> str:
    """Another sentence for the same model: an example of its own, else the words turned round."""
    texts = [one.text for one in EXAMPLES if one.model == seen.model.name]
    others = [text for text in texts if text != seen.request.text]
    return others[0] if others else " ".join(reversed(seen.request.text.split()))


def _here(seen: Look, family: Family, boxes: Sequence[DeltaGenerator]) -> Side:
    with boxes[0]:
        choose_layer([attention.name for attention in family.members(seen.trace)])
    attention = seen.trace.find(current().place)
    with boxes[1]:
        head = choose_head(attention.heads)
    title = f"{name_of(seen, (attention.name, head))} on your sentence"
    return Side(seen.trace, attention, head, title)


def _there(
    seen: Look, family: Family, model: str, text: str, boxes: Sequence[DeltaGenerator]
) -> Side | None:
    """The head on the right: the same one, or in another model one that is chosen there."""
    try:
        trace = _second_trace(seen, model, text)
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None
    if model == seen.model.name:
        attention, head = trace.find(current().place), current().head
        title = f"{name_of(seen, (attention.name, head))} on the sentence on the right"
        return Side(trace, attention, head, title)
    known = [one for one in trace.attention if family_of(one) == family] or list(trace.attention)
    names = [one.name for one in known]
    keep_within(LAYER, len(known))
    place = boxes[0].selectbox(
        "Layer on the right", range(len(known)), format_func=names.__getitem__, key=LAYER
    )
    attention = known[place]
    keep_within(HEAD, attention.heads)
    head = boxes[1].selectbox("Head on the right", range(attention.heads), key=HEAD)
    return Side(trace, attention, head, f"{head_label((attention.name, head))} of {model}")


def _second_trace(seen: Look, name: str, text: str) -> Trace:
    if not engine().has(name):
        place = st.empty()
        bar = place.progress(0.0, text=f"Loading {plain(model_title(name))}")
        loaded(name, lambda sentence, share: bar.progress(share or 0.0, text=plain(sentence)))
        place.empty()
    request = replace(seen.request, model=name, text=text, target=None, continued=())
    return traced(request)


def _picture(side: Side, key: str) -> None:
    queries, keys = side.tokens()
    st.markdown(f"**{plain(side.title)}**")
    pictures.chart(
        weights_of_head(side.attention, side.head, queries=queries, keys=keys, fitting=NARROW),
        f"all-heads-compare-{key}",
    )
    weights = side.attention.weights(side.head)
    said = (
        f"Mean entropy {float(entropy(weights).mean()):.2f} nats, mean largest weight "
        f"{float(weights.max(-1).mean()):.2f}"
    )
    if side.attention.kind != "cross":
        said += f", mean distance between query and key {distance(weights):.2f} tokens"
    st.caption(f"{said}.")
