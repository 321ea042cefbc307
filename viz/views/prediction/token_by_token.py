"""Generation, step by step: what the model could say, what was chosen, and what it read for it."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.tokens.live_writing import Choice
from model.trace.blocks import of_query
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.bars import weights_row
from viz.notation.labels import token_label
from viz.notation.numbers import counted, difference
from viz.shell import page
from viz.shell.controls import choose_layer_and_head
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, labels_of, traced
from viz.views.prediction.beams import best_beams, search_controls
from viz.views.prediction.next_token import draw_row, row_of
from viz.views.prediction.writing import (
    DRAW,
    LIKELIEST,
    choice_of,
    request_after,
    room,
    so_far,
    tokens_to_write,
    writing,
    written_to_step,
)
from viz.views.tokens.chat import offer_chat

GREEDY = r"y_t = \mathrm{arg\,max}_i\; p_i(y_1, \ldots, y_{t-1})"
DRAWN = r"y_t \sim p(y_1, \ldots, y_{t-1})"
BEAMS = "the best beams"
LISTED = 6


def token_by_token(seen: Look) -> None:
    """The page's third view: go forward and back through what the model writes."""
    pictures = st.container()
    boxes = st.columns(2, gap="large", vertical_alignment="bottom")
    with boxes[0]:
        how = one_of(
            "At each step, take", (LIKELIEST, DRAW, BEAMS), "prediction-how", bind="query-params"
        )
    if how == BEAMS:
        with boxes[1]:
            asked = search_controls(seen.request, room(seen))
        with pictures:
            best_beams(seen, asked)
    else:
        _one_text(seen, how == DRAW, pictures, boxes)


def _one_text(
    seen: Look,
    draws: bool,
    pictures: DeltaGenerator,
    boxes: Sequence[DeltaGenerator],
) -> None:
    """One token at each step, likeliest or drawn."""
    with boxes[0]:
        choice = choice_of(seen, draws=draws)
    with boxes[1]:
        steps = tokens_to_write(seen)
    with pictures:
        found = writing(seen, choice, steps)
    if found is None or not found.steps:
        return
    with pictures:
        expected, reading = st.columns([3, 2], gap="large")
    with expected:
        bars, text, below = st.container(), st.container(), st.container()
        ids = written_to_step(seen, found, steps, "prediction-step", below)
    run = traced(request_after(seen, ids[:-1]))
    read = run.tokens_of("decoder")
    with text:
        so_far(read[: len(read) - len(ids) + 1], seen.model.tokenizer.named(ids))
    with bars:
        _expected(seen, run, choice, ids)
    with expected:
        st.latex(GREEDY if choice.seed is None else DRAWN)
    with reading:
        _reading(run, ids)
    with pictures:
        look_for(
            "Each step adds the underlined token. The second picture shows which tokens the model "
            "attended to when it predicted that token."
        )
    offer_chat(seen)
    _matrix(Look(request_after(seen, ids[:-1])), grows=len(ids) < len(found.steps))


def _matrix(seen: Look, *, grows: bool) -> None:
    """The weights of all that was read so far, of any head."""
    st.markdown(
        "**The matrix of the text so far.** Each token that is read adds a row below and a column on the "
        "right. The rows above stay as they were: no token attends to a later one."
        + " Go to the next step to see it grow."
        * grows
    )
    page.explored(seen)


def _expected(seen: Look, run: Trace, choice: Choice, ids: tuple[int, ...]) -> None:
    """The likeliest tokens of the step, and the one that was chosen."""
    row = row_of(run, run.require_prediction().after(-1), choice.sampling)
    draw_row(seen, row, "prediction-step-bars", count=LISTED, chosen=ids[-1])


def _reading(run: Trace, ids: tuple[int, ...]) -> None:
    """What the last token read, in a layer and head of the reader's."""
    names = [one.name for one in run.attention if one.stack == "decoder"]
    attention, head = choose_layer_and_head(run, names)
    weights = of_query(attention, attention.sizes[1] - 1).weights(head)[0]
    queries, texts = labels_of(run, attention)
    total = f"{weights.sum():.4f}"
    if attention.sinks is not None:
        taken = attention.sink_weights(head)[-1]
        total += f"; with the sink's {taken:.4f} that is {weights.sum() + taken:.4f}"
    new = 0 if attention.kind == "cross" else len(ids) - 1
    chart(weights_row(weights, texts, written=new), "prediction-step-reading")
    st.caption(
        f"The row of the last token: its weights on {counted(len(texts), 'token')} sum to "
        f"{total}. Check: attention outputs and norms of this pass, recomputed, "
        f"differ from the model's own by at most {difference(run.check())}."
    )
    keys, last = list(map(token_label, texts)), token_label(queries[-1], 24)
    table({"query": last, "key": keys, "weight": weights}, "prediction-step-weights")
