"""Memory, operations, how they grow with the length, and measured time beside them."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

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
from model.analysis.cost.timing import (
    LENGTHS,
    HeadsMeasurement,
    Measurement,
    measured,
    measured_heads,
)
from model.arithmetic.sizes import attention_costs
from viz.figures.bars import Amount, amounts, percent
from viz.figures.logarithmic_curves import LINEAR, Timed, growth_lines, time_lines
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import FEED_FORWARD, KEY, MASKED, OUTPUT, QUERY, WEIGHT
from viz.shell.pictures import chart, look_for, table
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import Sizes, resized

BYTES = {"float32: 4 bytes per number": 4, "float16: 2 bytes per number": 2}
Found = TypeVar("Found")
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
    picture, words = st.columns([3, 2], gap="large")
    look_for(doubled(needed, memory(twice.config, twice.lengths)), words)
    with words:
        size = BYTES[st.radio("Numbers kept as", list(BYTES), key="cost-bytes")]
        st.latex(formulas.memory(config))
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
    unit, short, long = _fitting(size * max(count for count, _ in rows.values()), MEMORY_UNITS)
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


def _fitting(largest: float, units: Units) -> tuple[float, str, str]:
    """The largest unit of which there is one at least: its size, its sign, its name."""
    return max((unit for unit in units if unit[0] <= largest), default=units[0])


def operations_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """Operations of one pass by part."""
    parts = flops_by_part(sizes.config, sizes.lengths)
    total = sum(parts.values())
    unit, short, long = _fitting(total, FLOP_UNITS)
    picture, words = st.columns([3, 2], gap="large")
    look_for(
        "In a short text most operations are for single tokens. Make the text longer until the "
        "pairs of tokens cost more.",
        words,
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
                f"Up to **{found.crossing:,.0f} tokens** the part that grows with the length costs "
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


def time_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """One attention layer timed on this machine, when asked."""
    width, heads = sizes.config.d_model, sizes.config.heads
    st.markdown(
        f"One attention layer of width {width:,} with {heads:,} heads, each with keys and values "
        f"of its own, reads sequences of {LENGTHS[0]:,} to {LENGTHS[-1]:,} tokens, several times "
        "each, on this machine. This takes a few seconds. **What to look for.** See how far the "
        "measured lines are from the dashed one, which is computed from the number of operations, "
        "and what it costs to keep every score."
    )
    found = _asked("cost-measure", "Measure now", (width, heads), measured)
    if found is not None:
        _fused_and_explicit(found, width, heads)
    st.markdown(
        f"**A loop over heads, or one shot?** The same layer, on {sizes.lengths.tokens:,} tokens: once with "
        "one product for all heads, once head by head, each with its own slice of W_Q, W_K and W_V."
    )
    both = _asked(
        "cost-loop", "Time both ways", (width, heads, sizes.lengths.tokens), measured_heads
    )
    if both is not None:
        _loop_and_one_shot(both, heads)


def _asked(
    key: str, label: str, sizes: tuple[int, ...], measure: Callable[..., Found]
) -> Found | None:
    """What is measured of these sizes once its button was pressed; None before."""
    if st.button(label, key=key, type="primary"):
        st.session_state[f"{key}d"] = sizes
    if st.session_state.get(f"{key}d") != sizes:
        return None
    try:
        with st.spinner("Measuring", show_time=True):
            return measure(*sizes, turn=partial(engine().turn, lambda place: None))
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None


def _loop_and_one_shot(found: HeadsMeasurement, heads: int) -> None:
    ways = {"all heads at once": found.one_shot, "a loop over heads": found.loop}
    rows = [
        Amount(name, 1_000 * seconds, _milliseconds(seconds), colour)
        for (name, seconds), colour in zip(ways.items(), (WEIGHT, QUERY), strict=True)
    ]
    chart(amounts(rows, unit="milliseconds"), "cost-ways")
    st.caption(
        f"The loop takes {found.loop / found.one_shot:,.1f} times as long for {counted(heads, 'head')}. Both "
        f"give the same result: the largest difference is {difference(found.difference)}."
    )
    _where(found)


def _milliseconds(seconds: float) -> str:
    """Three digits: 0.123 ms, 12.3 ms, 1,234 ms."""
    time = 1_000 * seconds
    return f"{time:,.{int(time < 100) + int(time < 10) + int(time < 1)}f} ms"


def _where(found: Measurement | HeadsMeasurement) -> None:
    st.caption(
        plain(
            f"Measured on {found.machine}, {found.threads} threads: the median of several runs. "
            "Other work on the machine makes it slower. The result is kept until the server stops."
        )
    )


def _fused_and_explicit(found: Measurement, width: int, heads: int) -> None:
    chart(_times(found, width, heads), "cost-time")
    _where(found)
    columns = {
        "length": found.lengths,
        "fused, ms": [1_000 * seconds for seconds in found.fused],
        "step by step, ms": [1_000 * seconds for seconds in found.explicit],
    }
    table(columns, "cost-time")


def _times(found: Measurement, width: int, heads: int) -> go.Figure:
    """The measured lines, and the operations scaled to meet the fused one at its end."""
    lengths = found.lengths
    counted = [
        sum(cost.flops for cost in attention_costs(1, length, width, heads)) for length in lengths
    ]
    expected = [found.fused[-1] / counted[-1] * count for count in counted]
    return time_lines(
        (
            Timed("step by step, all kept", lengths, found.explicit, QUERY),
            Timed("fused kernel", lengths, found.fused, WEIGHT),
        ),
        Timed("by operations alone, scaled to match at the end", lengths, expected, LINEAR),
    )
