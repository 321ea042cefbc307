"""Home's picture: which token attends to which, and what the model expects next."""

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from model.analysis.tokens.prediction import probabilities
from model.serving.engine import Request
from viz.elements.drawing import drawing
from viz.figures.heatmap import weights_of_head
from viz.figures.svg import WIDTHS, arc_line
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.saving.save import save_figure
from viz.shell import pictures
from viz.state.held import traced
from viz.state.look import Look, labels_of
from viz.state.session import current

MOST = 60  # tokens with arcs; a longer text, and one that attends to another, is shown as a heatmap


def hero(seen: Look) -> None:
    """The sentence with the arcs of the chosen head, or its weights as a heatmap."""
    queries, keys = seen.labels
    attention, head = seen.attention, seen.head
    if attention.kind == "cross" or len(queries) > MOST:
        pictures.chart(_heatmap(seen.request, attention.name, head), "home")
        pictures.readout_of(attention, head, queries, keys)
        return
    chosen = min(current().query, len(queries) - 1)
    weights, said = attention.weights(head), _expected(seen)
    drawings = {
        name: arc_line(queries, weights, chosen, width=width, said=said)
        for name, width in WIDTHS.items()
    }
    drawing(drawings, "home-arcs")
    token = plain(token_label(queries[chosen]))
    sink = ""
    if attention.sinks is not None:
        taken = attention.sink_weights(head)[chosen]
        sink = f" The learned sink takes {taken:.2f} of the row of “{token}” and has no arc."
    st.caption(
        f"Layer {attention.place.layer}, head {head}: the arcs of “{token}” are its row of weights. The "
        "wider an arc, the larger its weight."
        + " Point at another token to see its row." * (len(queries) > 1)
        + sink
    )
    pictures.readout_of(attention, head, queries, keys)
    save_figure(partial(_heatmap, seen.request, attention.name, head), "home")


def _heatmap(request: Request, place: str, head: int) -> go.Figure:
    """The weights of a head. An open page keeps what it is made of, so that is a request, no trace."""
    trace = traced(request)
    attention = trace.find(place)
    queries, keys = labels_of(trace, attention)
    return weights_of_head(attention, head, queries=queries, keys=keys)


def _expected(seen: Look) -> str:
    """The likeliest next token and its probability; "" where the model predicts none."""
    prediction = seen.trace.prediction
    if prediction is None:
        return ""
    shares = probabilities(prediction.after(-1))
    (token,) = seen.model.tokenizer.named([int(shares.argmax())])
    likeliest = shares.max()
    share = f"{likeliest:.0%}" if likeliest >= 0.01 else "<1%"
    return f"→ {token_label(token.text)} {share}"
