"""The three attentions of an encoder–decoder in the explorer, one kind at a time."""

from dataclasses import dataclass, replace

import streamlit as st

from model.trace.trace import Trace
from model.training.alignment import links_of
from viz.shell.controls import choose_layer
from viz.shell.page import explore
from viz.state.look import Look
from viz.state.session import change_view, current
from viz.views.translation.head import best_cross_head
from viz.views.translation.run import whose_french, with_target

_KIND = "encoder-kind"


@dataclass(frozen=True)
class Kind:
    """One kind of attention: which sub-layers it has, and who looks at whom."""

    title: str
    stack: str
    layer: str
    look_for: str

    def names(self, trace: Trace) -> list[str]:
        """The sub-layers of this kind."""
        return [
            attention.name
            for attention in trace.attention
            if attention.stack == self.stack and attention.name.endswith(f".{self.layer}")
        ]


KINDS = (
    Kind(
        "Encoder self-attention",
        "encoder",
        "self",
        "English looks at English, in both directions: nothing is masked.",
    ),
    Kind(
        "Masked decoder self-attention",
        "decoder",
        "self",
        "French looks at French. The grey cells are the future, which is not allowed.",
    ),
    Kind(
        "Cross-attention",
        "decoder",
        "cross",
        "French (rows) looks at English (columns): queries from the decoder, keys and values from "
        "the encoder. The row of a word is what is read to write the next one.",
    ),
)


def three_attentions(seen: Look) -> None:
    """The page's third view: any layer and head of the chosen kind, cell by cell."""
    look = with_target(seen, current().target)
    trace = look.trace
    here = next((kind for kind in KINDS if current().place in kind.names(trace)), KINDS[2])
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        st.session_state[_KIND] = here.title
        st.segmented_control(
            "Which attention",
            [kind.title for kind in KINDS],
            required=True,
            key=_KIND,
            on_change=_take,
            args=(look,),
        )
    with right:
        choose_layer(here.names(trace))
    st.markdown(f"**What to look for.** {here.look_for}")
    whose_french()
    explore(look)


def _take(look: Look) -> None:
    """The first layer of the kind; of cross-attention the head that aligns best."""
    trace = look.trace
    kind = next(kind for kind in KINDS if kind.title == st.session_state[_KIND])
    place, head = kind.names(trace)[0], 0
    if kind.layer == "cross":
        place, head = best_cross_head(trace, links_of(trace))
    change_view(replace(current(), place=place, head=head))
