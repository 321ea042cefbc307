"""What both ways of attention keep, counted; and how long each takes on this machine, when asked."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from model.analysis.cost.cost import kept_by_attention
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
from viz.figures.bars import Amount, amounts
from viz.figures.curves import LINEAR, Measured, Timed, curves, time_lines
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import QUERY, WEIGHT
from viz.shell.pictures import chart, look_for, table
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.cost.choice import Sizes
from viz.views.cost.views import MEMORY_UNITS, fitting

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
