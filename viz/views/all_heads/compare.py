"""Heads beside heads: one head on two sentences, or of two models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from model.analysis.heads.statistics import (
    distance,
    entropy,
    family_of,
    heads_of,
)
from model.download.entries import is_on_disk
from model.loading.registry import hub_models, models, others_allowed
from model.nn.places import Head, head_label
from model.profile.shipped import profile_of
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.figures.room import aligned_tops
from viz.notation.head_labels import given_labels
from viz.notation.labels import plotly_words
from viz.notation.markdown import bold_token, plain
from viz.notation.words import sentences_of
from viz.shell.model_picker import model_title
from viz.shell.panel import (
    Caption,
    Columns,
    Panel,
    below_controls,
    refusals,
)
from viz.shell.pictures import of_all_pairs, readout_of
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, is_loaded, labels_of, loaded, traced
from viz.state.presets import EXAMPLES
from viz.state.session import change_view, current, second_text, shown, write_link
from viz.views.all_heads.choice import choose_family, name_of
from viz.views.corpus.views import WeightCell, strongest

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("all_heads.compare")


@of_all_pairs
def two_sentences(look: Look) -> Panel:
    """The head on the visitor's sentence and on a second one; of a recorded run, another head of it."""
    choose_family(look)
    text = _second_text(look, look.request.model)
    return _compared(look, look.request.model, text)


@of_all_pairs
def two_models(look: Look) -> Panel:
    """The head and one of another model, on the same sentence unless another one is typed."""
    choose_family(look)
    # The model on the right: one that is chosen, else the first that ships beside the open one.
    own, chosen = look.request.model, current().second_model
    here = [name for name, entry in hub_models.items() if others_allowed() and is_on_disk(entry)]
    names = [name for name in dict.fromkeys([*models, *here]) if name != own]
    start = chosen if chosen in names else names[0]
    model: str = st.selectbox(
        say("model_right"),
        names,
        format_func=model_title,
        **shown(
            "compare-second-model",
            start,
            lambda picked: change_view(replace(current(), second_model=picked)),
        ),
    )
    return _compared(look, model, _second_text(look, model))


def _compared(look: Look, model: str, text: str) -> Panel:
    """The chosen head on the left, what is chosen above on the right, both on one scale."""
    here = ComparedHead(
        look.trace, look.attention, look.head, f"{_own_name(look)} on your sentence"
    )
    with refusals():  # where that model cannot read the text
        there = _there(look, model, text)
    among = others(*((one.attention, one.cell) for one in (here, there)))
    return Panel(
        f"compare-{model}",
        look_for=say(
            "frame_marks_strongest",
            among=among,
            strongest_words=here.strongest_words(),
            there_strongest_words=there.strongest_words(),
        ),
        picture=side_by_side([one.panel(name) for one, name in ((here, "here"), (there, "there"))]),
        below=[write_link],
    )


def others(*strongest_of: tuple[Attention, WeightCell]) -> str:
    """Which weights `strongest` has passed over in some heads, in words."""
    if all(attention.kind == "cross" for attention, _ in strongest_of):
        return ""
    if any(
        key in (0, query) for attention, (query, key) in strongest_of if attention.kind != "cross"
    ):
        return say("itself_first_token")
    return say("token_other_itself")


def side_by_side(panels: Sequence[Panel]) -> Columns:
    """Maps whose first rows stand at one height, whatever their labels are."""
    figures = [one.picture for one in panels if isinstance(one.picture, go.Figure)]
    aligned_tops(figures)
    return Columns(panels)


def _own_name(look: Look) -> str:
    return name_of(look, (look.place, look.head))


@dataclass(frozen=True)
class ComparedHead:
    """One of two heads."""

    trace: Trace
    attention: Attention
    head: int
    title: str

    @property
    def weights(self) -> Array:
        return self.attention.weights(self.head)

    @property
    def cell(self) -> WeightCell:
        """Query and key of the strongest weight."""
        return strongest(self.weights, self.attention)

    def strongest_words(self) -> str:
        (query, key), (queries, keys) = self.cell, labels_of(self.trace, self.attention)
        return (
            f"{plain(self.title)} {self.weights[query, key]:.2f}, from {bold_token(queries[query])} on "
            f"{bold_token(keys[key])}"
        )

    def panel(self, name: str) -> Panel:
        queries, keys = labels_of(self.trace, self.attention)
        query, key = self.cell
        weights = self.weights
        words = say(
            "mean_entropy_nats",
            float=float(entropy(weights).mean()),
            weights_float=float(weights.max(-1).mean()),
        )
        if self.attention.kind != "cross":
            words += say("mean_distance_between", distance=distance(weights))
        figure = weights_of_head(
            self.attention, self.head, queries=queries, keys=keys, fitting=NARROW, cell=self.cell
        )
        return Panel(
            f"compare-{name}",
            picture=headed(figure, plotly_words(self.title)),
            below=[
                partial(readout_of, self.attention, self.head, queries, keys, query=query, key=key),
                Caption(f"{words}."),
            ],
        )


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
        say("sentence_right"),
        max_chars=TEXT_LIMIT,
        **second_text("compare-second-text", start),
    )


def _there(look: Look, model: str, text: str) -> ComparedHead:
    """The head on the right: the same one, or in another model or a recorded run one that is chosen there.
    Raises ValueError where that model cannot read the text."""
    if not is_loaded(model):
        with below_controls():
            waits = st.empty()
        bar = waits.progress(0.0, text=f"Loading {plain(model_title(model))}")
        loaded(model, lambda sentence, share: bar.progress(share or 0.0, text=plain(sentence)))
        waits.empty()
    changed = loaded(model).changed
    request = replace(
        look.request, model=model, text=text, target=None, continued=(), changed=changed
    )
    trace = traced(request)
    if model == look.request.model and look.model.runs:
        attention = trace.find(look.place)
        return ComparedHead(
            trace, attention, look.head, say("other_sentence", own_name=_own_name(look))
        )
    own = family_of(look.trace, look.attention)
    heads = heads_of(own.members(trace) or trace.attention)
    labels = [head_label(head) for head in heads]
    alike = _same_job(look, loaded(model), heads)
    place, head = heads[one_listed(say("head_right"), labels, f"compare-head-{model}", first=alike)]
    attention = trace.find(place)
    of = model_title(model) if model != look.request.model else "the same run"
    return ComparedHead(trace, attention, head, f"{attention.place.head(head)} of {of}")


def _same_job(look: Look, other: "Model", heads: Sequence[Head]) -> int:
    """The number of the first head of another model that has a job of the chosen one; 0 where none has."""
    ours, theirs = profile_of(look.model), profile_of(other)
    if ours is None or theirs is None:
        return 0
    given, rows = given_labels(ours), given_labels(theirs)
    mine = given[(given["layer"] == look.place) & (given["head"] == look.head)]["label"]
    for label in mine:
        alike = rows[rows["label"] == label]
        for head in zip(alike["layer"], alike["head"], strict=True):
            if head in heads:
                return heads.index(head)
    return 0
