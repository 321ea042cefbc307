"""Translation, word by word: what the decoder expects next, which source words it reads, and the run behind
it."""

import html
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.tokens.prediction import Sampling
from model.nn.places import head_label
from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from model.training.alignment import (
    Links,
    aligning_head,
    crossings,
    heads_by_reference,
    links_of,
    source_words,
)
from viz.elements.one_of import one_step
from viz.figures.alignment import alignment
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.theme import KEY, QUERY, VALUE, WEIGHT, rgba
from viz.shell.pictures import chart, look_for, readout_of, table
from viz.state.look import Look, labels_of, traced
from viz.state.session import change_view, current, shown, write_link
from viz.views.prediction.next_token import draw_row, row_of
from viz.views.prediction.token_by_token import GREEDY
from viz.views.translation.sentences import other_sentences, seen_in

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


LISTED = 5
NAMES = ("read by the encoder", "written by the decoder")
SECONDS = 1.2  # between two steps that play by themselves
_STEP, _READ, _PLAYING = "encoder-step", "encoder-step-of", "encoder-playing"


def translate(seen: Look) -> None:
    """The page's first view: the French comes out word by word, by itself or step by step."""
    own = with_target(seen, None)
    if st.session_state.get(_READ) != own.request or _STEP not in st.session_state:
        crossed = crossings(links_of(own.trace) or ())
        opening = crossed[0][1] + 1 if crossed else 1  # the first two words have changed places
        st.session_state.update({_READ: own.request, _STEP: opening, _PLAYING: False})
    playing = bool(st.session_state.get(_PLAYING))
    st.fragment(_step, run_every=SECONDS if playing else None)(own, timed=playing)


def _step(seen: Look, *, timed: bool) -> None:
    """The lines of the words so far, the step beneath them; beside them what the model expects."""
    ids = written_ids(seen.trace)
    _move_on(len(ids), timed=timed)
    read, expected = st.columns([3, 2], gap="large")
    with read:
        lines = st.container()
        slider, (back, forward, play) = st.container(), st.columns(3)
        step = one_step(_STEP, len(ids), (slider, back, forward), _go, "encoder")
        name = "Stop" if st.session_state.get(_PLAYING) else "▶ Play"
        play.button(name, "encoder-play", on_click=_play, disabled=len(ids) == 1, width="stretch")
    with expected:
        french_line(seen.model.tokenizer.named(ids[:step]))
        look_for(
            seen_in(seen.request.text, seen.request.model)
            or "Each step adds the marked word; to write it, the model reads the source."
        )
        other_sentences(seen)
        attention, head = choose_cross_head(seen.trace, links_of(seen.trace))
        st.markdown("**What the model expects next**")
        if seen.trace.prediction is not None:
            row = row_of(seen.trace, seen.trace.prediction.after(step - 1), Sampling())
            draw_row(seen, row, "encoder-expected", count=LISTED, chosen=ids[step - 1])
        st.latex(GREEDY)
    with read:
        _read(lines, seen, attention.weights(head)[:step], ids[:step])
    with lines:
        readout_of_lines(seen.trace, attention, head, step - 1)
    if seen.model.runs:
        _alike(seen, ids[: step - 1])


def _move_on(last: int, *, timed: bool) -> None:
    """One step further while it plays. The timer belongs to the page, which is drawn anew to start
    and to stop it."""
    state = st.session_state
    playing = bool(state.get(_PLAYING))
    if playing and timed and state[_STEP] < last:
        state[_STEP] += 1
    if playing and state[_STEP] >= last:
        state[_PLAYING] = False
    if timed != bool(state[_PLAYING]):
        st.rerun()


def _go(by: int) -> None:
    st.session_state[_PLAYING] = False
    st.session_state[_STEP] += by


def _play() -> None:
    st.session_state[_PLAYING] = not st.session_state.get(_PLAYING)
    if st.session_state[_PLAYING]:
        st.session_state[_STEP] = 0  # the first step follows at once


def _read(lines: DeltaGenerator, seen: Look, weights: Array, ids: tuple[int, ...]) -> None:
    """The lines of the words so far; those of the new one stand out. lines: where they are drawn."""
    source = source_words(seen.trace)
    texts = [word.text for word in seen.model.tokenizer.named(ids)]
    last, rows = len(ids) - 1, len(written_ids(seen.trace))
    with lines:
        figure = alignment(
            weights, source=source, target=texts, chosen=last, names=NAMES, rows=rows
        )
        chart(figure, "encoder-reads")
    row, named = weights[-1], [token_label(word) for word in source]
    most, new = int(row.argmax()), token_label(texts[-1])
    attends = "attends most to" if len(row) > 1 else "attends to"
    read = plain(f"“{new}” it {attends} “{named[most]}”")
    st.caption(f"To write {read}: weight {row[most]:.4f} of {row.sum():.4f}.")
    table({"to write": new, "it reads": named, "weight": row}, "encoder-reads")


def _alike(seen: Look, before: tuple[int, ...]) -> None:
    """The check of a step: reading only the words before it gives the same row."""
    run = traced(replace(seen.request, target="", continued=before))
    same_words = run.target_tokens == seen.trace.target_tokens[: len(before) + 1]
    whole, alone = seen.trace.prediction, run.prediction
    if whole is None or alone is None or not same_words:
        return
    apart = float(np.abs(whole.after(len(before)) - alone.after(-1)).max())
    st.caption(
        "Check: the decoder ran once over the whole target. Run only over the words "
        f"before this one, it gives the same logits, to within {difference(apart)}. The masked "
        "self-attention ensures this: no word sees a later one."
    )


# Formulas of the encoder–decoder page. Pure.
# X is the source's stream, Y the target's, E what the encoder hands over.


def projections(queries: str, others: str, *, bias: bool) -> str:
    """Which stream queries come from, and which keys and values."""
    parts = (("Q", QUERY, queries), ("K", KEY, others), ("V", VALUE, others))
    return r",\quad ".join(
        rf"{name} = \textcolor{{{colour}}}{{{stream}\,W_{name}{f' + b_{name}' if bias else ''}}}"
        for name, colour, stream in parts
    )


CROSS = (
    r"a_{f,e} = \mathrm{softmax}_e\!\left("
    rf"\frac{{\textcolor{{{QUERY}}}{{q_f}} \cdot \textcolor{{{KEY}}}{{k_e}}}}{{\sqrt{{d_k}}}}\right)"
)
ON_REFERENCE = (
    r"\text{on the reference} = \frac{1}{F} \sum_{f} \sum_{e\, \in\, \text{reference}(f)} a_{f,e}"
)
FORCED = r"p(\text{French}) = \prod_{f} p\left(w_f \mid w_{<f},\ \text{English}\right)"
