"""The choice of a cross-attention head: those that align best with the gold come first."""

from dataclasses import replace

import streamlit as st

from model.trace.records import Attention
from model.trace.trace import Trace
from model.training.alignment import Links, aligning_head, heads_by_gold
from viz.state.session import change_view, current, write_link

_KEY = "encoder-cross-head"


def choose_cross_head(trace: Trace, links: Links | None) -> tuple[Attention, int]:
    """A layer and a head that read the source; both join the link.

    Where the view stands elsewhere, it is brought to the head that aligns best with the gold links,
    or without any to the one that the model's card names.
    """
    shares = {(head.place, head.number): head.share for head in heads_by_gold(trace, links or ())}
    heads = [
        *shares,
        *(head for head in _cross_heads(trace) if head not in shares),
    ]
    view = current()
    if (view.place, view.head) not in heads:
        place, head = best_cross_head(trace, links)
        change_view(replace(view, place=place, head=head))
        write_link()
    st.session_state[_KEY] = (current().place, current().head)
    st.selectbox(
        "Layer and head" + (", by their weight on gold" if shares else ""),
        heads,
        format_func=lambda head: _label(head, shares.get(head)),
        key=_KEY,
        on_change=_take,
    )
    return trace.find(current().place), current().head


def best_cross_head(trace: Trace, links: Links | None) -> tuple[str, int]:
    """The sub-layer and head that align best with the gold links; without any, the one that the
    model's card names, or the first."""
    ranked = heads_by_gold(trace, links or ())
    if ranked:
        return ranked[0].place, ranked[0].number
    named, heads = aligning_head(trace.model), _cross_heads(trace)
    return named if named in heads and named is not None else heads[0]


def _cross_heads(trace: Trace) -> list[tuple[str, int]]:
    return [
        (attention.name, head)
        for attention in trace.attention
        if attention.kind == "cross"
        for head in range(attention.heads)
    ]


def _label(head: tuple[str, int], share: float | None) -> str:
    place, number = head
    name = f"L{place.split('.')[1]}H{number}"
    return name if share is None else f"{name}: {share:.3f} on gold"


def _take() -> None:
    place, head = st.session_state[_KEY]
    change_view(replace(current(), place=place, head=head))
