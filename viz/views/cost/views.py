"""Memory, operations, and how they grow with the length."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from model.analysis.cost.cost import (
    Memory,
    flops_by_part,
    growth,
    memory,
    total_flops,
    total_results,
)
from model.analysis.cost.operations import Lengths
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import growth_lines
from viz.notation.theme import FEED_FORWARD, KEY, MASKED, OUTPUT, QUERY, WEIGHT
from viz.shell.pictures import beside_words, chart, look_for, table
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import Sizes, resized
from viz.views.cost.shapes import say_letters

BYTES = {"float32: 4 bytes per number": 4, "float16: 2 bytes per number": 2}
Units = tuple[tuple[float, str, str], ...]
MEMORY_UNITS: Units = (
    (2**10, "KiB", "kibibytes (2¹⁰ bytes)"),
    (2**20, "MiB", "mebibytes (2²⁰ bytes)"),
    (2**30, "GiB", "gibibytes (2³⁰ bytes)"),
)
FLOP_UNITS: Units = (
    (1e3, "kFLOP", "thousands of operations"),
    (1e6, "MFLOP", "millions of operations"),
    (1e9, "GFLOP", "billions of operations"),
    (1e12, "TFLOP", "trillions of operations (10¹²)"),
)
_PARTS = {
    "projections": ("Q, K, V and W_O", QUERY),
    "pairs": ("Scores, weights, context", WEIGHT),
    "feed-forward": ("Feed-forward", FEED_FORWARD),
    "output": ("Logits", OUTPUT),
}


def memory_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """Weights, results, attention matrices, key–value cache."""
    config, needed = sizes.config, memory(sizes.config, sizes.lengths)
    twice = resized(sizes, 2 * sizes.lengths.tokens)
    picture, words = beside_words(doubled(needed, memory(twice.config, twice.lengths)))
    with words:
        size = BYTES[st.radio("Numbers kept as", list(BYTES), key="cost-bytes")]
        st.latex(formulas.memory(config))
        say_letters(config)
        said = (
            "Results and matrices are counted as if **every** result of a pass were kept, as in "
            "training. A fused kernel never stores the matrices."
        )
        if config.decoder_layers:
            said += " The cache is what is kept when a text is generated token by token."
        if config.turns_positions:
            said += " Q and K are counted once, not again after the rotary rotation."
        st.markdown(said)
    rows = {
        "Weights": (needed.weights, MASKED),
        "Results of the operations": (needed.activations, FEED_FORWARD),
        "Attention matrices": (needed.matrices, WEIGHT),
        "Key–value cache": (needed.cache, KEY),
    }
    unit, short, long = fitting(size * max(count for count, _ in rows.values()), MEMORY_UNITS)
    amount = {name: count * size / unit for name, (count, _) in rows.items()}
    with picture:
        bars = [
            Amount(name, amount[name], f"{amount[name]:,.2f} {short}", colour)
            for name, (_, colour) in rows.items()
        ]
        chart(amounts(bars, unit=long), "cost-memory")
        if not needed.cache:
            st.caption("An encoder generates no text, so it keeps no cache.")
        columns = {
            "what": list(rows),
            "numbers": [f"{count:,}" for count, _ in rows.values()],
            short: list(amount.values()),
        }
        table(columns, "cost-memory")


def doubled(once: Memory, twice: Memory) -> str:
    """How many times as much each kind of number is at twice the length, the target's too."""
    grown = {
        "the matrices": twice.matrices / once.matrices,
        "the other results": twice.activations / once.activations,
        "the weights": twice.weights / once.weights,
    }
    said = ", ".join(f"{name} × {ratio:.4g}" for name, ratio in grown.items())
    return f"Double the length: {said}."


def fitting(largest: float, units: Units) -> tuple[float, str, str]:
    """The largest unit of which there is one at least: its size, its sign, its name."""
    return max((unit for unit in units if unit[0] <= largest), default=units[0])


def operations_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """Operations of one pass by part."""
    parts = flops_by_part(sizes.config, sizes.lengths)
    total = sum(parts.values())
    unit, short, long = fitting(total, FLOP_UNITS)
    picture, words = beside_words(
        "In a short text most operations are for single tokens. Make the text longer until the "
        "pairs of tokens cost more."
    )
    with picture:
        bars = [
            Amount(name, count / unit, f"{count / unit:,.2f} ({percent(count / total)})", colour)
            for (name, colour), count in ((_PARTS[part], count) for part, count in parts.items())
        ]
        chart(amounts(bars, unit=f"{long} of one pass"), "cost-flops")
        columns = {
            "part": [bar.name for bar in bars],
            "operations": [f"{count:,}" for count in parts.values()],
            "percent": [100 * count / total for count in parts.values()],
        }
        table(columns, "cost-flops", decimals=2)
    with words:
        st.latex(formulas.operations(sizes.config))
        say_letters(sizes.config)
        st.metric("One pass", f"{total / unit:,.2f} {short}")
        tokens = sizes.lengths.batch * sizes.lengths.tokens
        masked = " The masked half of a causal pass is counted." * sizes.config.masks_future
        st.caption(
            f"{total / tokens / 1e6:,.2f} MFLOP per token of the text. A product and its "
            "addition count as two operations, the scaling as one and a softmax as five per score; "
            "the formula above counts only the products. Norms, activations, sums, look-ups and "
            f"rotary positions grow only with the number of tokens and are left out.{masked}"
        )


def growth_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """The part that grows with n² and the part that grows with n, and where they cross."""
    costs: dict[str, tuple[Callable[[Lengths], int], str]] = {
        "operations of a pass": (partial(total_flops, sizes.config), "operations"),
        "numbers kept of a pass": (partial(total_results, sizes.config), "numbers"),
    }
    picture, words = st.columns([3, 2], gap="large")
    with words:
        cost, unit = costs[st.radio("What grows", list(costs), key="cost-grows")]
        found = growth(cost, sizes.lengths.batch)
        st.latex(formulas.GROWTH)
        st.markdown(
            f"a = {found.quadratic:,} and b = {found.linear:,}, for a batch of "
            f"{sizes.lengths.batch:,}."
        )
        if found.crossing:
            look_for(
                f"Up to **{int(found.crossing):,} tokens** the part that grows with the length costs "
                "more; beyond that the pairs do."
            )
        pair = sizes.config.shape == "encoder-decoder"
        st.caption(
            f"{'Text and target are equally long here. ' if pair else ''}Weights are left out."
        )
    with picture:
        chart(growth_lines(found, length=sizes.lengths.tokens, unit=unit), "cost-growth")
        lengths = [2**power for power in range(4, 15)]
        columns = {
            "length": lengths,
            "pairs": [f"{found.quadratic * length**2:,}" for length in lengths],
            "everything else": [f"{found.linear * length:,}" for length in lengths],
        }
        table(columns, "cost-growth", decimals=0)
