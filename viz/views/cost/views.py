"""Memory, operations, how they grow with the length, and the time of both ways of attention on this
machine."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from model.analysis.cost.cost import (
    Memory,
    flops_by_part,
    growth,
    kept_by_attention,
    memory,
    total_flops,
    total_results,
)
from model.analysis.cost.operations import Lengths
from model.analysis.cost.timing import (
    FEWEST,
    LENGTHS,
    REPEATS,
    HeadsMeasurement,
    Measurement,
    measured,
    measured_heads,
)
from model.arithmetic.sizes import attention_costs
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import LINEAR, Measured, Timed, curves, growth_lines, time_lines
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import FEED_FORWARD, KEY, MASKED, OUTPUT, QUERY, WEIGHT
from viz.shell.pictures import beside_words, chart, look_for, table
from viz.state.engine import engine
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


FLOAT = 4  # bytes
FUSED, STEPS = "fused kernel", "step by step, all kept"
Found = TypeVar("Found")


def time_view(seen: Look, sizes: Sizes, own: bool) -> None:
    """What one attention layer keeps, and its time on this machine."""
    width, heads = sizes.config.d_model, sizes.config.heads
    try:
        kept = [kept_by_attention(length, width, heads) for length in LENGTHS]
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        _counted(kept)
    with words:
        _told(kept[-1], width, heads)
    with picture:
        asked = ("cost-measure", "Measure here", (width, heads))
        found = _asked(*asked, measured, main=True)
        if found is not None:
            _fused_and_explicit(found, width, heads)
    with st.expander("A loop over heads, or all at once?", key="cost-two-loops"):
        _loop(sizes)


def _counted(kept: list[tuple[int, int]]) -> None:
    """The memory of both ways by length."""
    unit, short, long = fitting(FLOAT * kept[-1][1], MEMORY_UNITS)
    fused, steps = ([FLOAT * count / unit for count in way] for way in zip(*kept, strict=True))
    drawn = (Measured(STEPS, steps, QUERY), Measured(FUSED, fused, WEIGHT))
    name = f"{long} kept, counted"
    chart(curves(LENGTHS, drawn, axis="length in tokens", unit=name, logarithmic=True), "cost-kept")
    columns = {"length": LENGTHS, f"{FUSED}, {short}": fused, f"{STEPS}, {short}": steps}
    table(columns, "cost-kept")


def _told(longest: tuple[int, int], width: int, heads: int) -> None:
    fused, steps = longest
    look_for(
        f"At {LENGTHS[-1]:,} tokens the layer keeps **{steps / fused:,.1f} times** as many numbers step by "
        "step as with a fused kernel, for the same operations and the same result: it also keeps the scores, "
        "the scaled scores and the weights of every pair of tokens."
    )
    st.markdown(
        "This picture is counted, not timed, in float32. How much time that costs depends on the machine: "
        "the button measures it."
    )
    st.caption(
        f"One attention layer of width {width:,} with {counted(heads, 'head')}, each with keys and values of "
        "its own, and one sequence."
    )


def _asked(
    key: str,
    label: str,
    sizes: tuple[int, ...],
    measure: Callable[..., Found],
    *,
    main: bool = False,
) -> Found | None:
    """What is measured of these sizes once its button was pressed; None before. main: it is the button of the
    view."""
    asked, again = st.session_state.get(f"{key}d", (None, 0))
    done = asked == sizes
    st.button(
        "Measure again" if done else label,
        key=key,
        type="primary" if main else "secondary",
        on_click=_ask,
        args=(key, sizes, again + done),
    )
    if not done:
        return None
    try:
        with st.spinner("Measuring", show_time=True):
            return measure(*sizes, turn=partial(engine().turn, lambda place: None), again=again)
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None


def _ask(key: str, sizes: tuple[int, ...], again: int) -> None:
    st.session_state[f"{key}d"] = sizes, again


def _loop(sizes: Sizes) -> None:
    """All heads at once or one after another."""
    width, heads, length = sizes.config.d_model, sizes.config.heads, sizes.lengths.tokens
    st.markdown(
        f"The same layer, on {counted(length, 'token')}: once with one product for all heads, once head by "
        "head, each with its own slice of W_Q, W_K and W_V."
    )
    asked = ("cost-loop", "Time both ways", (width, heads, length))
    found = _asked(*asked, measured_heads)
    if found is None:
        return
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
            f"Measured on {found.machine}, {found.threads} threads: each time is the fastest of {FEWEST} to "
            f"{REPEATS} runs, because other work on the machine can only slow a run down. The result is "
            "kept until somebody measures again."
        )
    )


def _fused_and_explicit(found: Measurement, width: int, heads: int) -> None:
    chart(_times(found, width, heads), "cost-time")
    reached = found.lengths[-1]
    early = f"It stopped there, before {LENGTHS[-1]:,}: the machine was too slow or too busy. " * (
        reached < LENGTHS[-1]
    )
    st.markdown(
        f"Measured from {found.lengths[0]:,} to **{reached:,} tokens**. {early}At {reached:,} tokens step by "
        f"step takes {_milliseconds(found.explicit[-1])}, the fused kernel {_milliseconds(found.fused[-1])}. "
        "The dashed line is what the number of operations alone would give."
    )
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
            Timed(STEPS, lengths, found.explicit, QUERY),
            Timed(FUSED, lengths, found.fused, WEIGHT),
        ),
        Timed("by operations alone, scaled to match at the end", lengths, expected, LINEAR),
    )
