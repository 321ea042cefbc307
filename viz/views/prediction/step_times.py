"""How long each written token takes on this machine, with the key–value cache and without it."""

import streamlit as st

from model.analysis.cost.timing import machine
from model.analysis.tokens.live_writing import Writing
from model.analysis.tokens.sampling import Choice
from viz.figures.curves import TokenLine, token_lines
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import KEY, MASKED
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.views.prediction.writing import writing

WITH, WITHOUT = "with the cache", "without it"


def times(seen: Look, choice: Choice, count: int) -> None:
    """Both times of each step, and how far their logits are apart."""
    found = writing(seen, choice, count, compared=True)
    if found is None or not found.steps:
        return
    read = [step.read for step in found.steps]
    kept = [1_000 * step.seconds for step in found.steps]
    again = [1_000 * (step.without or 0.0) for step in found.steps]
    tokens = [one.text for one in seen.model.tokenizer.named(found.ids)]
    lines = (TokenLine(WITHOUT, again, MASKED, "dash"), TokenLine(WITH, kept, KEY))
    figure = token_lines(tokens, lines, unit="milliseconds of the step", zero=True)
    chart(figure, "prediction-step-times")
    st.caption(_in_words(found, kept, again))
    columns = {
        "written": list(map(token_label, tokens)),
        "tokens read by then": read,
        "computed with the cache": [step.new for step in found.steps],
        f"{WITH}, ms": kept,
        f"{WITHOUT}, ms": again,
        "largest difference of logits": [step.apart for step in found.steps],
    }
    formats = {"largest difference of logits": "%.1e"}
    table(columns, "prediction-step-times", decimals=2, formats=formats)


def _in_words(found: Writing, kept: list[float], again: list[float]) -> str:
    apart = max(step.apart or 0.0 for step in found.steps)
    said = (
        f"Check: both ways give the same logits; over {counted(len(kept), 'step')} they differ by at most "
        f"{difference(apart)}. "
    )
    if len(kept) > 1:
        said += (
            f"The first step reads the whole text in both. The {counted(len(kept) - 1, 'step')} after it "
            f"take {sum(kept[1:]):,.0f} ms with the cache and {sum(again[1:]):,.0f} ms without it. "
        )
    return said + plain(
        f"Each pass ran once, on {machine()}, which others may be using, so single times vary. Waiting for "
        "a turn is not counted."
    )
