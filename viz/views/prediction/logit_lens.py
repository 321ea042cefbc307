"""The logit lens: every state of the stream read as if it were the last."""

import pandas as pd
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import Lens, lens
from viz.figures.lens import lens_table
from viz.notation.labels import token_label
from viz.notation.names import state_names
from viz.notation.numbers import counted, difference, significant
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.views.prediction.formulas import LENS, LENS_WITHOUT_NORM

COLUMNS = 12  # tokens side by side: more, and their words no longer fit the cells
SCROLLING = """<style>
.st-key-prediction-lens-scrolls { overflow-x: auto }
.st-key-prediction-lens-scrolls > div:has(.js-plotly-plot) { min-width: %dpx }
</style>"""
OWN, FINAL = "of the token shown", "of the final token"


def logit_lens(seen: Look) -> None:
    """The page's second view: state by token, what each would predict and how surely."""
    trace = seen.trace
    if trace.prediction is None:
        return
    tokens = [token.text for token in trace.tokens_of("decoder")]
    st.markdown(
        "Each state is read through the model's own last step, as if no layer came after it. "
        "**What to look for.** Go down a column: where does the bold token, the model's final one, "
        "first stand?"
    )
    choice, window, formula = st.columns([4, 3, 4], gap="large", vertical_alignment="center")
    shown = choice.radio(
        "Colour: the probability", (OWN, FINAL), horizontal=True, key="prediction-lens"
    )
    with window:
        first, last = _window(len(tokens))
    formula.latex(LENS if seen.model.config.norm_place == "pre" else LENS_WITHOUT_NORM)
    states = [state[first:last] for state in trace.states["decoder"]]
    logits = trace.prediction.rows(first, last)
    found, error = lens(seen.model.unembed, states, logits), rounding(trace, logits)
    names = state_names(trace, "decoder")
    predicted = _texts(seen, found)
    shares = found.shares if shown == OWN else found.final
    with st.container(key="prediction-lens-scrolls"):
        figure = lens_table(shares, predicted, states=names, tokens=tokens[first:last], error=error)
        st.html(SCROLLING % figure.layout.width)
        chart(figure, "prediction-lens-table")
    share = f"%.{significant(error)}g"
    table(
        _frame(found, predicted, names, tokens[first:last], first),
        "prediction-lens-rows",
        formats={"its probability": share, "the final token's": share},
    )
    st.caption(
        "Check: the logits read from the last state differ from the model's own output by at most "
        f"{difference(found.difference)}, over {counted(last - first, 'position')}."
    )


def _window(length: int) -> tuple[int, int]:
    """The positions shown, from the first up to but without the second: the end of a long text."""
    if length <= COLUMNS:
        return 0, length
    key = f"prediction-window-{length}"
    last = st.slider("Last token shown", COLUMNS - 1, length - 1, value=length - 1, key=key)
    return last + 1 - COLUMNS, last + 1


def _texts(seen: Look, found: Lens) -> list[list[str]]:
    named = seen.model.tokenizer.named
    return [[token.text for token in named([int(id_) for id_ in row])] for row in found.ids]


def _frame(
    found: Lens, predicted: list[list[str]], names: tuple[str, ...], tokens: list[str], first: int
) -> pd.DataFrame:
    places = range(len(tokens))
    return pd.DataFrame(
        [
            {
                "state": name,
                "after": f"{first + place} {token_label(tokens[place])}",
                "predicts": token_label(predicted[row][place]),
                "its probability": found.shares[row, place],
                "the final token's": found.final[row, place],
            }
            for row, name in enumerate(names)
            for place in places
        ]
    )
