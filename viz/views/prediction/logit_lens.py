"""The logit lens: every state of the stream read as if it were the last."""

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import lens
from viz.figures.cells import lens_table
from viz.notation.labels import numbered_labels, token_label
from viz.notation.names import state_names
from viz.notation.numbers import counted, difference, significant
from viz.shell.pictures import chart, table
from viz.state.look import Look

LENS = r"p = \text{softmax}\bigl(\text{norm}(x_{\text{state}})\, W_{\text{out}}\bigr)"
LENS_WITHOUT_NORM = r"p = \text{softmax}\bigl(x_{\text{state}}\, W_{\text{out}}\bigr)"
COLUMNS = 12  # tokens side by side: more, and their words no longer fit the cells
SCROLLING = """<style>
.st-key-prediction-lens-scrolls { overflow-x: auto }
.st-key-prediction-lens-scrolls > div:has(.js-plotly-plot) { min-width: %dpx }
</style>"""
OWN, FINAL = "of the token shown", "of the final token"


def logit_lens(seen: Look) -> None:
    """The page's second view: state by token, what each would predict and how surely."""
    trace, prediction = seen.trace, seen.trace.require_prediction()
    seen.model.require("unembedding")
    tokens = [token.text for token in trace.tokens_of("decoder")]
    picture = st.container()
    st.markdown(
        "Each state of the stream is turned into a prediction by the model's own last step, as if "
        "no layer came after it. **What to look for.** Go down a column: where does the model's "
        "final prediction, in bold, appear for the first time?"
    )
    choice, window, formula = st.columns([4, 3, 4], gap="large", vertical_alignment="center")
    shown = choice.radio(
        "Colour: probability", (OWN, FINAL), horizontal=True, key="prediction-lens"
    )
    first, last = 0, len(tokens)  # the end of a long text
    if last > COLUMNS:
        key, end = f"prediction-window-{last}", last - 1
        last = window.slider("Last token shown", COLUMNS - 1, end, value=end, key=key) + 1
        first = last - COLUMNS
    formula.latex(LENS if not seen.model.config.norms_sum else LENS_WITHOUT_NORM)
    states = [state[first:last] for state in trace.residual["decoder"]]
    logits = prediction.rows(first, last)
    found, error = lens(seen.model.unembed, states, logits), rounding(trace, logits)
    names, named = state_names(trace, "decoder"), seen.model.tokenizer.named
    predicted = [[token.text for token in named(row.tolist())] for row in found.ids]
    shares = found.shares if shown == OWN else found.final
    with picture, st.container(key="prediction-lens-scrolls"):
        figure = lens_table(shares, predicted, states=names, tokens=tokens[first:last], error=error)
        st.html(SCROLLING % figure.layout.width)
        chart(figure, "prediction-lens-table")
    share, width = f"%.{significant(error)}g", last - first
    columns = {
        "state": np.repeat(names, width),
        "after": numbered_labels(tokens)[first:last] * len(names),
        "predicts": [token_label(text) for row in predicted for text in row],
        "its probability": found.shares.ravel(),
        "the final token's": found.final.ravel(),
    }
    formats = {"its probability": share, "the final token's": share}
    table(columns, "prediction-lens-rows", formats=formats)
    st.caption(
        "Check: the logits read from the last state differ from the model's own output by at most "
        f"{difference(found.difference)}, over {counted(width, 'position')}."
    )
