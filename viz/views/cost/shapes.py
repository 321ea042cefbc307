"""The shape after every operation, and the parameters: counted, beside what is really there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

import pandas as pd
import streamlit as st

from model.analysis.cost.operations import Operation, Shape, compared, operations, recorded_shapes
from model.arithmetic.sizes import parameter_parts, parameters_read
from model.nn.config import TransformerConfig
from model.nn.places import Kind, Place
from viz.elements.one_of import one_of
from viz.figures.bars import Amount, amounts, percent
from viz.figures.diagrams import Block, blocks
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.notation.theme import (
    FEED_FORWARD,
    KEY,
    MASKED,
    OUTPUT,
    QUERY,
    SCORE,
    STREAM,
    VALUE,
    WEIGHT,
)
from viz.shell.pictures import beside_words, chart, look_for, table
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import Sizes

_PLACES: dict[Kind, str] = {
    "embedding": "Embedding",
    "self": "Self-attention",
    "cross": "Cross-attention",
    "feed_forward": "Feed-forward",
    "final": "Final norm",
    "output": "Output",
}
_COLOURS = {
    "Q": QUERY,
    "K and V": KEY,
    "Scores": SCORE,
    "Scaled": SCORE,
    "Weights": WEIGHT,
    "Context": OUTPUT,
    "After W_O": OUTPUT,
    "Hidden layer": FEED_FORWARD,
    "Activation": FEED_FORWARD,
    "Back to the width": FEED_FORWARD,
    "Latent of Q": QUERY,
    "Latent of K and V": KEY,
    "Turned part of K": KEY,
    "K of the latent": KEY,
    "V of the latent": VALUE,
    "Hidden layer of the experts": FEED_FORWARD,
    "Activation of the experts": FEED_FORWARD,
    "Back to the width, of each": FEED_FORWARD,
}
Row = tuple[Operation, Shape | None, bool | None]  # counted, recorded, whether they agree
NOT_LISTED = "It lies in parts that this page does not count."
_PARTS = {
    "Token embedding": STREAM,
    "Attention": WEIGHT,
    "Feed-forward": FEED_FORWARD,
    "Experts": FEED_FORWARD,
    "Output matrix": OUTPUT,
}


def shapes(seen: Look, sizes: Sizes, own: bool) -> None:
    """A walk through one part of the model: each result to scale; each operation, its formula, its shape."""
    steps = operations(sizes.config, sizes.lengths)
    rows = compared(steps, recorded_shapes(seen.trace) if own else {})
    picture, words = st.columns([3, 2], gap="large")
    place = _place(steps)
    with words:
        look_for(_what_to_see(sizes.config))
        st.latex(formulas.head_width(sizes.config))
        st.caption(
            "One sequence in one layer. All blocks are drawn to one scale: the height is the "
            "number of tokens, the width is the count of numbers for each token. Twice the area "
            "means twice as many numbers."
        )
    shown = [row for row in rows if row[0].place == place]
    with picture:
        chart(blocks([_block(step) for step, _, _ in shown if step.numbers]), "cost-numbers")
    frame = _frame(shown, _scales(seen) if own else None, sizes.config.head_width)
    st.dataframe(frame, key="cost-shapes", hide_index=True, height="content")
    kind = Place.named(place).kind
    if kind in ("self", "cross"):
        st.latex(formulas.attention_shapes(sizes.config, kind))
    if own:
        _check(seen, rows)


def _what_to_see(config: TransformerConfig) -> str:
    said = (
        "Only the scores and weights have two axes of tokens, queries and keys: their blocks are n "
        "× n, one for each head. Double the length, and they become four times as large; all other "
        "blocks only double. Splitting into heads creates no new numbers."
    )
    if config.groups_keys:
        said += (
            f" K and V are narrower than Q: {config.heads} heads of queries share "
            f"{config.key_head_count} heads of keys and values."
        )
    return said


def _block(step: Operation) -> Block:
    """The new numbers of an operation, for one sequence of the batch."""
    batch, *_, rows, columns = step.shape
    count = step.numbers // (batch * rows * columns)
    shape = f"{rows:,} × {columns:,}"
    if count > 1:
        shape = f"{count:,} of {shape}"
    return Block(
        step.name, count, rows, columns, f"{shape}: {count * rows * columns:,} numbers",
        _COLOURS.get(step.name, STREAM),
    )  # fmt: skip


def _place(steps: Sequence[Operation]) -> str:
    places = list(dict.fromkeys(step.place for step in steps))
    stacks = {Place.named(place).stack for place in places}

    def named(place: str) -> str:
        part = Place.named(place)
        words = _PLACES[part.kind]
        return f"{part.stack.title()}: {words.lower()}" if len(stacks) > 1 else words

    first = next(place for place in places if Place.named(place).kind == "self")
    key = f"cost-place-{len(places)}-{places[-1]}"
    return one_of("Part of the model", places, key, default=first, named=named, quiet=True)


def _scales(seen: Look) -> dict[str, float]:
    """The factor on the scores of the first layer of each kind, by place: decoder.self, …"""
    return {
        attention.place.in_any_layer: attention.scale
        for attention in seen.trace.attention
        if attention.layer == 0
    }


def formula_of(step: Operation, scales: Mapping[str, float], width: int) -> str:
    """The formula of an operation, with the model's own factor where that is not 1/√width."""
    scale = scales.get(step.place)
    if step.name != "Scaled" or scale is None or isclose(scale, width**-0.5, rel_tol=1e-6):
        return step.formula
    return step.formula.replace("/ √dₖ", "× 1" if scale == 1 else f"× {scale:.4g}")


def _frame(rows: Sequence[Row], scales: Mapping[str, float] | None, width: int) -> pd.DataFrame:
    """scales: the factors on the scores of the run on the page; None for other sizes. width: d_k."""
    columns = {
        "operation": [step.name for step, _, _ in rows],
        "formula": [formula_of(step, scales or {}, width) for step, _, _ in rows],
        "shape": [_written(step.shape) for step, _, _ in rows],
    }
    if scales is not None:
        columns["recorded"] = ["—" if shape is None else _written(shape) for _, shape, _ in rows]
    columns["axes"] = [
        " × ".join(step.axes).replace("d_k", "dₖ").replace("d_v", "dᵥ") for step, _, _ in rows
    ]
    return pd.DataFrame(columns)


def _written(shape: Shape) -> str:
    return " × ".join(f"{length:,}" for length in shape)


def _check(seen: Look, rows: Sequence[Row]) -> None:
    """How many recorded shapes are the counted ones, and what a word costs in tokens."""
    read = [same for _, _, same in rows if same is not None]
    words = len(seen.request.text.split())
    typed = sum(not token.special for token in seen.trace.tokens)
    said = (
        f"Check: {sum(read)} of {len(read)} shapes recorded in this run, in the first layer of "
        "each stack, match the formula, apart from the batch axis. A dash means a view of another "
        f"array, or an array that was not kept. Your text has {counted(words, 'word')} and "
        f"{counted(typed, 'token')}: {words / max(typed, 1):.2f} words per token."
    )
    if added := len(seen.trace.tokens) - typed:
        said += f" The model adds {added} special ones: {added + typed:,} in all."
    st.caption(plain(said))


def parameters(seen: Look, sizes: Sizes, own: bool) -> None:
    """The weights by part, and what tying and biases change."""
    parts = parameter_parts(sizes.config) | (seen.model.module.extra_parameters() if own else {})
    total = sum(parts.values())
    largest = max(parts, key=parts.__getitem__)
    picture, words = beside_words(
        f"The largest part is **{largest.lower()}** with {parts[largest] / total:.1%}. "
        f"{' '.join(what_adds(sizes.config))}"
    )
    with picture:
        bars = [
            Amount(name, count, f"{count:,} ({percent(count / total)})", _PARTS.get(name, MASKED))
            for name, count in parts.items()
        ]
        chart(amounts(bars, unit="parameters"), "cost-parameters")
        columns = {"part": list(parts), "parameters": list(parts.values())}
        table(columns, "cost-parameters", decimals=0)
    with words:
        st.latex(formulas.parameters(sizes.config))
        say_letters(sizes.config)
        st.metric("All parameters", f"{total:,}")
        if sizes.config.experts:
            unread = sum(parameter_parts(sizes.config).values()) - parameters_read(sizes.config)
            st.metric("Of these, a token meets", f"{total - unread:,}")
        if own:
            counted = seen.model.parameter_count
            st.caption(
                f"Check: counted over the model's own tensors: {counted:,}. "
                f"Difference: {counted - total:,}." + (f" {NOT_LISTED}" if counted != total else "")
            )
        if sizes.config.decoder_layers:
            _variants(sizes.config)


def say_letters(config: TransformerConfig) -> None:
    """Below a formula: its letters for experts and latent vectors."""
    if said := formulas.letters(config):
        st.caption(said)


def what_adds(config: TransformerConfig) -> list[str]:
    """Which of the sizes besides width and layers change the number of parameters, in sentences."""
    none, others = ["Dropout"], []
    if config.head_size:
        others.append("Each further head adds its own rows and columns to the projections.")
    elif config.groups_keys:
        shared = config.key_head_count
        others.append(
            f"More heads leave W_Q and W_O as they are and make W_K and W_V smaller: their {shared} "
            "heads get narrower."
            if shared > 1
            else "More heads make W_K and W_V smaller: their one head gets narrower."
        )
    else:
        none.append("heads")
    if config.has_position_table:
        others.append(
            f"Up to {config.n_ctx:,} tokens the length adds no parameters; each further position "
            f"adds a row of {config.d_model:,} to the table of positions."
        )
    else:
        none.append("length")
    listed = ", ".join(none[:-1]) + " and " + none[-1] if len(none) > 1 else none[0]
    return [f"{listed} add{'' if len(none) > 1 else 's'} none.", *others]


def _variants(config: TransformerConfig) -> None:
    """The same sizes with the output tied or not, with biases on Q, K and V or not."""
    variants = {
        "separate output, no QKV biases": replace(config, tied=False, qkv_bias=False),
        "tied output, no QKV biases": replace(config, tied=True, qkv_bias=False),
        "tied output, QKV biases": replace(config, tied=True, qkv_bias=True),
    }
    counts = [f"{sum(parameter_parts(variant).values()):,}" for variant in variants.values()]
    frame = pd.DataFrame({"output and biases": list(variants), "parameters": counts})
    st.dataframe(frame, key="cost-variants", hide_index=True)
