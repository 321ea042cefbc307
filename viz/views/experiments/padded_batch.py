"""Two sentences as one padded batch: the weights with and without padding masked, and the masks as tables
of 0 and 1."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.analysis.padded_batch import Sentence, padded_batch
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_of
from viz.figures.cells import panels
from viz.figures.heatmap import NARROW
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Formula, Panel, Table, refusals
from viz.state.engine import engine
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look
from viz.state.session import second_text

say = sentences_of("experiments.padded_batch")

MASKED, OPEN = say("padding_mask"), "without it"
PAD = "pad"
FITTING = 48  # tokens of a sentence in the batch
WRITTEN = 16  # up to so many, each cell of a mask has room for its number


def padded_pair(look: Look) -> Panel:
    """The shorter sentence of the two: its weights with padding masked and not, or its masks."""
    words = look.request.text.split()
    text = st.text_input(
        "Second sentence",
        max_chars=TEXT_LIMIT,
        **second_text("experiment-batch-text", " ".join(words[: max(len(words) // 2, 1)])),
    )
    shown = one_of("Picture", ("Weights", "Masks"), "experiment-batch", quiet=True)
    pair = _run(look, text)
    short = min(pair, key=lambda one: one.count)
    # `pad` stands for what fills it up: the token that stands there could be any
    filled = len(short.tokens) - short.count
    labels = [token.text for token in short.tokens[: short.count]] + [PAD] * filled
    apart, apart_open = (max(getattr(one, gap) for one in pair) for gap in ("apart", "apart_open"))
    weights_apart = max(one.weights_apart() for one in pair)
    openly = difference(apart_open) if apart_open < 0.01 else f"{apart_open:.2f}"
    figure, formula = (
        _weights(look, short, labels) if shown == "Weights" else _masks(look, short, labels)
    )
    return Panel(
        f"experiment-batch-{shown.lower()}",
        look_for=_look(look, short),
        picture=figure,
        beside=[
            formula,
            _filled_up(short),
            say("without_padding_mask", openly=openly, apart=apart),
            Caption(say("masks_1_key_may")),
        ],
        check=Check(
            say("check_batch_padding", apart=apart, weights_apart=weights_apart),
            max(apart, weights_apart),
        ),
        table=Table(
            {
                "token": labels[: short.count],
                say("weight_padding_take"): short.taken(look.place, look.head),
            }
        ),
    )


def _weights(look: Look, short: Sentence, labels: list[str]) -> tuple[go.Figure, Formula]:
    """The chosen head with padding masked, and not."""
    runs = {MASKED: short.masked[look.place], OPEN: short.open[look.place]}
    masks = [one.mask_of(look.head) for one in runs.values()]
    nothing = np.zeros((len(labels), len(labels)), bool)
    figure = panels(
        {name: one.weights(look.head) for name, one in runs.items()},
        tokens=labels,
        quantity="weight",
        blocked=[nothing if mask is None else ~mask for mask in masks],
        numbered=NARROW,
    )
    return figure, Formula(
        r"\text{padding}_j = \begin{cases} 1 & j < n \\ 0 & \text{else} \end{cases}"
    )


def _masks(look: Look, short: Sentence, labels: list[str]) -> tuple[go.Figure, Formula]:
    """The padding mask, and what it makes with the look-ahead mask, where the model has one."""
    masked, free = short.masked[look.place], short.open[look.place]
    padding = np.broadcast_to(short.padding, (len(labels), len(labels)))
    masks = {"padding mask": padding}
    formula = r"\text{combined}_{ij} = \text{padding}_j"
    if free.mask is not None and masked.mask is not None:  # an encoder has no look-ahead mask
        masks = {"padding": padding, "× look-ahead": free.mask, "= combined": masked.mask}
        formula += r" \cdot \text{look-ahead}_{ij}"
    figure = panels(
        {name: mask.astype(np.float32) for name, mask in masks.items()},
        tokens=labels,
        quantity=None,
        blocked=[~mask for mask in masks.values()],
        numbered=WRITTEN,
    )
    return figure, Formula(formula)


def _run(look: Look, text: str) -> tuple[Sentence, Sentence]:
    """Refuses where the batch cannot be run, or is too long to be drawn."""
    with refusals():
        longest = max(len(look.model.tokens(one)) for one in (look.request.text, text))
    if longest > FITTING:
        raise NotShownError(
            f"The longer sentence has {longest} tokens. The batch is drawn for up to {FITTING}."
        )
    with refusals(), engine().turn():
        return padded_batch(look.model, look.request.text, text)


def _filled_up(short: Sentence) -> str:
    count = len(short.tokens) - short.count
    if not count:
        return say("both_sentences_equally")
    pad = plain(token_label(short.tokens[-1].text))
    return say("shorter_sentence_filled", count=count, pad=PAD, pad_2=pad)


def _look(look: Look, short: Sentence) -> str:
    if short.count == len(short.tokens):
        return say("type_second_sentence")
    taken = short.taken(look.place, look.head)
    if not taken.any():
        return say("padding_stands_end")
    most = plain(token_label(short.tokens[int(taken.argmax())].text))
    return say(
        "without_padding_mask_padding", mean_taken=taken.mean(), most_taken=taken.max(), most=most
    )
