"""What view, transpose, broadcasting, softmax and einsum do to a tensor: counted numbers, or the model's."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from viz.elements.one_of import one_of
from viz.figures.cells import equal_cells, memory_cells, tensor_cells
from viz.figures.heatmap import Axis, heatmap
from viz.figures.vectors import colour_end, token_rows
from viz.notation.labels import numbered_labels
from viz.notation.numbers import difference
from viz.notation.theme import MASKED, QuantityName
from viz.shell.controls import choose_layer_and_head
from viz.shell.panel import Caption, Columns, Panel, Part, Table
from viz.shell.pictures import without_sentence
from viz.state.look import Look, labels_of

if TYPE_CHECKING:
    from model.analysis.axes import Outcome, TensorLines

_OVER: Mapping[int, str] = {
    -4: "sequences: a number is compared with those at the same place in other texts",
    -3: "heads: for each query and key the numbers of all heads sum to 1",
    -2: "queries: each column sums to 1, so tokens share out who reads a key",
    -1: "keys: each row sums to 1, so a query shares out what it reads: these are attention weights",
}


def axes_view(look: Look) -> Panel:
    """An operation on axes, which PyTorch runs when it is chosen."""
    tensors = {
        "Counted numbers": _counted,
        "Queries of your sentence": _queries,
        "Scores of your sentence": _scores,
    }
    tensor = st.selectbox(
        "Tensor", list(tensors), key="axes-tensor", bind="query-params", width=240
    )
    return tensors[tensor](look)


def _counted(look: Look) -> Panel:
    """One of the operations on numbers that tell where each of them goes."""
    from model.analysis.axes import (
        SIZES,
        axis_operations,
        run,
    )  # imports torch: pages are drawn first

    without_sentence()
    titles = {operation.title: operation for operation in axis_operations().values()}
    title = st.selectbox("Operation", list(titles), key="axes-operation", bind="query-params")
    operation = titles[title]
    chosen = {}
    for letter in operation.sizes:
        label, value, lowest, highest = SIZES[letter]
        key = f"axes-{letter}"
        chosen[letter] = int(st.number_input(label, lowest, highest, value, key=key, width=130))
    over = ""
    if operation.over:
        chosen["axis"] = _choose_axis()
        over = f" Now over the {_OVER[chosen['axis']]}."
    lines = operation.written(chosen)
    outcome = run(lines)
    (name, _), (new, _) = lines[-2:]
    tensors = [tensor.values for tensor in (outcome.before, outcome.after) if tensor is not None]
    axes = (operation.before, operation.after)
    quantity: QuantityName = "score" if operation.after.endswith("key") else "query"
    quantities: tuple[QuantityName, ...] = (quantity, "weight" if operation.over else quantity)
    limit = max(float(np.abs(values[np.isfinite(values)]).max()) for values in tensors)
    figures = [
        tensor_cells(values, words.split(", "), kind, limit=limit)
        for values, words, kind in zip(tensors, axes, quantities, strict=False)
    ]
    equal_cells(figures)
    if outcome.after is None:
        after = Panel(
            "axes-refused",
            below=[
                partial(st.error, "PyTorch stops with this message:"),
                partial(st.code, outcome.message, language=None, wrap_lines=True),
                f"**What it means.** {operation.means}",
            ],
        )
        memories, shared = {name: outcome.before.memory}, ""
    else:
        after = Panel("axes-after", picture=figures[1], below=[f"`{new}`"])
        memories = {name: outcome.before.memory, new: outcome.after.memory}
        shared = f"`{new}` has memory of its own."
    if outcome.shared:
        memories = {"both": outcome.before.memory}
        shared = f"Both tensors read the same memory: `{new}` copies no number."
    limit = max(float(np.abs(memory[np.isfinite(memory)]).max()) for memory in memories.values())
    return Panel(
        "axes-counted",
        look_for=operation.what + over,
        picture=Columns([Panel("axes-before", picture=figures[0], below=[f"`{name}`"]), after]),
        beside=[_code(lines)],
        below=[
            Panel(
                "axes-memory",
                picture=memory_cells(memories, quantity, limit=limit),
                below=[Caption(shared)] if shared else [],
            ),
            _layouts((name, new), outcome, axes),
        ],
    )


def _choose_axis() -> int:
    from model.analysis.axes import AXES

    return one_of("Axis (dim)", AXES, "axes-axis", default=-1)


def _code(lines: "TensorLines") -> Part:
    written = "\n".join(f"{name} = {line}" for name, line in lines)
    return partial(st.code, written, language="python", wrap_lines=True)


def _layouts(names: tuple[str, str], outcome: "Outcome", axes: tuple[str, str]) -> Part:
    """Shape and strides of both tensors."""
    rows = [
        {
            "tensor": name,
            "axes": words,
            "shape": str(layout.shape),
            "strides": str(layout.strides),
            "contiguous": "yes" if layout.contiguous else "no",
        }
        for name, layout, words in zip(names, (outcome.before, outcome.after), axes, strict=True)
        if layout is not None
    ]
    frame = pd.DataFrame(rows)
    return partial(st.dataframe, frame, key="axes-layouts", hide_index=True, height="content")


def _queries(look: Look) -> Panel:
    """The queries of a layer, from (1, n, h·d) to (1, h, n, d)."""
    from model.code.live_axes import queries_by_head
    from model.trace.unproven import NotShownError

    attention, head = choose_layer_and_head(look.trace, look.model.attention_names)
    try:
        cut = queries_by_head(look.model, look.trace, attention)
    except ValueError as refusal:
        raise NotShownError(
            f"The queries before they are cut into heads cannot be shown: {refusal}."
        ) from refusal
    flat, own = cut.outcome.before.values[0], cut.outcome.made.values[0, head]
    width, end = own.shape[-1], colour_end(flat)
    tables = []
    for values, columns in (
        (flat, f"width of all heads, {flat.shape[-1]}: head {head} is framed"),
        (own, f"head {head}: its {width} dimensions"),
    ):
        across = Axis(columns, [str(dim) for dim in range(values.shape[-1])], tokens=False)
        tokens = labels_of(look.trace, attention)[0]
        tables.append(token_rows(values, tokens=tokens, columns=across, quantity="query", end=end))
    left = head * width - 0.5
    tables[0].add_vrect(left, left + width, line={"color": MASKED, "width": 2})
    later = attention.projection.normed or attention.projection.turned
    follows = "after the norm and the rotation that follow, " if later else ""
    return Panel(
        "axes-queries",
        look_for=f"Head {head} gets the framed columns, {head * width} to {(head + 1) * width - 1}, of every "
        "token. The view counts the width as heads times dimensions; the transpose puts the heads first, so "
        "that each head has a table of its own. Neither moves a number in memory.",
        picture=tables[0],
        beside=[
            _code(cut.lines),
            Caption(
                f"Check: {follows}the queries of all heads differ from the recorded ones by at most "
                f"{difference(cut.apart or 0.0)}."
            ),
        ],
        below=[
            Panel("axes-queries-of-head", picture=tables[1]),
            _layouts(
                ("q", cut.lines[-1][0]),
                cut.outcome,
                ("sequence, token, width", "sequence, head, token, dim"),
            ),
        ],
    )


def _scores(look: Look) -> Panel:
    """A softmax over each axis of a layer's masked scores."""
    from model.code.live_axes import MOST_TOKENS, softmax_over

    attention, head = choose_layer_and_head(look.trace, look.model.attention_names)
    axis = _choose_axis()
    softmax = softmax_over(attention, axis)
    weights = softmax.outcome.made.values[0, head]
    queries, keys = (labels[:MOST_TOKENS] for labels in labels_of(look.trace, attention))
    words = [f"Over the {_OVER[axis]}."]
    for name, sums in (("rows", weights.sum(-1)), ("columns", weights.sum(-2))):
        real = sums[~np.isnan(sums)]
        if real.size:
            words.append(
                f"The {name} sum to between **{real.min():.3f}** and **{real.max():.3f}**."
            )
    if missing := int(np.isnan(weights).sum()):
        words.append(
            f"**{missing} of {weights.size}** numbers are NaN: along this axis all scores are −∞ "
            "there, and the softmax divides 0 by 0."
        )
    beside = [_code(softmax.lines)]
    if softmax.apart is not None:
        apart = difference(softmax.apart)
        beside.append(Caption(f"The model's own weights differ from these by at most {apart}."))
    if MOST_TOKENS in (len(queries), len(keys)):
        beside.append(Caption(f"At most the first {MOST_TOKENS} tokens are taken here."))
    sums = {"query": numbered_labels(queries), "sum of the row": weights.sum(-1)}
    columns = dict(zip(numbered_labels(keys), weights.T, strict=True))
    down, across = Axis("query", queries), Axis("key", keys)
    return Panel(
        "axes-softmax",
        look_for=" ".join(words),
        picture=heatmap(weights, rows=down, columns=across, quantity="weight", square=True),
        beside=beside,
        table=Table(sums | columns),
    )
