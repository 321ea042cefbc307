"""Two sentences as one padded batch: the weights with and without padding masked, and the masks as tables
of 0 and 1."""

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from model.analysis.padded_batch import Sentence, padded_batch
from model.trace.arrays import Mask
from viz.figures.cells import panels
from viz.figures.heatmap import NARROW
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.shell.model_picker import offer_model
from viz.shell.pictures import chart, look_for, table
from viz.state.engine import engine
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look
from viz.state.session import second_text

COMBINED = r"\text{combined}_{ij} = \text{padding}_j \cdot \text{look-ahead}_{ij}"
PADDING_ALONE = r"\text{combined}_{ij} = \text{padding}_j"
MASKED, OPEN = "with the padding mask", "without it"
PAD = "pad"
FITTING = 48  # tokens of a sentence in the batch
WRITTEN = 16  # up to so many, each cell of a mask has room for its number
ONLY_ONE_TEXT = "stories"  # offered where a model reads two texts


def padded_pair(seen: Look) -> None:
    """The shorter sentence of the two: its weights with padding masked and not, and its masks."""
    weights, words = st.columns([2, 1], gap="large")
    masks = st.container()
    with words:
        text = _second(seen)
    try:
        pair = _run(seen, text)
    except ValueError as refusal:
        weights.info(plain(str(refusal)))
        if seen.model.config.shape == "encoder-decoder":
            with weights:
                offer_model(ONLY_ONE_TEXT)
        return
    short = min(pair, key=lambda one: one.count)
    labels = _labels(short)
    with weights:
        chart(_weights(short, seen, labels), "laboratory-batch-weights")
    with words:
        look_for(_look(seen, short))
        st.caption(_filled_up(short))
    tables = _tables(short, seen.place)
    narrow = masks if len(tables) > 1 else masks.columns(2)[0]
    with narrow:
        chart(_masks(tables, labels), "laboratory-batch-masks")
        st.latex(COMBINED if len(tables) > 1 else PADDING_ALONE)
    st.caption(
        "In the masks 1 is a key that may be read; hatched is 0, masked. "
        "This view runs the unchanged model. Check: in the batch with the padding mask each sentence's "
        "results differ from those that it gives alone by at most "
        f"{difference(max(one.apart for one in pair))}, all weights by at most "
        f"{difference(max(one.weights_apart() for one in pair))}; without the padding mask the results "
        f"differ by at most {_size(max(one.apart_open for one in pair))}."
    )
    taken = short.taken(seen.place, seen.head)
    columns = {"token": labels[: short.count], "weight that padding would take": taken}
    table(columns, "laboratory-batch")


def _labels(short: Sentence) -> list[str]:
    """Its tokens, and `pad` for what fills it up: the token that stands there could be any."""
    filled = len(short.tokens) - short.count
    return [token.text for token in short.tokens[: short.count]] + [PAD] * filled


def _weights(short: Sentence, seen: Look, labels: Sequence[str]) -> Figure:
    """The chosen head's weights, with the padding mask and without it."""
    with_mask, without = short.masked[seen.place], short.open[seen.place]
    blocked = [
        np.zeros((len(labels), len(labels)), bool) if mask is None else ~mask
        for mask in (with_mask.mask_of(seen.head), without.mask_of(seen.head))
    ]
    return panels(
        {MASKED: with_mask.weights(seen.head), OPEN: without.weights(seen.head)},
        tokens=labels,
        quantity="weight",
        blocked=blocked,
        numbered=NARROW,
    )


def _masks(tables: Mapping[str, Mask], labels: Sequence[str]) -> Figure:
    """Tables of 0 and 1; one in an encoder, which has no look-ahead mask."""
    return panels(
        {name: mask.astype(np.float32) for name, mask in tables.items()},
        tokens=labels,
        quantity=None,
        blocked=[~mask for mask in tables.values()],
        numbered=WRITTEN,
    )


def _second(seen: Look) -> str:
    """The second sentence: the visitor's; else the first half of the page's."""
    words = seen.request.text.split()
    start = " ".join(words[: max(len(words) // 2, 1)])
    return st.text_input(
        "Second sentence of the batch",
        max_chars=TEXT_LIMIT,
        **second_text("laboratory-batch-text", start),
    )


def _run(seen: Look, text: str) -> tuple[Sentence, Sentence]:
    """Raises ValueError where the batch cannot be run, or is too long to be drawn."""
    longest = max(len(seen.model.tokens(one)) for one in (seen.request.text, text))
    if longest > FITTING:
        raise ValueError(
            f"The longer sentence has {longest} tokens. The batch is drawn for up to {FITTING}."
        )
    with engine().turn(lambda ahead: None):
        return padded_batch(seen.model, seen.request.text, text)


def _tables(short: Sentence, place: str) -> dict[str, Mask]:
    """The masks of one sub-layer, (query, key), by what stands above them."""
    padding = np.broadcast_to(short.padding, (len(short.tokens), len(short.tokens)))
    look_ahead, combined = short.open[place].mask, short.masked[place].mask
    if look_ahead is None or combined is None:
        return {"padding mask": padding}
    return {
        "padding": padding,
        "× look-ahead": look_ahead,
        "= combined": combined,
    }


def _filled_up(short: Sentence) -> str:
    count = len(short.tokens) - short.count
    if not count:
        return "Both sentences have equally many tokens, so nothing is filled up."
    pad = plain(token_label(short.tokens[-1].text))
    return (
        f"The shorter sentence is filled up with {counted(count, 'token')}, marked “{PAD}”. This model is "
        f"given “{pad}” there, which could be any token: the mask hides it."
    )


def _look(seen: Look, short: Sentence) -> str:
    if short.count == len(short.tokens):
        return "Type a second sentence of another length: the shorter one is then filled up."
    taken = short.taken(seen.place, seen.head)
    if not taken.any():
        return (
            "Padding stands at the end, in the future of every token of the sentence. So the look-ahead mask "
            "hides it already: even without the padding mask it takes none of their weight. Only the rows of "
            "padding itself change, and nothing reads those."
        )
    most = plain(token_label(short.tokens[int(taken.argmax())].text))
    return (
        f"Without the padding mask, padding takes {taken.mean():.2f} of a token's weight on average, and up "
        f"to {taken.max():.2f}, from **{most}**. With the mask it takes nothing, and the sentence gives what "
        "it gives alone."
    )


def _size(apart: float) -> str:
    return difference(apart) if apart < 0.01 else f"{apart:.2f}"
