"""What view, transpose, broadcasting, softmax and einsum do to a tensor: counted numbers, or the model's."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from viz.elements.one_of import one_of
from viz.elements.plot import rules
from viz.figures.cells import equal_cells, memory_cells, tensor_cells
from viz.figures.heatmap import Axis, heatmap
from viz.figures.vectors import colour_end, token_rows
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.theme import MASKED, QuantityName
from viz.shell.controls import choose_layer_and_head
from viz.shell.pictures import chart, look_for, table, without_sentence
from viz.state.look import Look, labels_of
from viz.views.cost.choice import Sizes

if TYPE_CHECKING:
    from model.analysis.axes import AxisOperation, Layout, Lines, Outcome

COUNTED, QUERIES, SCORES = "Counted numbers", "Queries of your sentence", "Scores of your sentence"
Places = tuple[DeltaGenerator, DeltaGenerator]  # for pictures, for words
_OVER: Mapping[int, str] = {
    -4: "sequences: a number is compared with those at the same place in other texts",
    -3: "heads: for each query and key the numbers of all heads sum to 1",
    -2: "queries: each column sums to 1, so tokens share out who reads a key",
    -1: "keys: each row sums to 1, so a query shares out what it reads: these are attention weights",
}


def axes_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """An operation on axes, which PyTorch runs when it is chosen."""
    rules(".stColumn:has(.st-key-sizes) { display: none }")  # it has sizes of its own
    pictures, words = st.columns([2, 1], gap="large")
    with words:
        names = (COUNTED, QUERIES, SCORES)
        tensor = st.selectbox("Tensor", names, key="axes-tensor", bind="query-params")
    if tensor == COUNTED:
        without_sentence()
        _counted(pictures, words)
    elif tensor == QUERIES:
        _queries(seen, pictures, words)
    else:
        _scores(seen, pictures, words)


def _counted(pictures: DeltaGenerator, words: DeltaGenerator) -> None:
    """One of the operations on numbers that tell where each of them goes."""
    from model.analysis.axes import axis_operations, run  # imports torch: pages are drawn first

    with words:
        titles = {one.title: one for one in axis_operations().values()}
        title = st.selectbox("Operation", list(titles), key="axes-operation", bind="query-params")
        operation = titles[title]
        sizes = _sizes(operation)
        lines = operation.written(sizes)
        look_for(f"{operation.what} {_axis_words(sizes)}")
        _code(lines)
    outcome = run(lines)
    with pictures:
        _before_and_after(operation, lines, outcome)
    _in_memory(lines, outcome, _quantity(operation))
    _layouts(lines, outcome, (operation.before, operation.after))


def _sizes(operation: "AxisOperation") -> dict[str, int]:
    from model.analysis.axes import SIZES

    boxes = st.columns(2, gap="small") * len(operation.sizes)
    chosen = {
        letter: int(
            box.number_input(
                SIZES[letter].label,
                SIZES[letter].lowest,
                SIZES[letter].highest,
                SIZES[letter].value,
                key=f"axes-{letter}",
            )
        )
        for letter, box in zip(operation.sizes, boxes, strict=False)
    }
    return chosen | ({"axis": _axis()} if operation.over else {})


def _axis() -> int:
    from model.analysis.axes import AXES

    return one_of("Axis (dim)", AXES, "axes-axis", default=-1)


def _axis_words(sizes: Mapping[str, int]) -> str:
    return f"Now over the {_OVER[sizes['axis']]}." if "axis" in sizes else ""


def _code(lines: "Lines") -> None:
    written = "\n".join(f"{name} = {line}" for name, line in lines)
    st.code(written, language="python", wrap_lines=True)


def _before_and_after(operation: "AxisOperation", lines: "Lines", outcome: "Outcome") -> None:
    (before, after), names = st.columns(2, gap="medium"), [name for name, _ in lines[-2:]]
    found = [one.values for one in (outcome.before, outcome.after) if one is not None]
    limit = max(float(np.abs(one[np.isfinite(one)]).max()) for one in found)
    quantity = _quantity(operation)
    new = "weight" if operation.over else quantity
    kinds = zip(found, (operation.before, operation.after), (quantity, new), strict=False)
    figures = [
        tensor_cells(values, axes.split(", "), kind, limit=limit) for values, axes, kind in kinds
    ]
    equal_cells(figures)
    with before:
        st.markdown(f"`{names[0]}`")
        chart(figures[0], "axes-before")
    with after:
        st.markdown(f"`{names[1]}`")
        if outcome.after is None:
            st.error("PyTorch stops with this message:")
            st.code(outcome.message, language=None, wrap_lines=True)
            st.markdown(f"**What it means.** {operation.means}")
            return
        chart(figures[1], "axes-after")


def _quantity(operation: "AxisOperation") -> QuantityName:
    return "score" if operation.after.endswith("key") else "query"


def _in_memory(lines: "Lines", outcome: "Outcome", quantity: QuantityName) -> None:
    """The numbers of both tensors as they lie in memory."""
    name, new = (name for name, _ in lines[-2:])
    memories = {name: outcome.before.memory}
    if outcome.shared:
        memories = {"both": outcome.before.memory}
    elif outcome.after is not None:
        memories[new] = outcome.after.memory
    finite = [memory[np.isfinite(memory)] for memory in memories.values()]
    limit = float(max(np.abs(memory).max() for memory in finite))
    chart(memory_cells(memories, quantity, limit=limit), "axes-memory")
    if outcome.shared:
        st.caption(f"Both tensors read the same memory: `{new}` copies no number.")
    elif outcome.after is not None:
        st.caption(f"`{new}` has memory of its own.")


def _layouts(lines: "Lines", outcome: "Outcome", axes: tuple[str, str]) -> None:
    """Shape and strides of both tensors."""
    names = [name for name, _ in lines[-2:]]
    found = zip(names, (outcome.before, outcome.after), axes, strict=True)
    rows = [_row(name, one, words) for name, one, words in found if one is not None]
    st.dataframe(pd.DataFrame(rows), key="axes-layouts", hide_index=True, height="content")


def _row(name: str, layout: "Layout", axes: str) -> dict[str, str]:
    return {
        "tensor": name,
        "axes": axes,
        "shape": str(layout.shape),
        "strides": str(layout.strides),
        "contiguous": "yes" if layout.contiguous else "no",
    }


def _queries(seen: Look, pictures: DeltaGenerator, words: DeltaGenerator) -> None:
    """The queries of a layer, from (1, n, h·d) to (1, h, n, d)."""
    from model.code.live_axes import queries_by_head

    with words:
        attention, head = choose_layer_and_head(seen.trace, seen.model.attention_names)
        said = st.container()
    try:
        found = queries_by_head(seen.model, seen.trace, attention)
    except ValueError as refusal:
        pictures.info(
            plain(f"The queries before they are cut into heads cannot be shown: {refusal}.")
        )
        return
    outcome = found.outcome
    flat, cut = outcome.before.values[0], outcome.made.values[0, head]
    tokens, width = labels_of(seen.trace, attention)[0], cut.shape[-1]
    end = colour_end(flat)
    with pictures:
        for values, columns, key in (
            (flat, f"width of all heads, {flat.shape[-1]}: head {head} is framed", "axes-queries"),
            (cut, f"head {head}: its {width} dimensions", "axes-queries-of-head"),
        ):
            dims = [str(dim) for dim in range(values.shape[-1])]
            across = Axis(columns, dims, tokens=False)
            figure = token_rows(values, tokens=tokens, columns=across, quantity="query", end=end)
            if values is flat:
                left, line = head * width - 0.5, {"color": MASKED, "width": 2}
                figure.add_vrect(left, left + width, line=line)
            chart(figure, key)
        _layouts(
            (("q", ""), *found.lines),
            outcome,
            ("sequence, token, width", "sequence, head, token, dim"),
        )
    with words:
        _code(found.lines)
        later = attention.projection.normed or attention.projection.turned
        said_of = "after the norm and the rotation that follow, " if later else ""
        st.caption(
            f"Check: {said_of}the queries of all heads differ from the recorded ones by at most "
            f"{difference(found.apart or 0.0)}."
        )
    look_for(
        f"Head {head} gets the framed columns, {head * width} to {(head + 1) * width - 1}, of every token. "
        "The view counts the width as heads times dimensions; the transpose puts the heads first, so that "
        "each head has a table of its own. Neither moves a number in memory.",
        said,
    )


def _scores(seen: Look, pictures: DeltaGenerator, words: DeltaGenerator) -> None:
    """A softmax over each axis of a layer's masked scores."""
    from model.code.live_axes import MOST_TOKENS, softmax_over

    with words:
        attention, head = choose_layer_and_head(seen.trace, seen.model.attention_names)
        axis, said = _axis(), st.container()
    found = softmax_over(attention, axis)
    weights = found.outcome.made.values[0, head]
    queries, keys = (labels[:MOST_TOKENS] for labels in labels_of(seen.trace, attention))
    with pictures:
        down, across = Axis("query", queries), Axis("key", keys)
        figure = heatmap(weights, rows=down, columns=across, quantity="weight", square=True)
        chart(figure, "axes-softmax")
        columns = dict(zip(numbered_labels(keys), weights.T, strict=True))
        sums = {"query": numbered_labels(queries), "sum of the row": weights.sum(-1)}
        table(sums | columns, "axes-softmax")
    with words:
        _code(found.lines)
        if found.apart is not None:
            st.caption(
                f"The model's own weights differ from these by at most {difference(found.apart)}."
            )
        if len(queries) == MOST_TOKENS or len(keys) == MOST_TOKENS:
            st.caption(f"At most the first {MOST_TOKENS} tokens are taken here.")
    look_for(f"Over the {_OVER[axis]}. {_sums(weights)}", said)


def _sums(weights: np.ndarray) -> str:
    """What the rows and columns of a head sum to, and how many numbers are none."""
    found = []
    for name, sums in (("rows", weights.sum(-1)), ("columns", weights.sum(-2))):
        real = sums[~np.isnan(sums)]
        if real.size:
            found.append(
                f"The {name} sum to between **{real.min():.3f}** and **{real.max():.3f}**."
            )
    missing = int(np.isnan(weights).sum())
    if missing:
        found.append(
            f"**{missing} of {weights.size}** numbers are NaN: along this axis all scores are −∞ "
            "there, and the softmax divides 0 by 0."
        )
    return " ".join(found)
