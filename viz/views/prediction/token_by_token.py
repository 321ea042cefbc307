"""Generation, step by step: what the model could say, what was chosen, and what it read for it; and beam
search beside greedy, with the tree of both."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.live_writing import BeamSearch, BeamStep, Continuation, beam_search
from model.analysis.tokens.prediction import log_probabilities
from model.trace.blocks import of_query
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.bars import weights_row
from viz.figures.diagrams import Leaf, Path, beam_tree
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import (
    certain,
    counted,
    difference,
    power_of_ten,
    probability,
    rounded,
    settled,
    significant,
)
from viz.shell import page
from viz.shell.background import Offer, passes_or_offer
from viz.shell.controls import choose_head, choose_layer
from viz.shell.panel import Caption, Columns, Formula, Panel, Table, below_controls
from viz.state.look import Look, labels_of, traced
from viz.views.prediction.next_token import bars_of, listed_ids, row_of
from viz.views.prediction.writing import (
    DRAW,
    LIKELIEST,
    choice_of,
    choose_step,
    request_after,
    room_of,
    say_end,
    so_far,
    tokens_to_write,
    writing,
)
from viz.views.tokens.chat import offer_chat

GREEDY = r"y_t = \mathrm{arg\,max}_i\; p_i(y_1, \ldots, y_{t-1})"
DRAWN = r"y_t \sim p(y_1, \ldots, y_{t-1})"
BEAMS = "the best beams"
LISTED = 6


def token_by_token(look: Look) -> Panel:
    """Forward and back through what the model writes, or the tree of the best beams."""
    ways = (LIKELIEST, DRAW, BEAMS)
    how = one_of("At each step, take", ways, "prediction-how", bind="query-params")
    if how == BEAMS:
        return best_beams(look)
    choice = choice_of(look, draws=how == DRAW)
    count = tokens_to_write(look)
    text = writing(look, choice, count)
    if text is None:
        return Panel("prediction-step")
    step = choose_step(look, text, "prediction-step")
    ids = text.ids[:step]
    request = request_after(look, ids[:-1])
    run = traced(request)
    read = run.tokens_of("decoder")
    row = row_of(run, run.require_prediction().after(-1), choice.sampling)
    bars = listed_ids(row, LISTED, ids[-1])
    given = read[: len(read) - len(ids) + 1]
    grows = " Go to the next step to see it grow." * (step < len(text.steps))
    reading = _reading(run, ids)
    return Panel(
        "prediction-step",
        look_for="Each step adds the underlined token. The second picture shows which tokens the model "
        "attended to when it predicted that token.",
        below=[
            partial(so_far, given, look.model.tokenizer.named(ids)),
            partial(say_end, look, text, step, count),
            Columns([bars_of(look, row, "prediction-step-bars", bars, ids[-1]), reading]),
            Formula(GREEDY if choice.seed is None else DRAWN),
            partial(offer_chat, look),
            "**The matrix of the text so far.** Each token that is read adds a row below and a column on the "
            f"right. The rows above stay as they were: no token attends to a later one.{grows}",
            partial(page.explored, Look(request)),
        ],
    )


def _reading(run: Trace, ids: tuple[int, ...]) -> Panel:
    """What the last token read, in a layer and head of the reader's."""
    names = [one.name for one in run.attention if one.stack == "decoder"]
    attention = run.find(choose_layer(names))
    head = choose_head(attention.heads)
    weights = of_query(attention, attention.sizes[1] - 1).weights(head)[0]
    queries, texts = labels_of(run, attention)
    total = f"{weights.sum():.4f}"
    if attention.sinks is not None:
        taken = attention.sink_weights(head)[-1]
        total += f"; with the sink's {taken:.4f} that is {weights.sum() + taken:.4f}"
    written = 0 if attention.kind == "cross" else len(ids) - 1
    keys, last = list(map(token_label, texts)), token_label(queries[-1], 24)
    return Panel(
        "prediction-step-reading",
        picture=weights_row(weights, texts, written=written),
        check=f"The row of the last token: its weights on {counted(len(texts), 'token')} sum to "
        f"{total}. Check: attention outputs and norms of this pass, recomputed, "
        f"differ from the model's own by at most {difference(run.check())}.",
        table=Table({"query": last, "key": keys, "weight": weights}),
    )


LOG_PROBABILITY = r"\ln p(y_1, \ldots, y_n) = \sum_t \ln p(y_t \mid y_1, \ldots, y_{t-1})"
FEWEST, MOST, STEPS = 2, 5, 8
LARGE = 1e6  # a ratio from here on is written as a power of ten
SHOWN = 5e-3  # of a total in the tree: two decimals


def best_beams(look: Look) -> Panel:
    """Beam search: the tree, as soon as every step is done."""
    room = room_of(look)
    beams = st.slider("Beams", FEWEST, MOST, value=3, key="prediction-beams", bind="query-params")
    steps = st.slider(
        "Steps of the search", 1, STEPS, value=4, key="prediction-beam-steps", bind="query-params"
    )
    count = min(steps, room)
    offer = Offer(
        "prediction-search",
        f"The search runs the model on up to {beams + 1} texts at each of its {counted(count, 'step')}.",
        "Search",
        "steps",
        "done",
        count,
        count * (beams + 1) * (len(look.trace.tokens) + count) * look.model.parameter_count,
    )
    with below_controls():
        if steps > room:
            st.info(f"The model's context has room for {counted(room, 'step')}.")
        run = passes_or_offer(
            ("beams", look.request, beams, count),
            lambda run: beam_search(
                look.model, look.trace, beams=beams, steps=count, turn=run.turn
            ),
            offer,
        )
    if run is None or not run.complete or (search := run.found) is None:
        return Panel("prediction-beams-tree")
    error = rounding(look.trace, look.trace.require_prediction().after(-1))
    rows = [_rows(step) for step in search.steps]
    leaves = _leaves(look, rows, search, error)
    last = look.model.begun(look.trace.tokens)[-1]
    best, greedy = (_path(rows, search, one) for one in (search.best, search.greedy))
    return Panel(
        "prediction-beams-tree",
        look_for="The thick line is the best text of the beams, the dashed line the greedy one.",
        picture=beam_tree(leaves, last.text, best=best, greedy=greedy),
        below=[
            _compared(look, search, error * count, beams),
            Caption(
                "Below each token: its probability, and the sum of the log-probabilities so far. A text that "
                f"ended keeps its place and its sum. {_check(look, search.best)}"
            ),
            Formula(LOG_PROBABILITY),
        ],
        table=Table(
            {
                "step": [leaf.step for leaf in leaves],
                "row": [leaf.row + 1 for leaf in leaves],
                "token": [token_label(leaf.token) for leaf in leaves],
                "continues row": [leaf.before + 1 if leaf.step > 1 else None for leaf in leaves],
                "probability": [leaf.probability for leaf in leaves],
                "sum of log-probabilities": [leaf.total for leaf in leaves],
                "fate": [leaf.kind for leaf in leaves],
            },
            decimals=settled(error * count),
            formats={"probability": f"%.{significant(error * count)}g"},
        ),
    )


def _compared(look: Look, search: BeamSearch, error: float, beams: int) -> str:
    """Which of the two texts is more probable. error: how far rounding may move a total."""
    best, greedy = search.best, search.greedy
    words, others = (
        " ".join(bold_token(token.text) for token in look.model.tokenizer.named(text.ids))
        for text in (best, greedy)
    )
    total, other = (certain(text.total, error) for text in (best, greedy))
    if best.ids == greedy.ids:
        return f"Beam search and greedy found the same text, {words}, with log-probability {total}."
    sentence = (
        f"Beam search found {words} with log-probability {total}, greedy {others} with {other}."
    )
    apart = best.total - greedy.total
    if abs(apart) <= 2 * error:
        return f"{sentence} They are equally probable, as far as single precision can tell."
    ratio = np.exp(abs(apart))
    times = rounded(ratio, ratio * 2 * error, 2) if ratio < LARGE else power_of_ten(ratio, 1)
    if apart > 0:
        return f"{sentence} The text of beam search is {times} times as probable."
    lost = next(
        number
        for number, step in enumerate(search.steps, 1)
        if step.greedy.ids not in [text.ids for text in step.kept]
    )
    return (
        f"{sentence} Here greedy's is {times} times as probable: at step {lost} its beginning was not among "
        f"the best {beams}, so the search dropped it."
    )


Row = dict[tuple[int, ...], int]  # ids of a text -> its row at a step


def _rows(step: BeamStep) -> Row:
    """What was kept, what was dropped, and then the greedy text where it is neither."""
    texts = dict.fromkeys(one.ids for one in (*step.kept, *step.dropped, step.greedy))
    return {ids: row for row, ids in enumerate(texts)}


def _path(rows: Sequence[Row], search: BeamSearch, text: Continuation) -> Path:
    """Where the beginnings of a text lie, up to its last token."""
    length = len(text.ids)
    path = [(step, rows[step - 1][text.ids[:step]]) for step in range(1, length + 1)]
    after = range(length + 1, len(search.steps) + 1)
    return [(0, 0), *path, *((step, rows[step - 1][text.ids]) for step in after)]


def _leaves(look: Look, rows: Sequence[Row], search: BeamSearch, error: float) -> list[Leaf]:
    """error: how far rounding may move a log-probability."""
    leaves = []
    for number, (step, places) in enumerate(zip(search.steps, rows, strict=True)):
        kept = {text.ids for text in step.kept}
        dropped = {text.ids for text in step.dropped}
        texts = {text.ids: text for text in (*step.kept, *step.dropped, step.greedy)}
        above = rows[number - 1] if number else {}
        for ids, row in places.items():
            (token,) = look.model.tokenizer.named(ids[-1:])
            share, total = float(np.exp(texts[ids].log_probability)), texts[ids].total
            leaves.append(
                Leaf(
                    step=number + 1,
                    row=row,
                    kind="kept" if ids in kept else "dropped" if ids in dropped else "greedy",
                    token=token.text,
                    probability=share,
                    total=total,
                    words=(
                        probability(share, error, 3),
                        certain(total, max(error * len(ids), SHOWN)),
                    ),
                    # the row of the text that it continues, or of itself where it ended earlier
                    before=above.get(ids, above.get(ids[:-1], 0)),
                )
            )
    return leaves


def _check(look: Look, best: Continuation) -> str:
    """The best text, read in one recorded pass of its own, beside the sum of the search."""
    prediction = traced(request_after(look, best.ids[:-1]), passing=True).require_prediction()
    end = prediction.shape[0]
    rows = log_probabilities(prediction.rows(end - len(best.ids), end))
    apart = abs(float(rows[np.arange(len(best.ids)), list(best.ids)].sum()) - best.total)
    return (
        "Check: one pass over the best text alone gives the same sum; they differ by at most "
        f"{difference(apart)}."
    )
