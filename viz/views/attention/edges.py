"""What the edges of a head carry: the lengths of what they write, and what they add to a logit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from viz.elements.one_of import one_of
from viz.elements.plot import plot
from viz.figures.bars import edge_bars, edge_lengths
from viz.figures.heatmap import NARROW, weights_of_head
from viz.notation.head_formulas import EDGE, EDGE_BEFORE
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.numbers import agreeing, difference
from viz.saving.save import save_figure
from viz.shell.alternatives import say_encoder
from viz.shell.frame import frame
from viz.shell.pictures import chart, look_for, of_all_pairs, readout_of, table
from viz.state.look import Look
from viz.state.session import change_view, current
from viz.views.attention.edge_logit import choose_logit, say_logit
from viz.views.attention.walk import Cell, choose_cell, chosen_cell

if TYPE_CHECKING:
    from model.analysis.attribution.edge_values import EdgeValues

ROW, LOGIT, HEAD = "One row", "In a logit", "The whole head"
BARS = 24  # keys that are drawn
RESTS = 0.5  # of a row's weight: with more, what the first token carries is told
Row = NDArray[np.float64]


@of_all_pairs
def edges(seen: Look) -> None:
    """The chosen row's edges by length or by what they add to a logit, or all edges of the head."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    cell = chosen_cell(seen)
    frame().follow_head()
    through = seen.has_output
    edge = edge_values(seen.model, seen.trace, cell.place, cell.head, through_output=through)
    picture, beside = st.columns([3, 2], gap="large")
    with picture:
        drawn = st.container()
        shown = one_of("Picture", (ROW, LOGIT, HEAD), "edges-as", quiet=True)
    with beside:
        st.markdown(
            "An **edge** is what one token hands to another: its weight times its value, through W_O."
        )
        if not through:
            st.info(_why_before(seen))
        choose_cell(seen)
    if shown == HEAD:
        _whole_head(seen, cell, edge, (drawn, beside))
    elif shown == ROW:
        with drawn:
            _bars(seen, cell, edge.weights[cell.query], edge.norms[cell.query])
        with beside:
            _say_row(seen, cell, edge)
    else:
        _in_a_logit(seen, cell, edge, (drawn, beside))
    readout_of(seen.attention, cell.head, *seen.labels)
    if shown != LOGIT:
        _check_row(seen, cell, edge)
    st.latex(EDGE if through else EDGE_BEFORE)
    st.markdown(
        "A head's output at a token is the sum of its edges, and each writes a vector of its own to the "
        "stream. A large weight on a value that is short after W_O carries little (Kobayashi et al. 2020)."
    )


def _why_before(seen: Look) -> str:
    """Why the lengths are those before W_O."""
    why = seen.model.unproven["output"]
    said = why if why.endswith(".") else f"W_O is not proven here, because {why}."
    return f"{plain(said)} So the lengths here are those of weight · value, before W_O."


def _bars(
    seen: Look, cell: Cell, weights: Row, carried: Row, *, of_logit: str | None = None
) -> None:
    """Two bars a key, the weight and what the edge carries; a click chooses the key."""
    _, keys = seen.labels
    rank = np.maximum(
        weights / (weights.max() or 1), np.abs(carried) / (np.abs(carried).max() or 1)
    )
    open_keys = _open_keys(seen, cell, weights)
    largest = open_keys[np.argsort(-rank[open_keys], kind="stable")[:BARS]]
    listed = np.sort(largest) if len(largest) else np.array([cell.key])
    title = "length" if of_logit is None else "adds to the logit"
    figure = edge_bars(
        [keys[key] for key in listed],
        weights[listed],
        carried[listed],
        title=title,
        is_signed=of_logit is not None,
    )

    def choose(number: int) -> None:
        change_view(replace(current(), key=int(listed[number])))

    name = f"edges-{'-'.join(map(str, cell))}-{of_logit}"
    plot(figure, name, alt=f"The weight of each key, and beside it: {title}.", clicked=choose)
    save_figure(lambda: figure, "edges")
    if len(open_keys) > len(listed):
        st.caption(
            f"The {len(listed)} largest of {len(open_keys):,} edges, in the order of the text."
        )
    table(
        {
            "key": [numbered_labels(keys)[key] for key in open_keys],
            "weight": weights[open_keys],
            title: carried[open_keys],
        },
        f"edges-{title}",
    )


def _open_keys(seen: Look, cell: Cell, weights: Row) -> NDArray[np.intp]:
    """The keys of the row that are not masked, or get weight all the same: a mask value may leave some."""
    return np.flatnonzero(_allowed(seen, cell) | (weights > 0))


def _allowed(seen: Look, cell: Cell) -> NDArray[np.bool_]:
    mask = seen.attention.mask_of(cell.head)
    count = len(seen.labels[1])
    return np.ones(count, np.bool_) if mask is None else mask[cell.query]


def _say_row(seen: Look, cell: Cell, edge: "EdgeValues") -> None:
    """Whether the largest weight carries the longest vector; and whether the first token rests the head."""
    weights, carried = edge.weights[cell.query], edge.norms[cell.query]
    names = [f"**{plain(token_label(text))}**" for text in seen.labels[1]]
    heavy, long = int(weights.argmax()), int(carried.argmax())
    keys = _open_keys(seen, cell, weights)
    if not carried.any():
        look_for("No edge of this row carries anything.")
    elif len(keys) == 1:
        look_for(
            f"This row has one edge, to {names[heavy]}: its weight is {weights[heavy]:.2f}, and it carries a "
            f"vector of length {carried[heavy]:.2f}."
        )
    elif heavy == long:
        look_for(
            f"{names[heavy]} has the largest weight of this row, {weights[heavy]:.2f}, and its edge "
            f"carries the longest vector: its length is {carried[heavy]:.2f}."
        )
    else:
        look_for(
            f"The largest weight of this row, {weights[heavy]:.2f}, is that of {names[heavy]} at position "
            f"{heavy}; its edge carries a vector of length {carried[heavy]:.2f}. The longest, "
            f"**{carried[long]:.2f}**, comes from {names[long]} at position {long}, with a weight of "
            f"{weights[long]:.2f}."
        )
    lengths = np.linalg.norm(edge.written, axis=-1)
    others = np.flatnonzero(_allowed(seen, cell))[1:]
    share = float(carried[0] / carried.sum()) if carried.any() else 0.0
    if len(others) and weights[0] >= RESTS and share < weights[0] / 2:
        st.markdown(
            f"The first token, {names[0]}, takes {weights[0]:.0%} of this row's weight but carries only "
            f"{share:.0%} of all lengths: {'through W_O ' * seen.has_output}its value is "
            f"{lengths[0]:.2f} long, those of the other keys {lengths[others].mean():.2f} on average."
        )


def _check_row(seen: Look, cell: Cell, edge: "EdgeValues") -> None:
    total = edge.weights[cell.query] @ edge.written
    if seen.has_output:
        wrote, what = seen.model.head_output(seen.attention, cell.head), "what the head wrote there"
    else:
        is_set_to_zero = cell.head in seen.attention.ablated
        wrote, what = (
            seen.attention.output[cell.head] * (not is_set_to_zero),
            "the head's output there",
        )
    wrote = wrote[cell.query]
    added, recorded = agreeing(*(float(np.linalg.norm(one)) for one in (total, wrote)))
    st.caption(
        f"Check: the edges of this row add up to a vector of length {added}; {what} "
        f"has length {recorded}. The two vectors differ by at most "
        f"{difference(float(np.abs(total - wrote).max()))} in any of their numbers."
    )


def _whole_head(
    seen: Look, cell: Cell, edge: "EdgeValues", boxes: Sequence[DeltaGenerator]
) -> None:
    """All edges of the head by their length, beside their weights."""
    queries, keys = seen.labels
    mask = seen.attention.mask_of(cell.head)
    norms = edge.norms
    with boxes[0]:
        blocked = None if mask is None else ~mask
        figure = edge_lengths(norms, queries=queries, keys=keys, blocked=blocked)
        chart(figure, f"edges-head-{cell.place}-{cell.head}")
    with boxes[1]:
        chart(
            weights_of_head(seen.attention, cell.head, queries=queries, keys=keys, fitting=NARROW),
            f"edges-weights-{cell.place}-{cell.head}",
        )
        weight, length = (
            float(one[:, 0].sum() / (one.sum() or 1)) for one in (edge.weights, norms)
        )
        look_for(
            f"On the left the length of what each edge carries, on the right the weights. Of all weights the "
            f"first token, **{plain(token_label(keys[0]))}**, has {weight:.0%}; of all lengths {length:.0%}."
        )


def _in_a_logit(
    seen: Look, cell: Cell, edge: "EdgeValues", boxes: Sequence[DeltaGenerator]
) -> None:
    """What each edge of the row adds to a logit after the row's token, or to how far it lies above
    another one."""
    if seen.trace.prediction is None:
        with boxes[0]:
            say_encoder(seen, "predicts no next token, so its edges add to no logit.")
        return
    if seen.attention.stack == "encoder":
        with boxes[0]:
            st.info(
                "The encoder's heads reach the logits only through cross-attention. Choose a head of the "
                "decoder."
            )
        return
    with boxes[1]:
        chosen = choose_logit(seen, cell)
    try:
        added = edge.logit(chosen.token, chosen.against, position=cell.query)[cell.query]
    except ValueError as refusal:  # parts of another run's stream stand in this one
        boxes[0].info(plain(str(refusal)))
        return
    with boxes[0]:
        _bars(
            seen,
            cell,
            edge.weights[cell.query],
            added,
            of_logit=f"{chosen.token}-{chosen.against}",
        )
    with boxes[1]:
        count = len(_open_keys(seen, cell, edge.weights[cell.query]))
        say_logit(seen, cell, chosen, added, count)
