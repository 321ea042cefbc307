"""Translation, word by word: what the decoder expects next, and which source words it reads."""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.tokens.prediction import Sampling
from model.trace.trace import Trace
from model.training.alignment import crossings, links_of, source_words
from viz.figures.alignment import alignment
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.pictures import chart, table
from viz.state.held import traced
from viz.state.look import Look
from viz.views.prediction.formulas import GREEDY
from viz.views.prediction.next_token import draw_row, row_of
from viz.views.translation.head import choose_cross_head
from viz.views.translation.run import french_line, with_target, written_ids
from viz.views.translation.sentences import look_for

LISTED = 5
NAMES = ("read by the encoder", "written by the decoder")
SECONDS = 1.2  # between two steps that play by themselves
_STEP, _READ, _PLAYING = "encoder-step", "encoder-step-of", "encoder-playing"


def translate(seen: Look) -> None:
    """The page's first view: the French comes out word by word, by itself or step by step."""
    own = with_target(seen, None)
    if st.session_state.get(_READ) != own.request or _STEP not in st.session_state:
        st.session_state[_READ] = own.request
        st.session_state[_STEP] = _opening(own.trace)
        st.session_state[_PLAYING] = False
    st.markdown(
        "**What to look for.** "
        + (
            look_for(own.request.text, own.request.model)
            or "Each step adds the marked word, and reads the source for it."
        )
    )
    playing = bool(st.session_state.get(_PLAYING))
    st.fragment(_step, run_every=SECONDS if playing else None)(own, timed=playing)


def _opening(trace: Trace) -> int:
    """The step at which the first two words have changed places; the first where none do."""
    crossed = crossings(links_of(trace) or ())
    return crossed[0][1] + 1 if crossed else 1


def _step(seen: Look, *, timed: bool) -> None:
    ids = written_ids(seen.trace)
    _move_on(len(ids), timed=timed)
    step = _controls(len(ids))
    french_line(seen.model.tokenizer.named(ids[:step]), step - 1)
    expected, read = st.columns([1, 1], gap="large")
    with expected:
        _expected(seen, step, ids[step - 1])
        _alike(seen, ids[: step - 1])
    with read:
        _read(seen, ids[:step], len(ids))


def _move_on(last: int, *, timed: bool) -> None:
    """One step further while it plays. The timer belongs to the page, which is drawn anew to start
    and to stop it."""
    playing = bool(st.session_state.get(_PLAYING))
    step = st.session_state[_STEP]
    if playing and timed and step < last:
        st.session_state[_STEP] = step + 1
    ended = st.session_state[_STEP] >= last
    if playing and ended:
        st.session_state[_PLAYING] = False
    if timed != bool(st.session_state[_PLAYING]):
        st.rerun()


def _controls(last: int) -> int:
    """The step that is shown, from 1 to the last."""
    st.session_state[_STEP] = min(st.session_state[_STEP], last)
    slider, *buttons = st.columns([3, 1, 1, 1.5], vertical_alignment="bottom")
    step: int = slider.slider("Step", 1, last, key=_STEP) if last > 1 else 1
    back, forward, play = buttons
    back.button("Back", key="encoder-back", on_click=_go, args=(-1,),
                disabled=step == 1, width="stretch")  # fmt: skip
    forward.button("Next", key="encoder-next", on_click=_go, args=(1,),
                   disabled=step == last, type="primary", width="stretch")  # fmt: skip
    playing = bool(st.session_state.get(_PLAYING))
    name = "Stop" if playing else "Play from the start"
    play.button(name, key="encoder-play", on_click=_play, disabled=last == 1, width="stretch")
    return step


def _go(by: int) -> None:
    st.session_state[_PLAYING] = False
    st.session_state[_STEP] += by


def _play() -> None:
    playing = not st.session_state.get(_PLAYING)
    st.session_state[_PLAYING] = playing
    if playing:
        st.session_state[_STEP] = 0  # the first step follows at once


def _expected(seen: Look, step: int, new: int) -> None:
    """The probabilities of the next word; the chosen one is marked."""
    st.markdown("**What the model expects next**")
    if seen.trace.prediction is not None:
        row = row_of(seen.trace, seen.trace.prediction.after(step - 1), Sampling())
        draw_row(seen, row, "encoder-expected", count=LISTED, chosen=new)
    st.latex(GREEDY)


def _read(seen: Look, ids: tuple[int, ...], last: int) -> None:
    """The lines of the words so far; those of the new one stand out."""
    st.markdown("**What it reads for that**")
    trace = seen.trace
    attention, head = choose_cross_head(trace, links_of(trace))
    weights, source = attention.weights(head)[: len(ids)], source_words(trace)
    texts = [word.text for word in seen.model.tokenizer.named(ids)]
    figure = alignment(
        weights, source=source, target=texts, chosen=len(ids) - 1, names=NAMES, rows=last
    )
    chart(figure, "encoder-reads")
    row = weights[-1]
    most = int(row.argmax())
    st.caption(
        f"To write {_quoted(texts[-1])} it reads {_quoted(source[most])} most: weight "
        f"{row[most]:.4f} of {row.sum():.4f}."
    )
    named = [token_label(word) for word in source]
    table(
        pd.DataFrame({"to write": token_label(texts[-1]), "it reads": named, "weight": row}),
        "encoder-reads",
    )


def _quoted(word: str) -> str:
    return plain(f"“{token_label(word)}”")


def _alike(seen: Look, before: tuple[int, ...]) -> None:
    """The check of a step: reading only the words before it gives the same row."""
    run = traced(replace(seen.request, target="", continued=before))
    same_words = run.target_tokens == seen.trace.target_tokens[: len(before) + 1]
    whole, alone = seen.trace.prediction, run.prediction
    if whole is None or alone is None or not same_words:
        return
    apart = float(np.abs(whole.after(len(before)) - alone.after(-1)).max())
    st.caption(
        "Check: the decoder was run once over the whole French. Run over the words before this one "
        f"alone, it gives the same logits to {difference(apart)}. The masked self-attention makes "
        "sure of that: no word sees a later one."
    )
