"""All heads of a layer put together: their outputs side by side, times W_O, and what the layer writes."""

import numpy as np
import streamlit as st

from model.analysis.heads.contributions import Merged, merged
from model.code.around import map_reads, output_reads
from model.code.check import within_weights
from model.code.script import saves
from model.snippets.layers import concatenation
from viz.elements.one_of import one_listed, one_of
from viz.figures.vectors import merging, merging_of_tokens
from viz.notation.head_formulas import concatenation as formula
from viz.notation.labels import numbered_labels
from viz.notation.numbers import difference, led_by
from viz.shell.controls import LISTED
from viz.shell.pictures import chart, code_behind, look_for, table
from viz.state.look import Look
from viz.state.session import current
from viz.views.all_heads.choice import name_of

OWN, IDENTITY = "The model's", "The identity"
FITTING = 24  # tokens of a sentence that is drawn whole
WHOLE = "The whole sentence"


def through_output(seen: Look) -> None:
    """The picture of one token, or of the whole sentence where it fits."""
    picture, words = st.columns([3, 2], gap="large")
    queries, _ = seen.labels
    with words:
        said = st.container()
        names = numbered_labels(queries, LISTED)
        names += [WHOLE] if len(queries) <= FITTING else []
        token = one_listed(
            "Token",
            names,
            f"all-heads-merged-{len(names)}",
            first=min(current().query, len(queries) - 1),
        )
        matrix = one_of("W_O", (OWN, IDENTITY), "all-heads-w-o")
        st.caption(
            "What if W_O changed nothing? As the identity it leaves the numbers of each head in their places."
        )
    whole = token == len(queries)
    found = merged(
        seen.model, seen.trace, seen.place, slice(None) if whole else slice(token, token + 1)
    )
    shown = _with_matrix(found, matrix)
    with picture:
        _draw(seen, shown, whole=whole)
    look_for(_look(seen, shown, by_identity=shown is not found, whole=whole), said)
    with words:
        st.latex(formula(seen.model.config))
        _say_shapes(seen, found)
    st.caption(
        f"Check: the heads' outputs side by side, times W_O{_bias(found)}, differ from what this sub-layer "
        f"added to the stream by at most {difference(found.check)}."
    )
    _code(seen, found, 0 if whole else token)
    columns = dict(zip(names, shown.total, strict=False))
    if not whole:
        columns = {f"head {head}": written[0] for head, written in enumerate(shown.written)}
        columns |= {"bias": shown.bias, "sum": shown.total[0], "recorded": found.recorded[0]}
    table(columns, f"all-heads-merged-{token}-{matrix}", index="dimension")


def _with_matrix(found: Merged, matrix: str) -> Merged:
    """Through the model's W_O, or as if it were the identity; a sentence where it cannot be."""
    if matrix == OWN:
        return found
    try:
        return found.by_identity()
    except ValueError as refusal:
        st.info(str(refusal))
        return found


def _draw(seen: Look, shown: Merged, *, whole: bool) -> None:
    """whole: whether every token is drawn, or the only one."""
    groups = seen.attention.vectors[1].shape[0]
    queries, _ = seen.labels
    key = f"all-heads-merged-{seen.place}-{seen.head}"
    if whole:
        figure = merging_of_tokens(shown.outputs, shown.total, tokens=queries, groups=groups)
        chart(figure, f"{key}-sentence")
        return
    sums = {"+ bias": shown.bias} if shown.bias.any() else {}
    sums |= {"= sum": shown.total[0], "recorded": shown.recorded[0]}
    figure = merging(
        shown.outputs[:, 0], shown.written[:, 0], sums, groups=groups, chosen=seen.head
    )
    chart(figure, key)


def _look(seen: Look, shown: Merged, *, by_identity: bool, whole: bool) -> str:
    heads, _, width = shown.outputs.shape
    names = [name_of(seen, (seen.place, head)) for head in range(heads)]
    lengths = np.linalg.norm(shown.written, axis=-1).mean(-1).astype(np.float64)
    longest, _ = led_by(names, lengths, decimals=2)
    framed = "" if whole else f" The frame is around the chosen head, {names[seen.head]}."
    if by_identity:
        apart = np.linalg.norm(shown.total - shown.recorded, axis=-1).mean()
        return (
            f"As if W_O were the identity, each head would write to its own {width} numbers only, and the "
            f"sum would be the outputs side by side. It lies {apart:.2f} from what the layer really wrote, "
            f"whose length is {np.linalg.norm(shown.recorded, axis=-1).mean():.2f}."
        )
    return (
        f"Side by side each of the {heads} heads has {width} places of its own. Through W_O every head "
        f"writes to all {len(shown.bias)} numbers of the stream, and their sum is what the layer writes. "
        f"The longest vector here comes from {longest}: length {lengths.max():.2f}.{framed}"
    )


def _say_shapes(seen: Look, found: Merged) -> None:
    heads, _, width = found.outputs.shape
    said = (
        f"W_V of a head turns {seen.model.config.d_model} numbers into {width}, so no identity can take its "
        f"place. W_O has {heads * width} rows, {width} for each head."
    )
    groups = seen.attention.vectors[1].shape[0]
    if groups < heads:
        said += (
            f" The {heads} heads share {groups} heads of keys and values: heads of one colour mix the same "
            "values, each with its own weights and its own rows of W_O."
        )
    st.caption(said)


def _bias(found: Merged) -> str:
    return ", plus its bias" if found.bias.any() else ""


def _code(seen: Look, found: Merged, token: int) -> None:
    bias = bool(found.bias.any())
    attention = seen.attention
    heads, queries, width = attention.output.shape
    d_model = len(found.bias)
    saved = saves(seen.model, f"{within_weights(attention)}output.weight")
    code_behind(
        concatenation(attention, d_model, bias=bias),
        "concatenation",
        given={
            "output": f"({heads}, {queries}, {width}): of each head",
            "w": "(the layer's weights by name)",
        },
        cell={"query": token, "dimension": 0},
        value=float(found.total[0, 0]),
        reads=(*output_reads(attention), map_reads(seen.model, attention)) if saved else None,
    )
