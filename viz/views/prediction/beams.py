"""Beam search beside greedy on the open model: the tree of both, and which text is more probable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.live_writing import BeamSearch, BeamStep, Continuation, beam_search
from model.analysis.tokens.prediction import log_probabilities
from model.serving.engine import Request
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
from viz.shell.background import Offer, Passes, PassesOf, run_or_offer
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, traced

FORMULA = r"\ln p(y_1, \ldots, y_n) = \sum_t \ln p(y_t \mid y_1, \ldots, y_{t-1})"
FEWEST, MOST, STEPS = 2, 5, 8
LARGE = 1e6  # a ratio from here on is written as a power of ten
SHOWN = 5e-3  # of a total in the tree: two decimals


@dataclass(frozen=True)
class Asked:
    """One search."""

    request: Request
    beams: int
    steps: int


class BeamRun(Passes[BeamSearch]):
    """A search under way or ended."""


@st.cache_resource
def runs() -> PassesOf[Asked, BeamRun]:
    """The searches of this process, shared by all visitors."""
    return PassesOf(BeamRun)


def search_controls(request: Request, room: int) -> Asked:
    """How many texts are kept, and for how many steps: no more than the context has room for."""
    beams = st.slider("Beams", FEWEST, MOST, value=3, key="prediction-beams", bind="query-params")
    steps = st.slider(
        "Steps of the search", 1, STEPS, value=4, key="prediction-beam-steps", bind="query-params"
    )
    if steps > room:
        st.info(f"The model's context has room for {counted(room, 'step')}.")
    return Asked(request, beams, min(steps, room))


def best_beams(seen: Look, asked: Asked) -> None:
    """The tree, as soon as every step is done."""
    found = _found(seen, asked)
    if found is None:
        return
    error = rounding(seen.trace, seen.trace.require_prediction().after(-1))
    look_for("The thick line is the best text of the beams, the dashed line the greedy one.")
    rows = [_rows(step) for step in found.steps]
    leaves = _leaves(seen, rows, found, error)
    last = seen.model.begun(seen.trace.tokens)[-1]
    best, greedy = (_path(rows, found, one) for one in (found.best, found.greedy))
    chart(beam_tree(leaves, last.text, best=best, greedy=greedy), "prediction-beams-tree")
    st.markdown(_compared(seen, found, error * asked.steps, asked.beams))
    st.caption(
        "Below each token: its probability, and the sum of the log-probabilities so far. A text that ended "
        f"keeps its place and its sum. {_check(asked, found.best)}"
    )
    st.latex(FORMULA)
    _table(leaves, error * asked.steps)


def _found(seen: Look, asked: Asked) -> BeamSearch | None:
    length = len(seen.trace.tokens) + asked.steps
    weights = seen.model.parameter_count
    offer = Offer(
        "prediction-search",
        f"The search runs the model on up to {asked.beams + 1} texts at each of its "
        f"{counted(asked.steps, 'step')}.",
        "Search",
        "steps",
        "done",
        asked.steps,
        asked.steps * (asked.beams + 1) * length * weights,
    )

    def work(run: BeamRun) -> Iterator[BeamSearch]:
        return beam_search(
            seen.model, seen.trace, beams=asked.beams, steps=asked.steps, turn=run.turn
        )

    run = run_or_offer(runs(), asked, work, offer)
    return run.found if run is not None and run.complete else None


def _compared(seen: Look, found: BeamSearch, error: float, beams: int) -> str:
    """Which of the two texts is more probable. error: how far rounding may move a total."""
    best, greedy = found.best, found.greedy
    words, others = (_words(seen, one) for one in (best, greedy))
    total, other = (certain(one.total, error) for one in (best, greedy))
    if best.ids == greedy.ids:
        return f"Beam search and greedy found the same text, {words}, with log-probability {total}."
    said = f"Beam search found {words} with log-probability {total}, greedy {others} with {other}."
    apart = best.total - greedy.total
    if abs(apart) <= 2 * error:
        return f"{said} They are equally probable, as far as single precision can tell."
    ratio = np.exp(abs(apart))
    times = rounded(ratio, ratio * 2 * error, 2) if ratio < LARGE else power_of_ten(ratio, 1)
    if apart > 0:
        return f"{said} The text of beam search is {times} times as probable."
    lost = next(
        number
        for number, step in enumerate(found.steps, 1)
        if step.greedy.ids not in [one.ids for one in step.kept]
    )
    return (
        f"{said} Here greedy's is {times} times as probable: at step {lost} its beginning was not among "
        f"the best {beams}, so the search dropped it."
    )


def _words(seen: Look, text: Continuation) -> str:
    return " ".join(bold_token(token.text) for token in seen.model.tokenizer.named(text.ids))


Row = dict[tuple[int, ...], int]  # ids of a text -> its row at a step


def _rows(step: BeamStep) -> Row:
    """What was kept, what was dropped, and then the greedy text where it is neither."""
    texts = dict.fromkeys(one.ids for one in (*step.kept, *step.dropped, step.greedy))
    return {ids: row for row, ids in enumerate(texts)}


def _before(rows: Sequence[Row], step: int, ids: tuple[int, ...]) -> int:
    """The row of the text that this one continues, or of itself where it ended earlier. step: from 0."""
    if step == 0:
        return 0
    above = rows[step - 1]
    return above[ids] if ids in above else above[ids[:-1]]


def _path(rows: Sequence[Row], found: BeamSearch, text: Continuation) -> Path:
    """Where the beginnings of a text lie, up to its last token."""
    path = [(step, rows[step - 1][text.ids[:step]]) for step in range(1, len(text.ids) + 1)]
    still = range(len(text.ids) + 1, len(found.steps) + 1)
    return [(0, 0), *path, *((step, rows[step - 1][text.ids]) for step in still)]


def _leaves(seen: Look, rows: Sequence[Row], found: BeamSearch, error: float) -> list[Leaf]:
    """error: how far rounding may move a log-probability."""
    leaves = []
    for number, (step, places) in enumerate(zip(found.steps, rows, strict=True)):
        kept = {one.ids for one in step.kept}
        dropped = {one.ids for one in step.dropped}
        texts = {one.ids: one for one in (*step.kept, *step.dropped, step.greedy)}
        for ids, row in places.items():
            (token,) = seen.model.tokenizer.named(ids[-1:])
            one = texts[ids]
            share = float(np.exp(one.log_probability))
            shown = probability(share, error, 3)
            leaves.append(
                Leaf(
                    step=number + 1,
                    row=row,
                    kind="kept" if ids in kept else "dropped" if ids in dropped else "greedy",
                    token=token.text,
                    probability=share,
                    total=one.total,
                    words=(shown, certain(one.total, max(error * len(ids), SHOWN))),
                    before=_before(rows, number, ids),
                )
            )
    return leaves


def _check(asked: Asked, best: Continuation) -> str:
    """The best text, read in one recorded pass of its own, beside the sum of the search."""
    target = None if asked.request.target is None else ""
    request = replace(asked.request, target=target, continued=best.ids[:-1])
    prediction = traced(request, passing=True).require_prediction()
    end = prediction.shape[0]
    rows = log_probabilities(prediction.rows(end - len(best.ids), end))
    apart = abs(float(rows[np.arange(len(best.ids)), list(best.ids)].sum()) - best.total)
    return (
        "Check: one pass over the best text alone gives the same sum; they differ by at most "
        f"{difference(apart)}."
    )


def _table(leaves: Sequence[Leaf], error: float) -> None:
    columns = {
        "step": [leaf.step for leaf in leaves],
        "row": [leaf.row + 1 for leaf in leaves],
        "token": [token_label(leaf.token) for leaf in leaves],
        "continues row": [leaf.before + 1 if leaf.step > 1 else None for leaf in leaves],
        "probability": [leaf.probability for leaf in leaves],
        "sum of log-probabilities": [leaf.total for leaf in leaves],
        "fate": [leaf.kind for leaf in leaves],
    }
    formats = {"probability": f"%.{significant(error)}g"}
    table(columns, "prediction-beams", decimals=settled(error), formats=formats)
