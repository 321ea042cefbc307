"""What the views of a translation share: the French that the decoder reads, and a cross-attention head."""

import html
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.nn.places import head_label
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from model.training.alignment import Links, aligning_head, heads_by_reference
from viz.notation.labels import token_label
from viz.notation.theme import WEIGHT, rgba
from viz.shell.pictures import readout_of
from viz.state.look import Look, labels_of
from viz.state.session import change_view, current, shown, write_link

_LINE = "font-size:1.15rem; line-height:1.7; overflow-wrap:anywhere; margin:0"
_NEW = f"background:{rgba(WEIGHT, 0.22)};color:inherit;border-radius:3px;padding:0 3px"


def with_target(seen: Look, target: str | None) -> Look:
    """The same look with another target; None: the model's own."""
    return replace(seen, request=replace(seen.request, target=target))


def written_ids(trace: Trace) -> tuple[int, ...]:
    """The ids of the target without its start token, and the one that the model would write next. Raises
    ValueError for a model that predicts nothing."""
    if trace.prediction is None:
        raise ValueError(f"{trace.model} predicts no next word.")
    return (
        *(token.id for token in trace.target_tokens[1:]),
        int(trace.prediction.after(-1).argmax()),
    )


def whose_french() -> None:
    """Says that the reader's own French is shown, and leads back to the model's."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if current().target is not None:
            st.caption("This is your own French.")
            st.button(
                "Back to the model's French",
                key="encoder-own-target",
                on_click=lambda: change_view(replace(current(), target=None)),
            )


def french_line(words: Sequence[Token]) -> None:
    """Words in a row; the last one, which is new, is marked."""
    *before, new = (html.escape(token_label(word.text)) for word in words)
    marked = f'<mark style="{_NEW}"><b><u>{new}</u></b></mark>'
    st.html(f'<p style="{_LINE}">{" ".join([*before, marked])}</p>')


def choose_cross_head(trace: Trace, links: Links | None) -> tuple[Attention, int]:
    """A layer and a head that read the source, those that align best with the reference links
    first; both join the link. Where the view stands elsewhere, it is brought to `best_cross_head`."""
    shares = {
        (head.place, head.number): head.share for head in heads_by_reference(trace, links or ())
    }
    heads = list(dict.fromkeys([*shares, *_cross_heads(trace)]))
    if (current().place, current().head) not in heads:
        open_cross_head(best_cross_head(trace, links))
        write_link()

    def label(head: tuple[str, int]) -> str:
        name = head_label(head)
        return f"{name}: {shares[head]:.3f} on the reference" if head in shares else name

    st.selectbox(
        "Layer and head" + (", ordered by their weight on the reference" if shares else ""),
        heads,
        format_func=label,
        **shown("encoder-cross-head", (current().place, current().head), open_cross_head),
    )
    return trace.find(current().place), current().head


def readout_of_lines(trace: Trace, attention: Attention, head: int, row: int) -> None:
    """The line below the lines of a head: what the query of a row attends to most."""
    readout_of(attention, head, *labels_of(trace, attention), query=row)


def open_cross_head(head: tuple[str, int]) -> None:
    change_view(replace(current(), place=head[0], head=head[1]))


def best_cross_head(trace: Trace, links: Links | None) -> tuple[str, int]:
    """The sub-layer and head that align best with the reference links; without any, the one that the
    model's card names, or the first."""
    ranked = heads_by_reference(trace, links or ())
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
