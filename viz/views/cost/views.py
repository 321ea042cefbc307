"""What a model costs: the shape after every operation, its parameters, memory, operations, how they grow with
the length, and the time of both ways of attention on this machine."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import isclose
from typing import TypeVar

import pandas as pd
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
from model.analysis.cost.operations import (
    Dimensions,
    Lengths,
    Operation,
    compared,
    operations,
    recorded_shapes,
)
from model.analysis.cost.timing import (
    FEWEST,
    LENGTHS,
    REPEATS,
    HeadsMeasurement,
    Measurement,
    measured,
    measured_heads,
)
from model.arithmetic.sizes import attention_costs, parameter_parts, parameters_read
from model.nn.config import TransformerConfig
from model.nn.places import Kind, Place
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import LINEAR, MeasuredCurve, Timed, curves, growth_lines, time_lines
from viz.figures.diagrams import DrawnArray, blocks
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
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
from viz.shell.panel import Caption, Formula, Panel, Part, Table, draw_panel, refusals
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import ChosenSizes, resized, with_sizes

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


@with_sizes
def shapes(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """A walk through one part of the model: each result to scale; each operation, its formula, its shape."""
    config = sizes.config
    steps = operations(config, sizes.lengths)
    rows = compared(steps, recorded_shapes(look.trace) if own else {})
    place = _choose_place(list(dict.fromkeys(step.place for step in steps)))
    listed = [row for row in rows if row[0].place == place]
    scales = {
        attention.place.in_any_layer: attention.scale
        for attention in look.trace.attention
        if own and attention.layer == 0
    }
    columns = {
        "operation": [step.name for step, _, _ in listed],
        "formula": [formula_of(step, scales, config.head_width) for step, _, _ in listed],
        "shape": [_written(step.shape) for step, _, _ in listed],
    }
    if own:
        columns["recorded"] = ["—" if shape is None else _written(shape) for _, shape, _ in listed]
    columns["axes"] = [
        " × ".join(step.axes).replace("d_k", "dₖ").replace("d_v", "dᵥ") for step, _, _ in listed
    ]
    frame = pd.DataFrame(columns)
    shown = partial(st.dataframe, frame, key="cost-shapes", hide_index=True, height="content")
    below: list[Part] = [shown]
    kind = Place.named(place).kind
    if kind in ("self", "cross"):
        below.append(Formula(formulas.attention_shapes(config, kind)))
    if own:
        agree = [same for _, _, same in rows if same is not None]
        below.append(Caption(plain(_check(look, sum(agree), len(agree)))))
    grouped = (
        f" K and V are narrower than Q: {config.heads} heads of queries share "
        f"{config.key_head_count} heads of keys and values."
    )
    return Panel(
        "cost-numbers",
        look_for="Only the scores and weights have two axes of tokens, queries and keys: their blocks are n "
        "× n, one for each head. Double the length, and they become four times as large; all other "
        "blocks only double. Splitting into heads creates no new numbers."
        + grouped
        * config.groups_keys,
        picture=blocks([_block(step) for step, _, _ in listed if step.numbers]),
        beside=[
            Formula(formulas.head_width(config)),
            Caption(
                "One sequence in one layer. All blocks are drawn to one scale: the height is the "
                "number of tokens, the width is the count of numbers for each token. Twice the area "
                "means twice as many numbers."
            ),
        ],
        below=below,
    )


def _choose_place(places: list[str]) -> str:
    stacks = {Place.named(place).stack for place in places}
    kinds = [Place.named(place).kind for place in places]
    names = [_PLACES[kind] for kind in kinds]
    if len(stacks) > 1:
        names = [
            f"{Place.named(place).stack.title()}: {name.lower()}"
            for place, name in zip(places, names, strict=True)
        ]
    key = f"cost-place-{len(places)}-{places[-1]}"
    at = one_listed("Part of the model", names, key, first=kinds.index("self"), quiet=True)
    return places[at]


def _block(step: Operation) -> DrawnArray:
    """The new numbers of an operation, for one sequence of the batch."""
    batch, *_, rows, columns = step.shape
    count = step.numbers // (batch * rows * columns)
    shape = f"{rows:,} × {columns:,}"
    if count > 1:
        shape = f"{count:,} of {shape}"
    return DrawnArray(
        step.name, count, rows, columns, f"{shape}: {count * rows * columns:,} numbers",
        _COLOURS.get(step.name, STREAM),
    )  # fmt: skip


def formula_of(step: Operation, scales: Mapping[str, float], width: int) -> str:
    """The formula of an operation, with the model's own factor where that is not 1/√width."""
    scale = scales.get(step.place)
    if step.name != "Scaled" or scale is None or isclose(scale, width**-0.5, rel_tol=1e-6):
        return step.formula
    return step.formula.replace("/ √dₖ", "× 1" if scale == 1 else f"× {scale:.4g}")


def _written(shape: Dimensions) -> str:
    return " × ".join(f"{length:,}" for length in shape)


def _check(look: Look, agree: int, recorded: int) -> str:
    """How many recorded shapes are the counted ones, and what a word costs in tokens."""
    words = len(look.request.text.split())
    typed = sum(not token.special for token in look.trace.tokens)
    added = len(look.trace.tokens) - typed
    special = f" The model adds {added} special ones: {added + typed:,} in all."
    return (
        f"Check: {agree} of {recorded} shapes recorded in this run, in the first layer of "
        "each stack, match the formula, apart from the batch axis. A dash means a view of another "
        f"array, or an array that was not kept. Your text has {counted(words, 'word')} and "
        f"{counted(typed, 'token')}: {words / max(typed, 1):.2f} words per token."
    ) + special * bool(added)


_PARAMETERS = {
    "Token embedding": STREAM,
    "Attention": WEIGHT,
    "Feed-forward": FEED_FORWARD,
    "Experts": FEED_FORWARD,
    "Output matrix": OUTPUT,
}


@with_sizes
def parameters(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """The weights by part, and what tying and biases change."""
    config = sizes.config
    parts = parameter_parts(config) | (look.model.module.extra_parameters() if own else {})
    total = sum(parts.values())
    largest = max(parts, key=parts.__getitem__)
    beside = [
        Formula(formulas.parameters(config)),
        *_letters(config),
        partial(st.metric, "All parameters", f"{total:,}"),
    ]
    if config.experts:
        unread = sum(parameter_parts(config).values()) - parameters_read(config)
        beside.append(partial(st.metric, "Of these, a token meets", f"{total - unread:,}"))
    if own:
        tensors = look.model.parameter_count
        not_listed = " It lies in parts that this page does not count." * (tensors != total)
        beside.append(
            Caption(
                f"Check: counted over the model's own tensors: {tensors:,}. "
                f"Difference: {tensors - total:,}.{not_listed}"
            )
        )
    if config.decoder_layers:
        variants = {
            "separate output, no QKV biases": replace(config, tied=False, qkv_bias=False),
            "tied output, no QKV biases": replace(config, tied=True, qkv_bias=False),
            "tied output, QKV biases": replace(config, tied=True, qkv_bias=True),
        }
        counts = [f"{sum(parameter_parts(variant).values()):,}" for variant in variants.values()]
        frame = pd.DataFrame({"output and biases": list(variants), "parameters": counts})
        beside.append(partial(st.dataframe, frame, key="cost-variants", hide_index=True))
    bars = [
        Amount(name, count, f"{count:,} ({percent(count / total)})", _PARAMETERS.get(name, MASKED))
        for name, count in parts.items()
    ]
    columns = {"part": list(parts), "parameters": list(parts.values())}
    return Panel(
        "cost-parameters",
        look_for=f"The largest part is **{largest.lower()}** with {parts[largest] / total:.1%}. "
        f"{' '.join(what_adds(config))}",
        picture=amounts(bars, unit="parameters"),
        beside=beside,
        table=Table(columns, decimals=0),
    )


def _letters(config: TransformerConfig) -> list[Part]:
    """Below a formula: its letters for experts and latent vectors."""
    words = formulas.letters(config)
    return [Caption(words)] if words else []


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


BYTES = {"float32: 4 bytes": 4, "float16: 2 bytes": 2}
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


@with_sizes
def memory_view(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """Weights, results, attention matrices, key–value cache."""
    size = BYTES[one_of("Numbers kept as", list(BYTES), "cost-bytes")]
    config, needed = sizes.config, memory(sizes.config, sizes.lengths)
    twice = resized(sizes, 2 * sizes.lengths.tokens)
    words = (
        "Results and matrices are counted as if **every** result of a pass were kept, as in "
        "training. A fused kernel never stores the matrices."
    )
    if config.decoder_layers:
        words += " The cache is what is kept when a text is generated token by token."
    if config.turns_positions:
        words += " Q and K are counted once, not again after the rotary rotation."
    rows = {
        "Weights": (needed.weights, MASKED),
        "Results of the operations": (needed.activations, FEED_FORWARD),
        "Attention matrices": (needed.matrices, WEIGHT),
        "Key–value cache": (needed.cache, KEY),
    }
    unit, short, long = fitting(size * max(count for count, _ in rows.values()), MEMORY_UNITS)
    amount = {name: count * size / unit for name, (count, _) in rows.items()}
    bars = [
        Amount(name, amount[name], f"{amount[name]:,.2f} {short}", colour)
        for name, (_, colour) in rows.items()
    ]
    columns = {
        "what": list(rows),
        "numbers": [f"{count:,}" for count, _ in rows.values()],
        short: list(amount.values()),
    }
    without_cache = Caption("An encoder generates no text, so it keeps no cache.")
    return Panel(
        "cost-memory",
        look_for=doubled(needed, memory(twice.config, twice.lengths)),
        picture=amounts(bars, unit=long),
        beside=[Formula(formulas.memory(config)), *_letters(config), words],
        below=[] if needed.cache else [without_cache],
        table=Table(columns),
    )


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


_PARTS = {
    "projections": ("Q, K, V and W_O", QUERY),
    "pairs": ("Scores, weights, context", WEIGHT),
    "feed-forward": ("Feed-forward", FEED_FORWARD),
    "output": ("Logits", OUTPUT),
}


@with_sizes
def operations_view(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """Operations of one pass by part."""
    parts = flops_by_part(sizes.config, sizes.lengths)
    total = sum(parts.values())
    unit, short, long = fitting(total, FLOP_UNITS)
    bars = [
        Amount(name, count / unit, f"{count / unit:,.2f} ({percent(count / total)})", colour)
        for (name, colour), count in ((_PARTS[part], count) for part, count in parts.items())
    ]
    columns = {
        "part": [bar.name for bar in bars],
        "operations": [f"{count:,}" for count in parts.values()],
        "percent": [100 * count / total for count in parts.values()],
    }
    tokens = sizes.lengths.batch * sizes.lengths.tokens
    masked = " The masked half of a causal pass is counted." * sizes.config.masks_future
    return Panel(
        "cost-flops",
        look_for="In a short text most operations are for single tokens. Make the text longer until the "
        "pairs of tokens cost more.",
        picture=amounts(bars, unit=f"{long} of one pass"),
        beside=[
            Formula(formulas.operations(sizes.config)),
            *_letters(sizes.config),
            partial(st.metric, "One pass", f"{total / unit:,.2f} {short}"),
            Caption(
                f"{total / tokens / 1e6:,.2f} MFLOP per token of the text. A product and its "
                "addition count as two operations, the scaling as one and a softmax as five per score; "
                "the formula above counts only the products. Norms, activations, sums, look-ups and "
                f"rotary positions grow only with the number of tokens and are left out.{masked}"
            ),
        ],
        table=Table(columns, decimals=2),
    )


@with_sizes
def growth_view(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """The part that grows with n² and the part that grows with n, and where they cross."""
    costs: dict[str, tuple[Callable[[Lengths], int], str]] = {
        "operations of a pass": (partial(total_flops, sizes.config), "operations"),
        "numbers kept of a pass": (partial(total_results, sizes.config), "numbers"),
    }
    cost, unit = costs[one_of("What grows", list(costs), "cost-grows")]
    parts = growth(cost, sizes.lengths.batch)
    lengths = [2**power for power in range(4, 15)]
    columns = {
        "length": lengths,
        "pairs": [f"{parts.quadratic * length**2:,}" for length in lengths],
        "everything else": [f"{parts.linear * length:,}" for length in lengths],
    }
    pair = sizes.config.shape == "encoder-decoder"
    return Panel(
        "cost-growth",
        look_for=f"Up to **{int(parts.crossing):,} tokens** the part that grows with the length costs "
        "more; beyond that the pairs do."
        if parts.crossing
        else "",
        picture=growth_lines(parts, length=sizes.lengths.tokens, unit=unit),
        beside=[
            Formula(formulas.GROWTH),
            f"a = {parts.quadratic:,} and b = {parts.linear:,}, for a batch of {sizes.lengths.batch:,}.",
            Caption(
                f"{'Text and target are equally long here. ' if pair else ''}Weights are left out."
            ),
        ],
        table=Table(columns, decimals=0),
    )


FLOAT = 4  # bytes
FUSED, STEPS = "fused kernel", "step by step, all kept"
Result = TypeVar("Result")


@with_sizes
def time_view(look: Look, sizes: ChosenSizes, own: bool) -> Panel:
    """What one attention layer keeps, counted; and its time on this machine."""
    width, heads = sizes.config.d_model, sizes.config.heads
    with refusals():
        kept = [kept_by_attention(length, width, heads) for length in LENGTHS]
    unit, short, long = fitting(FLOAT * kept[-1][1], MEMORY_UNITS)
    fused, steps = ([FLOAT * count / unit for count in way] for way in zip(*kept, strict=True))
    lines = (MeasuredCurve(STEPS, steps, QUERY), MeasuredCurve(FUSED, fused, WEIGHT))
    ratio = kept[-1][1] / kept[-1][0]
    return Panel(
        "cost-kept",
        look_for=f"At {LENGTHS[-1]:,} tokens the layer keeps **{ratio:,.1f} times** as many numbers step by "
        "step as with a fused kernel, for the same operations and the same result: it also keeps the scores, "
        "the scaled scores and the weights of every pair of tokens.",
        picture=curves(
            LENGTHS, lines, axis="length in tokens", unit=f"{long} kept, counted", logarithmic=True
        ),
        beside=[
            "This picture is counted, not timed, in float32. How much time that costs depends on the "
            "machine: the button measures it.",
            Caption(
                f"One attention layer of width {width:,} with {counted(heads, 'head')}, each with keys and "
                "values of its own, and one sequence."
            ),
        ],
        below=[partial(_kernels, width, heads), partial(_loop, sizes)],
        table=Table({"length": LENGTHS, f"{FUSED}, {short}": fused, f"{STEPS}, {short}": steps}),
    )


def _measurement(
    key: str,
    label: str,
    sizes: tuple[int, ...],
    measure: Callable[..., Result],
    *,
    main: bool = False,
) -> Result | None:
    """What is measured of these sizes once its button was pressed; None before. main: it is the button of the
    view."""
    asked, again = st.session_state.get(f"{key}d", (None, 0))
    done = asked == sizes
    st.button(
        "Measure again" if done else label,
        key=key,
        type="primary" if main else "secondary",
        on_click=partial(st.session_state.__setitem__, f"{key}d", (sizes, again + done)),
    )
    if not done:
        return None
    try:
        with st.spinner("Measuring", show_time=True):
            return measure(*sizes, turn=engine().turn, again=again)
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None


def _kernels(width: int, heads: int) -> None:
    """The measured lines, and the operations scaled to meet the fused one at its end."""
    times = _measurement("cost-measure", "Measure here", (width, heads), measured, main=True)
    if times is None:
        return
    lengths, fused, steps = times.lengths, times.fused, times.explicit
    flops = [
        sum(cost.flops for cost in attention_costs(1, length, width, heads)) for length in lengths
    ]
    expected = [fused[-1] / flops[-1] * count for count in flops]
    early = f"It stopped there, before {LENGTHS[-1]:,}: the machine was too slow or too busy. " * (
        lengths[-1] < LENGTHS[-1]
    )
    columns = {
        "length": lengths,
        "fused, ms": [1_000 * seconds for seconds in fused],
        "step by step, ms": [1_000 * seconds for seconds in steps],
    }
    draw_panel(
        Panel(
            "cost-time",
            picture=time_lines(
                (Timed(STEPS, lengths, steps, QUERY), Timed(FUSED, lengths, fused, WEIGHT)),
                Timed("by operations alone, scaled to match at the end", lengths, expected, LINEAR),
            ),
            beside=[
                f"Measured from {lengths[0]:,} to **{lengths[-1]:,} tokens**. {early}At {lengths[-1]:,} "
                f"tokens step by step takes {_milliseconds(steps[-1])}, the fused kernel "
                f"{_milliseconds(fused[-1])}. The dashed line is what the number of operations alone would "
                "give.",
                _where(times),
            ],
            table=Table(columns),
        )
    )


def _milliseconds(seconds: float) -> str:
    """Three digits: 0.123 ms, 12.3 ms, 1,234 ms."""
    time = 1_000 * seconds
    return f"{time:,.{int(time < 100) + int(time < 10) + int(time < 1)}f} ms"


def _where(measurement: Measurement | HeadsMeasurement) -> Caption:
    return Caption(
        plain(
            f"Measured on {measurement.machine}, {measurement.threads} threads: each time is the fastest of "
            f"{FEWEST} to {REPEATS} runs, because other work on the machine can only slow a run down. The "
            "result is kept until somebody measures again."
        )
    )


def _loop(sizes: ChosenSizes) -> None:
    """All heads at once or one after another."""
    width, heads, length = sizes.config.d_model, sizes.config.heads, sizes.lengths.tokens
    with st.expander("A loop over heads, or all at once?", key="cost-two-loops"):
        st.markdown(
            f"The same layer, on {counted(length, 'token')}: once with one product for all heads, once head "
            "by head, each with its own slice of W_Q, W_K and W_V."
        )
        sizes_timed = (width, heads, length)
        times = _measurement("cost-loop", "Time both ways", sizes_timed, measured_heads)
        if times is None:
            return
        ways = (("all heads at once", times.one_shot), ("a loop over heads", times.loop))
        bars = [
            Amount(name, 1_000 * seconds, _milliseconds(seconds), colour)
            for (name, seconds), colour in zip(ways, (WEIGHT, QUERY), strict=True)
        ]
        words = Caption(
            f"The loop takes {times.loop / times.one_shot:,.1f} times as long for "
            f"{counted(heads, 'head')}. Both give the same result: the largest difference is "
            f"{difference(times.difference)}."
        )
        picture = amounts(bars, unit="milliseconds")
        draw_panel(Panel("cost-ways", picture=picture, below=[words, _where(times)]))
