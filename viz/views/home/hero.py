"""Home: which token attends to which, what the model expects next, its way as a strip, and the way to a real
language model."""

from collections.abc import Callable
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from model.analysis.tokens.prediction import probabilities
from model.download.entries import Entry, is_on_disk
from model.loading.registry import models
from model.serving.engine import Request
from viz.elements.plot import drawing
from viz.figures.heatmap import weights_of_head
from viz.figures.svg import WIDTHS, arc_line
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.shell.downloads import entry_to_fetch, fetch_behind, fetching
from viz.shell.model_picker import open_entry
from viz.shell.panel import Caption, Panel
from viz.shell.pictures import readout_of
from viz.state.locality import visitor_is_local
from viz.state.look import Look, labels_of, traced
from viz.state.session import current

MOST = 60  # tokens with arcs; a longer text, and one that attends to another, is shown as a heatmap


def hero(look: Look) -> Panel:
    """The sentence with the arcs of the chosen head, or its weights as a heatmap."""
    queries, keys = look.labels
    attention, head = look.attention, look.head
    numbers = partial(readout_of, attention, head, queries, keys)
    heatmap = partial(_heatmap, look.request, attention.name, head)
    if attention.kind == "cross" or len(queries) > MOST:
        return Panel("home", picture=heatmap(), below=[numbers])
    chosen = min(current().query, len(queries) - 1)
    weights, next_token = attention.weights(head), _expected(look)
    drawings = {
        name: arc_line(queries, weights, chosen, width=width, said=next_token)
        for name, width in WIDTHS.items()
    }
    token = plain(token_label(queries[chosen]))
    sink = ""
    if attention.sinks is not None:
        taken = attention.sink_weights(head)[chosen]
        sink = f" The learned sink takes {taken:.2f} of the row of “{token}” and has no arc."
    words = (
        f"Layer {attention.place.layer}, head {head}: the arcs of “{token}” are its row of weights. The "
        "wider an arc, the larger its weight."
        + " Point at another token to see its row." * (len(queries) > 1)
        + sink
    )
    return Panel(
        "home",
        picture=partial(drawing, drawings, "home-arcs"),
        below=[Caption(words), numbers],
        saved=heatmap,
    )


def _heatmap(request: Request, place: str, head: int) -> go.Figure:
    """The weights of a head. An open page keeps what it is made of, so that is a request, no trace."""
    trace = traced(request)
    attention = trace.find(place)
    queries, keys = labels_of(trace, attention)
    return weights_of_head(attention, head, queries=queries, keys=keys)


def _expected(look: Look) -> str:
    """The likeliest next token and its probability; "" where the model predicts none."""
    prediction = look.trace.prediction
    if prediction is None:
        return ""
    shares = probabilities(prediction.after(-1))
    (token,) = look.model.tokenizer.named([int(shares.argmax())])
    likeliest = shares.max()
    share = f"{likeliest:.0%}" if likeliest >= 0.01 else "<1%"
    return f"→ {token_label(token.text)} {share}"


def pipeline(look: Look) -> None:
    """Tokens, vectors, layers, result: one card each, with the numbers of this run."""
    config, trace = look.model.config, look.trace
    layers = config.encoder_layers + config.decoder_layers
    cards = [
        ("Tokens", f"{len(trace.tokens)}", "the sentence, cut into pieces"),
        ("Vectors", f"{len(trace.tokens)} × {config.d_model}", "one row of numbers for each token"),
        ("Attention", f"{layers} × {config.heads}", "layers × heads, which mix the rows"),
    ]
    if config.d_mlp:
        wide = f"{config.d_model} → {config.d_mlp} → {config.d_model}"
        cards.append(("Feed-forward", wide, "each row alone"))
    if trace.prediction is None:
        size = f"{len(trace.tokens)} × {config.d_model}"
        cards.append(("Result", size, "one vector for each token, in its context"))
    else:
        size = f"{trace.prediction.vocabulary:,}"
        cards.append(("Prediction", size, "probabilities for the next token"))
    with st.container(horizontal=True, gap="small", key="pipeline"):  # a grid: viz/shell/style.css
        for name, size, words in cards:
            with st.container(border=True, height="stretch", gap="xxsmall"):
                st.caption(name)
                st.markdown(f"**{size}**")
                st.caption(words)


SECONDS = 1.0  # between two looks at the download


def real_model() -> None:
    """One line of the open model; below it, where that is another one, the model that the server fetches."""
    opened, offered = models.found(current().model), entry_to_fetch()
    with st.container(key="good-for", gap="xsmall"):
        if opened is not None and opened.good_for:
            st.caption(plain(f"{opened.short_title} is good for {opened.good_for}"))
        if offered is None or offered == opened:
            return
        job = fetching().known(offered.name)
        if job is not None and not job.ended.is_set():
            _on_its_way(offered)
        elif is_on_disk(offered):
            here = f"A real language model, {offered.short_title}, is on this computer."
            _line(here, f"Open {offered.short_title}", open_entry, offered)
        elif job is None or job.refusal is None or job.stopped.is_set():
            words = f"{offered.short_title}, a real language model, is not on this computer yet."
            if job is not None:
                words += " The download was stopped. The part that has arrived is kept."
            _line(words, "Fetch it" if job is None else "Resume", fetch_behind, offered)
        else:
            _line(job.refusal, "Try again", fetch_behind, offered)


@st.fragment(run_every=SECONDS)
def _on_its_way(entry: Entry) -> None:
    """How far it is, with a way to stop. Meanwhile the rest of the page stays as it is."""
    job = fetching().known(entry.name)
    if job is None or job.ended.is_set():
        st.rerun()
    _line(f"{job.sentence}, in the background.", "Stop", _stop, entry)


def _line(sentence: str, label: str, act: Callable[[Entry], None], entry: Entry) -> None:
    """A sentence, and what can be done about it: by everybody who may open a model, but only at this
    computer where it concerns all visitors."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(sentence), width="content")
        if act is open_entry or visitor_is_local():
            st.button(label, key="real-model", on_click=act, args=(entry,))


def _stop(entry: Entry) -> None:
    fetching().stop(entry.name)
