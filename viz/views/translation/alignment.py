"""What the translator reads: the alignment, with the reference beneath it, and the three attentions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.trace.arrays import Array
from model.trace.trace import Trace
from model.training.alignment import (
    Links,
    crossings,
    links_of,
    reference_phrase,
    share_on_reference,
    shares_on_reference,
    source_words,
    target_words,
)
from viz.elements.one_of import one_listed
from viz.figures.alignment import alignment
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.controls import choose_layer
from viz.shell.page import explore
from viz.shell.pictures import chart, checked, look_for, table
from viz.state.look import Look
from viz.state.session import current, shown
from viz.views.translation.sentences import other_sentences, seen_in
from viz.views.translation.steps import (
    CROSS,
    NAMES,
    ON_REFERENCE,
    best_cross_head,
    choose_cross_head,
    open_cross_head,
    readout_of_lines,
    whose_french,
    with_target,
)


def show_alignment(seen: Look) -> None:
    """The page's second view, for the model's own French or the reader's."""
    look = with_target(seen, current().target)
    trace = look.trace
    source, target, links = source_words(trace), target_words(trace), links_of(trace)
    known = seen_in(look.request.text, look.request.model) if current().target is None else ""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        look_for(
            known or "Where lines cross, the two languages put the words in a different order."
        )
        whose_french()
        other_sentences(seen)
        attention, head = choose_cross_head(trace, links)
        weights = attention.weights(head)[: len(target)]
        names = ["all words", *(f"{token_label(word)} ({at})" for at, word in enumerate(target))]
        chosen = one_listed("Show the lines of", names, "encoder-alignment-word") - 1
        if links is not None:
            _shares(weights, links, source, target)
        _grammar(source, target)
        st.latex(CROSS)
        if links is not None:
            st.latex(ON_REFERENCE)
    with picture:
        figure = alignment(
            weights,
            source=source,
            target=target,
            reference=links,
            chosen=chosen if chosen >= 0 else None,
            names=NAMES,
        )
        chart(figure, "encoder-alignment")
        readout_of_lines(trace, attention, head, max(chosen, 0))
        st.caption(
            "The lines of a word show the row of weights of the query that writes it, one position "
            "earlier. Each row sums to 1; weights below 0.02 are not drawn."
        )
        table(_columns(weights, links, source, target), "encoder-alignment")
    checked(look)


def _shares(weights: Array, links: Links, source: Sequence[str], target: Sequence[str]) -> None:
    """How much of the weight lies on the reference, word by word for those that changed places."""
    mean = share_on_reference(weights, links)
    if mean is None:
        return
    shares = shares_on_reference(weights, links)
    count = sum(share is not None for share in shares)
    st.markdown(
        f"This head puts **{mean:.4f}** of its weight on the reference words, the mean of "
        f"{counted(count, 'word')}."
    )
    for one, other in crossings(links):
        said = " ".join(source[at] for at in sorted({*links[one], *links[other]}))
        st.markdown(
            plain(
                f"“{said}” becomes “{target[one]} {target[other]}”: the reference lines cross. "
                f"Weight on the reference: “{target[one]}” {shares[one] or 0:.4f}, "
                f"“{target[other]}” {shares[other] or 0:.4f}."
            )
        )


def _grammar(source: tuple[str, ...], target: tuple[str, ...]) -> None:
    """What the grammar says where that is not what is shown."""
    phrase = reference_phrase(source)
    if phrase is None:
        st.caption(
            "The grammar cannot make this sentence, so there is no reference to compare with."
        )
    elif phrase.french != target:
        french = " ".join(phrase.french)
        st.caption(plain(f"The grammar gives “{french}”. Words in both keep their reference."))


def _columns(
    weights: Array, links: Links | None, source: Sequence[str], target: Sequence[str]
) -> dict[str, object]:
    """For each target word the source word that is read most, and the reference."""
    most = weights.argmax(-1)
    columns: dict[str, object] = {
        "word": [token_label(word) for word in target],
        "attends most to": [token_label(source[at]) for at in most],
        "weight": weights[np.arange(len(target)), most],
    }
    if links is not None:
        columns["reference"] = [" ".join(source[at] for at in link) or "—" for link in links]
        columns["weight on the reference"] = shares_on_reference(weights, links)
    return columns


@dataclass(frozen=True)
class Kind:
    """One kind of attention: which sub-layers it has, and who looks at whom."""

    title: str
    stack: str
    layer: str
    look_for: str

    def names(self, trace: Trace) -> list[str]:
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
        "The source attends to itself, in both directions: nothing is masked.",
    ),
    Kind(
        "Masked decoder self-attention",
        "decoder",
        "self",
        "The target attends to itself. The grey cells are the future, which is masked.",
    ),
    Kind(
        "Cross-attention",
        "decoder",
        "cross",
        "The target (rows) attends to the source (columns): queries from the decoder, keys and values "
        "from the encoder. The row of a word shows what is read to write the next one.",
    ),
)


def three_attentions(seen: Look) -> None:
    """The page's third view: any layer and head of the chosen kind, cell by cell."""
    look = with_target(seen, current().target)
    trace = look.trace

    def take(title: str) -> None:
        """The first layer of the kind; of cross-attention the head that aligns best."""
        kind = next(kind for kind in KINDS if kind.title == title)
        cross, run = (
            kind.layer == "cross",
            look.trace,
        )  # an open page keeps this function, but no trace
        open_cross_head(best_cross_head(run, links_of(run)) if cross else (kind.names(run)[0], 0))

    here = next((kind for kind in KINDS if current().place in kind.names(trace)), KINDS[2])
    picture = st.container()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.segmented_control(
        "Which attention",
        [kind.title for kind in KINDS],
        required=True,
        **shown("encoder-kind", here.title, take),
    )
    with right:
        choose_layer(here.names(trace))
    look_for(here.look_for)
    whose_french()
    other_sentences(seen)
    with picture:
        explore(look)
