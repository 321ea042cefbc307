"""What an intervention did inside: how sharply the rows of weights look, and how far the stream moved."""

import numpy as np
import streamlit as st

from model.analysis.run_comparison import (
    RowStatistics,
    StreamMovement,
    largest_difference,
    movement,
    row_statistics,
)
from model.nn.places import layer_label
from viz.elements.one_of import one_of
from viz.figures.curves import before_and_after
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import numbered_labels
from viz.notation.names import state_names
from viz.notation.theme import MORE, WEIGHT, rgba
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.views.laboratory.effects import runs

ENTROPY = r"H_i = -\sum_j w_{ij} \ln w_{ij} \qquad \text{from } 0 \text{ to } \ln n"
LARGEST = r"\max_j\, w_{ij}"
MOVED = (
    r"\text{moved}_t = \frac{\lVert x_t^{\text{changed}} - x_t^{\text{unchanged}} \rVert}"
    r"{\lVert x_t^{\text{unchanged}} \rVert}"
)
SHARP, EVEN = "Largest weight", "Entropy"
SPACIOUS = 8  # tokens up to which a cell has room for two decimals


def rows_effect(seen: Look) -> None:
    """Entropy and largest weight of each row of one head, before and after."""
    before, after = (trace.find(seen.place) for trace in runs(seen))
    ours, theirs = row_statistics(before), row_statistics(after)
    queries, _ = seen.labels
    picture, words = st.columns([3, 2], gap="large")
    with words:
        sharp = one_of("Picture", (SHARP, EVEN), "laboratory-rows") == SHARP
        head = seen.head
        st.latex(LARGEST if sharp else ENTROPY)
        st.markdown(
            f"Mean over all rows and heads of {layer_label(seen.place)}: entropy "
            f"**{row_mean(ours.entropy, ours):.3f}** nats before, **{row_mean(theirs.entropy, theirs):.3f}** "
            f"after; largest weight **{row_mean(ours.largest, ours):.3f}** before, "
            f"**{row_mean(theirs.largest, theirs):.3f}** after."
        )
        if empty := int(theirs.empty[head].sum()):
            st.caption(
                "In 1 row every key is masked: it is 0 and reads nothing."
                if empty == 1
                else f"In {empty} rows every key is masked: they are 0 and read nothing."
            )
        if seen.request.intervention.dropout:
            rest = " or to what the sink leaves of it" * (seen.attention.sinks is not None)
            st.caption(f"These are the weights before dropout, whose rows sum to 1{rest}.")
    with picture:
        figure = before_and_after(
            queries,
            *((run.largest if sharp else run.entropy)[head] for run in (ours, theirs)),
            unit="largest weight of the row" if sharp else "entropy in nats",
            colour=WEIGHT,
            top=1.05 if sharp else None,
        )
        chart(figure, f"laboratory-rows-{sharp}")
    columns = {
        "query": numbered_labels(queries),
        "largest before": ours.largest[head],
        "largest after": theirs.largest[head],
        "entropy before": ours.entropy[head],
        "entropy after": theirs.entropy[head],
    }
    table(columns, "laboratory-rows")


def row_mean(values: np.ndarray, rows: RowStatistics) -> float:
    """The mean over all rows that read something."""
    read = values[~rows.empty]
    return float(read.mean()) if read.size else 0.0


def stream_effect(seen: Look) -> None:
    """By layer, how far each token's vector lies from where it was."""
    before, after = runs(seen)
    stacks = seen.model.stacks()
    stack = stacks[-1]
    if len(stacks) > 1:
        stack = one_of("Stack", stacks, "laboratory-stack", default=stack)
    moved, names = movement(before, after, stack), state_names(after, stack)
    tokens = [token.text for token in after.tokens_of(stack)]
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        figure = heatmap(
            moved.share,
            rows=Axis("state", names, tokens=False),
            columns=Axis("token", tokens),
            quantity="difference",
            decimals=2 if len(tokens) <= SPACIOUS else 1,
        )
        upward = [[0, rgba(MORE, 0)], [1, rgba(MORE, 1)]]  # a distance is never below 0
        figure.data[-1].update(zmin=0, colorscale=upward)
        chart(figure, f"laboratory-stream-{stack}")
    with words:
        st.latex(MOVED)
        st.markdown(_where_it_moved(moved, names))
        st.caption(
            "Largest difference in any state of the stream: "
            f"{largest_difference(before, after):.3g}."
        )
    columns = {
        "state": names,
        "mean distance": moved.distance.mean(-1),
        "mean length before": moved.length.mean(-1),
        "mean share": moved.share.mean(-1),
    }
    table(columns, "laboratory-stream")


def _where_it_moved(moved: StreamMovement, names: tuple[str, ...]) -> str:
    changed = np.flatnonzero(moved.distance.max(-1) > 0)
    if not changed.size:
        return "This stream does not differ from that of the unchanged run in any number."
    return (
        f"The first state that differs: **{names[changed[0]]}**. After the last sub-layer the "
        f"vectors are on average **{moved.share[-1].mean():.1%}** of their length away from the "
        "unchanged ones."
    )
