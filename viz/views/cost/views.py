"""Memory, operations, how they grow with the length, and measured time beside them."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import plotly.graph_objects as go
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
from model.analysis.cost.timing import LENGTHS, Measurement, measured
from model.arithmetic.sizes import attention_costs
from viz.figures.amounts import Amount, amounts, percent
from viz.figures.growth import LINEAR, Timed, growth_lines, time_lines
from viz.notation.markdown import plain
from viz.notation.theme import FEED_FORWARD, KEY, MASKED, OUTPUT, QUERY, WEIGHT
from viz.shell.pictures import chart, table
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import Sizes, resized

BYTES = {"float32: 4 bytes a number": 4, "float16: 2 bytes a number": 2}
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
_COLOURS = {
    "projections": QUERY,
    "pairs": WEIGHT,
    "feed-forward": FEED_FORWARD,
    "output": OUTPUT,
}
_PART_NAMES = {
    "projections": "Q, K, V and W_O",
    "pairs": "Scores, weights, context",
    "feed-forward": "Feed-forward",
    "output": "Logits",
}


def memory_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """Weights, results, attention matrices, key–value cache."""
    needed = memory(sizes.config, sizes.lengths)
    twice = resized(sizes, 2 * sizes.lengths.tokens)
    st.markdown(f"**What to look for.** {doubled(needed, memory(twice.config, twice.lengths))}")
    picture, words = st.columns([3, 2], gap="large")
    with words:
        size = BYTES[st.radio("Numbers kept as", list(BYTES), key="cost-bytes")]
        st.latex(formulas.memory(sizes.config))
        st.markdown(
            "Results and matrices are counted as if **every** result of a pass were kept, as in "
            "training. A fused kernel never keeps the matrices."
            + (
                " The cache is what writing on, token by token, keeps."
                if sizes.config.decoder_layers
                else ""
            )
            + (
                " Q and K are counted once, not again after their turn by position."
                if sizes.config.turns_positions
                else ""
            )
        )
    rows = {
        "Weights": (needed.weights, MASKED),
        "Results of the operations": (needed.activations, FEED_FORWARD),
        "Attention matrices": (needed.matrices, WEIGHT),
        "Key–value cache": (needed.cache, KEY),
    }
    unit, short, long = _fitting(size * max(count for count, _ in rows.values()), MEMORY_UNITS)
    with picture:
        bars = [
            Amount(name, count * size / unit, f"{count * size / unit:,.2f} {short}", colour)
            for name, (count, colour) in rows.items()
        ]
        chart(amounts(bars, unit=long), "cost-memory")
        if not needed.cache:
            st.caption("An encoder writes nothing on, so it keeps no cache.")
        frame = pd.DataFrame(
            {
                "what": list(rows),
                "numbers": [f"{count:,}" for count, _ in rows.values()],
                short: [count * size / unit for count, _ in rows.values()],
            }
        )
        table(frame, "cost-memory")


def doubled(once: Memory, twice: Memory) -> str:
    """How many times as much each kind of number is at twice the length, the target's too."""
    grown = {
        "the matrices": twice.matrices / once.matrices,
        "the other results": twice.activations / once.activations,
        "the weights": twice.weights / once.weights,
    }
    said = ", ".join(f"{name} × {ratio:.4g}" for name, ratio in grown.items())
    return f"Double the length: {said}."


def _fitting(largest: float, units: Units) -> tuple[float, str, str]:
    """The largest unit of which there is one at least: its size, its sign, its name."""
    return max((unit for unit in units if unit[0] <= largest), default=units[0])


def operations_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """Operations of one pass by part."""
    parts = flops_by_part(sizes.config, sizes.lengths)
    total = sum(parts.values())
    unit, short, long = _fitting(total, FLOP_UNITS)
    tokens = sizes.lengths.batch * sizes.lengths.tokens
    st.markdown(
        "**What to look for.** At short lengths most operations lie in the maps of single tokens. "
        "Lengthen the text until the pairs of tokens cost more."
    )
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        bars = [
            Amount(
                _PART_NAMES[name], count / unit, f"{count / unit:,.2f} ({percent(count / total)})",
                _COLOURS[name],
            )
            for name, count in parts.items()
        ]  # fmt: skip
        chart(amounts(bars, unit=f"{long} of one pass"), "cost-flops")
        frame = pd.DataFrame(
            {
                "part": [_PART_NAMES[name] for name in parts],
                "operations": [f"{count:,}" for count in parts.values()],
                "percent": [100 * count / total for count in parts.values()],
            }
        )
        table(frame, "cost-flops", decimals=2)
    with words:
        st.latex(formulas.operations(sizes.config))
        st.metric("One pass", f"{total / unit:,.2f} {short}")
        st.caption(
            f"{total / tokens / 1e6:,.2f} MFLOP a token of the text. A product and its sum count as "
            "two operations, the scaling as one and a softmax as five a score; the formula above has "
            "the products alone. Norms, activations, sums, look-ups and turns by position grow with the "
            "tokens only and are left out."
            + (" The masked half of a causal pass is counted." if sizes.config.masks_future else "")
        )


def growth_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """The part that grows with n² and the part that grows with n, and where they cross."""
    costs: dict[str, tuple[Callable[[Lengths], int], str]] = {
        "operations of a pass": (
            lambda lengths: total_flops(sizes.config, lengths),
            "operations",
        ),
        "numbers kept of a pass": (
            lambda lengths: total_results(sizes.config, lengths),
            "numbers",
        ),
    }
    picture, words = st.columns([3, 2], gap="large")
    with words:
        name = st.radio("What grows", list(costs), key="cost-grows")
        cost, unit = costs[name]
        found = growth(cost, sizes.lengths.batch)
        st.latex(formulas.GROWTH)
        st.markdown(
            f"a = {found.quadratic:,} and b = {found.linear:,}, for a batch of "
            f"{sizes.lengths.batch:,}."
        )
        if found.crossing:
            st.markdown(
                f"**What to look for.** Up to **{found.crossing:,.0f} tokens** the part that grows "
                "with the length costs more, beyond it the pairs do."
            )
        equal = "Text and target are equally long here. "
        pair = sizes.config.shape == "encoder-decoder"
        st.caption(f"{equal if pair else ''}Weights are left out.")
    with picture:
        chart(growth_lines(found, length=sizes.lengths.tokens, unit=unit), "cost-growth")
        lengths = [2**power for power in range(4, 15)]
        frame = pd.DataFrame(
            {
                "length": lengths,
                "pairs": [f"{found.quadratic * length**2:,}" for length in lengths],
                "all else": [f"{found.linear * length:,}" for length in lengths],
            }
        )
        table(frame, "cost-growth", decimals=0)


def time_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """One attention layer timed on this machine, when asked."""
    width, heads = sizes.config.width, sizes.config.heads
    st.markdown(
        f"One attention layer of width {width:,} with {heads:,} heads, each with keys and values of its "
        f"own, reads one sequence of "
        f"{LENGTHS[0]:,} to {LENGTHS[-1]:,} tokens, several times each, on this machine. That takes "
        "a few seconds. **What to look for.** How far the measured lines lie from the dashed one, "
        "which knows nothing but the operations; and what it costs to keep every score."
    )
    key = "cost-measured"
    if st.button("Measure here and now", key="cost-measure", type="primary"):
        st.session_state[key] = (width, heads)
    if st.session_state.get(key) != (width, heads):
        return
    try:
        with st.spinner("Measuring", show_time=True):
            found = measured(width, heads, partial(engine().turn, lambda place: None))
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return
    chart(_times(found, width, heads), "cost-time")
    st.caption(
        plain(
            f"Measured on {found.machine}, {found.threads} threads: the median of several runs. "
            "Other work on the machine makes it slower. It is kept until the server stops."
        )
    )
    frame = pd.DataFrame(
        {
            "length": found.lengths,
            "fused, ms": [1_000 * seconds for seconds in found.fused],
            "step by step, ms": [1_000 * seconds for seconds in found.explicit],
        }
    )
    table(frame, "cost-time")


def _times(found: Measurement, width: int, heads: int) -> go.Figure:
    """The measured lines, and the operations scaled to meet the fused one at its end."""
    counted = [
        sum(cost.flops for cost in attention_costs(1, length, width, heads))
        for length in found.lengths
    ]
    pace = found.fused[-1] / counted[-1]
    return time_lines(
        (
            Timed("step by step, all kept", found.lengths, found.explicit, QUERY),
            Timed("fused kernel", found.lengths, found.fused, WEIGHT),
        ),
        Timed(
            "by the operations alone, set equal at the end",
            found.lengths,
            [pace * count for count in counted],
            LINEAR,
        ),
    )
