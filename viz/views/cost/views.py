"""What a model costs: vectors and tables of pairs to scale, parameters, memory, operations and measured time,
and how each grows with the length of the text."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isclose

import streamlit as st

from model.analysis.cost.cost import (
    Memory,
    flops_by_part,
    growth,
    memory,
    total_flops,
    total_results,
)
from model.analysis.cost.operations import (
    Dimensions,
    Operation,
    compared,
    operations,
    recorded_shapes,
)
from model.analysis.cost.timing import (
    FEWEST,
    REPEATS,
    HeadsMeasurement,
    Measurement,
    measured,
    measured_heads,
)
from model.arithmetic.sizes import attention_costs, parameter_parts, parameters_read
from model.nn.config import TransformerConfig
from model.nn.places import Kind, Place
from viz.figures.bars import Amount, amounts, percent
from viz.figures.curves import LINEAR, GrowthLine, Timed, growth_lines, time_lines
from viz.figures.diagrams import to_scale
from viz.notation.markdown import plain
from viz.notation.theme import FEED_FORWARD, KEY, MASKED, OUTPUT, QUERY, STREAM, WEIGHT
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table, draw_panel, refusals
from viz.state.engine import engine
from viz.state.look import Look
from viz.views.cost import formulas
from viz.views.cost.choice import ChosenSizes, choose_sizes, resized

say = sentences_of("cost.views")

BYTES = {"memory": 4, "memory in float16": 2}  # of a number
OPERATIONS, PARAMETERS, TIME = "operations", "parameters", "time"


@dataclass(frozen=True)
class CostMeasure:
    """What stands beside the picture and under it, for one measure."""

    said: tuple[str, str]  # what the large number is, and the number
    beside: list[Part]
    growth: Panel | None


def cost_view(look: Look) -> Panel:
    """The picture to scale, and one measure of the chosen sizes."""
    with refusals():
        sizes, own = choose_sizes(look)
        measure = st.selectbox(
            "Measure",
            (*BYTES, OPERATIONS, PARAMETERS, TIME),
            key="cost-measure",
            bind="query-params",
        )
        if measure in BYTES:
            found = _memory(sizes, BYTES[measure])
        elif measure == OPERATIONS:
            found = _operations(sizes)
        elif measure == PARAMETERS:
            found = _parameters(look, sizes, own=own)
        else:
            found = _time(sizes)
        rows = compared(
            operations(sizes.config, sizes.lengths), recorded_shapes(look.trace) if own else {}
        )
    config, length = sizes.config, sizes.lengths.tokens
    scale = Panel(
        "cost-to-scale",
        picture=to_scale(length, config.d_model, config.heads),
        check=_check(look, rows) if own else None,
        table=_shapes(look, sizes, rows, own=own),
    )
    drawn = [scale, found.growth] if found.growth else [scale]
    return Panel(
        "cost",
        look_for=_compared(length, config.d_model, config.heads),
        picture=partial(_draw_in_turn, drawn),
        beside=[partial(st.metric, *found.said), *found.beside, Caption(plain(_named(sizes)))],
    )


def _draw_in_turn(panels: list[Panel]) -> None:
    for panel in panels:
        draw_panel(panel)


def _compared(length: int, width: int, heads: int) -> str:
    """Which holds more numbers, and from which length on it is the tables."""
    tables, vectors = heads * length**2, length * width
    words = say("layer_vectors_hold", length=length, vectors=vectors, heads=heads, tables=tables)
    if tables > vectors:
        return say("times_many_twice", words=words, tables=tables / vectors)
    return say("move_length_tokens", words=words, width=width // heads + 1)


def _named(sizes: ChosenSizes) -> str:
    """What the sizes are, in small print."""
    listed = dict(
        zip(
            ("batch", "length", "width", "heads", "layers", "vocabulary"),
            sizes.numbers,
            strict=True,
        )
    )
    return f"{sizes.note} Here: " + ", ".join(f"{name} {n:,}" for name, n in listed.items()) + "."


# The shapes of all results of a pass, behind the picture.

_PLACES: dict[Kind, str] = {
    "embedding": "Embedding",
    "self": "Self-attention",
    "cross": "Cross-attention",
    "feed_forward": "Feed-forward",
    "final": "Final norm",
    "output": "Output",
}
CostRows = list[tuple[Operation, Dimensions | None, bool | None]]


def _shapes(look: Look, sizes: ChosenSizes, rows: CostRows, *, own: bool) -> Table:
    """The shape after every operation, in the first layer of each stack. own: beside those of the run."""
    scales = {
        attention.place.in_any_layer: attention.scale
        for attention in look.trace.attention
        if own and attention.layer == 0
    }
    width = sizes.config.head_width
    columns: dict[str, object] = {
        "part": [_part(step.place) for step, _, _ in rows],
        "operation": [step.name for step, _, _ in rows],
        "formula": [formula_of(step, scales, width) for step, _, _ in rows],
        "shape": [_written(step.shape) for step, _, _ in rows],
    }
    if own:
        columns["recorded"] = ["—" if shape is None else _written(shape) for _, shape, _ in rows]
    columns["axes"] = [
        " × ".join(step.axes).replace("d_k", "dₖ").replace("d_v", "dᵥ") for step, _, _ in rows
    ]
    return Table(columns)


def _part(place: str) -> str:
    named = Place.named(place)
    return f"{named.stack}: {_PLACES[named.kind].lower()}"


def formula_of(step: Operation, scales: Mapping[str, float], width: int) -> str:
    """The formula of an operation, with the model's own factor where that is not 1/√width."""
    scale = scales.get(step.place)
    if step.name != "Scaled" or scale is None or isclose(scale, width**-0.5, rel_tol=1e-6):
        return step.formula
    return step.formula.replace("/ √dₖ", "× 1" if scale == 1 else f"× {scale:.4g}")


def _written(shape: Dimensions) -> str:
    return " × ".join(f"{length:,}" for length in shape)


def _check(look: Look, rows: CostRows) -> Check:
    """How many recorded shapes are the counted ones, and what a word costs in tokens."""
    agree = [same for _, _, same in rows if same is not None]
    words = len(look.request.text.split())
    typed = sum(not token.special for token in look.trace.tokens)
    added = len(look.trace.tokens) - typed
    special = say("model_adds_special", added=added, typed_added=added + typed)
    return Check(
        plain(
            say(
                "check_shapes_recorded",
                agree=sum(agree),
                agree_2=len(agree),
                words=words,
                typed=typed,
                typed_words=words / max(typed, 1),
            )
            + special * bool(added)
        ),
        f"{sum(agree)} of {len(agree)} recorded shapes",
    )


def _amounts(name: str, bars: list[Amount], table: Mapping[str, object]) -> Panel:
    return Panel(name, picture=amounts(bars), table=Table(table, decimals=2))


def _letters(config: TransformerConfig) -> list[Part]:
    """Below a formula: its letters for experts and latent vectors."""
    words = formulas.letters(config)
    return [Caption(words)] if words else []


# Parameters

_PARAMETERS = {
    "Token embedding": STREAM,
    "Attention": WEIGHT,
    "Feed-forward": FEED_FORWARD,
    "Experts": FEED_FORWARD,
    "Output matrix": OUTPUT,
}


def _parameters(look: Look, sizes: ChosenSizes, *, own: bool) -> CostMeasure:
    """The parameters by part, and what tying and biases change."""
    config, runs = sizes.config, own and look.model.runs
    parts = parameter_parts(config) | (look.model.module.extra_parameters() if runs else {})
    total = sum(parts.values())
    bars = [
        Amount(name, count, f"{count:,} ({percent(count / total)})", _PARAMETERS.get(name, MASKED))
        for name, count in parts.items()
    ]
    columns = {"part": list(parts), "parameters": list(parts.values())}
    beside: list[Part] = [
        _amounts("cost-parameters", bars, columns),
        Formula(formulas.parameters(config)),
        *_letters(config),
    ]
    if config.experts:
        unread = sum(parameter_parts(config).values()) - parameters_read(config)
        beside.insert(0, partial(st.metric, say("token_meets"), f"{total - unread:,}"))
    if runs:
        tensors = look.model.parameter_count
        not_listed = say("lies_parts_page") * (tensors != total)
        beside.append(
            Caption(
                say(
                    "check_counted_over",
                    tensors=tensors,
                    total_tensors=tensors - total,
                    not_listed=not_listed,
                )
            )
        )
    beside.append(Caption(" ".join(what_adds(config))))
    if config.decoder_layers:
        variants = {
            say("output_matrix_own"): (False, False),
            say("tied_biases"): (True, False),
            say("tied_biases_2"): (True, True),
        }
        said = [
            f"{sum(parameter_parts(replace(config, tied=tied, qkv_bias=biases)).values()):,} {name}"
            for name, (tied, biases) in variants.items()
        ]
        beside.append(Caption(f"These sizes have {'; '.join(said)}."))
    line = GrowthLine(say("parameters_same_every"), MASKED, constant=total)
    grows = growth_lines([line], length=sizes.lengths.tokens, unit="parameters")
    return CostMeasure(
        ("All parameters", f"{total:,}"), beside, Panel("cost-growth", picture=grows)
    )


def what_adds(config: TransformerConfig) -> list[str]:
    """Which of the sizes besides width and layers change the number of parameters, in sentences."""
    none, others = ["Dropout"], []
    if config.head_size:
        others.append(say("further_head_adds"))
    elif config.groups_keys:
        shared = config.key_head_count
        others.append(
            say("more_heads_leave", shared=shared) if shared > 1 else say("more_heads_make")
        )
    else:
        none.append("heads")
    if config.has_position_table:
        others.append(say("up_tokens_length", n_ctx=config.n_ctx, d_model=config.d_model))
    else:
        none.append("length")
    listed = ", ".join(none[:-1]) + " and " + none[-1] if len(none) > 1 else none[0]
    return [f"{listed} add{'' if len(none) > 1 else 's'} none.", *others]


# Memory and operations

Units = tuple[tuple[float, str], ...]
MEMORY_UNITS: Units = (
    (2**10, "KiB"),
    (2**20, "MiB"),
    (2**30, "GiB"),
)
FLOP_UNITS: Units = (
    (1e3, "kFLOP"),
    (1e6, "MFLOP"),
    (1e9, "GFLOP"),
    (1e12, "TFLOP"),
)


def _memory(sizes: ChosenSizes, width: int) -> CostMeasure:
    """Parameters, results, attention matrices, key–value cache. width: bytes of a number."""
    config, needed = sizes.config, memory(sizes.config, sizes.lengths)
    twice = resized(sizes, 2 * sizes.lengths.tokens)
    rows = {
        "Attention matrices": (needed.matrices, WEIGHT),
        "Other results": (needed.activations, FEED_FORWARD),
        "Parameters": (needed.weights, MASKED),
        "Key–value cache": (needed.cache, KEY),
    }
    rows = {name: row for name, row in rows.items() if row[0]}
    unit, short = fitting(width * max(count for count, _ in rows.values()), MEMORY_UNITS)
    amount = {name: count * width / unit for name, (count, _) in rows.items()}
    bars = [
        Amount(name, amount[name], f"{amount[name]:,.2f} {short}", colour)
        for name, (_, colour) in rows.items()
    ]
    columns = {
        "what": list(rows),
        "numbers": [f"{count:,}" for count, _ in rows.values()],
        short: list(amount.values()),
    }
    words = (
        say("counted_every_result")
        + say("cache_kept_while") * bool(needed.cache)
        + say("encoder_generates_text") * (not needed.cache)
        + say("q_k_counted_once") * bool(config.turns_positions)
    )
    batch = sizes.lengths.batch
    parts = growth(partial(total_results, config), batch)
    lines = [
        GrowthLine("attention matrices: n²", WEIGHT, width * parts.quadratic),
        GrowthLine("other results: n", FEED_FORWARD, 0, width * parts.linear),
        GrowthLine("parameters: the same", MASKED, 0, 0, width * needed.weights),
    ]
    if needed.cache:
        cache = growth(lambda lengths: memory(config, lengths).cache, batch).linear
        lines.append(GrowthLine("key–value cache: n", KEY, 0, width * cache))
    total = width * (needed.matrices + needed.activations + needed.weights)
    size, name = fitting(total, MEMORY_UNITS)
    return CostMeasure(
        (say("pass_every_result"), f"{total / size:,.2f} {name}"),
        [
            _amounts("cost-memory", bars, columns),
            Formula(formulas.memory(config)),
            *_letters(config),
            Caption(f"{doubled(needed, memory(twice.config, twice.lengths))} {words}"),
        ],
        _grown(lines, sizes, "bytes", parts.crossing),
    )


def _grown(lines: list[GrowthLine], sizes: ChosenSizes, unit: str, crossing: float | None) -> Panel:
    """The lines, and where the first two are equal."""
    figure = growth_lines(lines, length=sizes.lengths.tokens, unit=unit, crossing=crossing)
    lengths = [2**power for power in range(4, 15)]
    columns = {"length": lengths} | {
        line.name: [f"{value:,.0f}" for value in line.at(lengths)] for line in lines
    }
    pair = sizes.config.shape == "encoder-decoder"
    equal = say("up_tokens_part_grows", crossing=int(crossing)) if crossing else ""
    both = say("text_target_equally") * pair
    words = [Caption(" ".join(filter(None, (equal, both))))] if equal or pair else []
    return Panel("cost-growth", picture=figure, below=words, table=Table(columns, decimals=0))


def doubled(once: Memory, twice: Memory) -> str:
    """How many times as much each kind of number is at twice the length, the target's too."""
    grown = {
        "the matrices": twice.matrices / once.matrices,
        "the other results": twice.activations / once.activations,
        "the parameters": twice.weights / once.weights,
    }
    said = ", ".join(f"{name} × {ratio:.4g}" for name, ratio in grown.items())
    return f"Double the length: {said}."


def fitting(largest: float, units: Units) -> tuple[float, str]:
    """The largest unit of which there is one at least: its size and its sign."""
    return max((unit for unit in units if unit[0] <= largest), default=units[0])


_PARTS = {
    "projections": ("Q, K, V and W_O", QUERY),
    "pairs": ("Scores, weights, context", WEIGHT),
    "feed-forward": ("Feed-forward", FEED_FORWARD),
    "output": ("Logits", OUTPUT),
}


def _operations(sizes: ChosenSizes) -> CostMeasure:
    """Operations of one pass by part."""
    config = sizes.config
    parts = flops_by_part(config, sizes.lengths)
    total = sum(parts.values())
    unit, short = fitting(total, FLOP_UNITS)
    bars = [
        Amount(
            name, count / unit, f"{count / unit:,.2f} {short} ({percent(count / total)})", colour
        )
        for (name, colour), count in ((_PARTS[part], count) for part, count in parts.items())
    ]
    columns = {
        "part": [bar.name for bar in bars],
        "operations": [f"{count:,}" for count in parts.values()],
        "percent": [100 * count / total for count in parts.values()],
    }
    tokens = sizes.lengths.batch * sizes.lengths.tokens
    grown = growth(partial(total_flops, config), sizes.lengths.batch)
    lines = [
        GrowthLine("pairs of tokens: n²", WEIGHT, grown.quadratic),
        GrowthLine("everything else: n", LINEAR, 0, grown.linear),
    ]
    masked = say("masked_half_causal") * config.masks_future
    return CostMeasure(
        ("One pass", f"{total / unit:,.2f} {short}"),
        [
            _amounts("cost-flops", bars, columns),
            Formula(formulas.operations(config)),
            *_letters(config),
            Caption(
                say(
                    "mflop_per_token",
                    total=total / tokens / 1000000.0,
                    masked=masked,
                    quadratic=grown.quadratic,
                    linear=grown.linear,
                )
            ),
        ],
        _grown(lines, sizes, "operations", grown.crossing),
    )


# Time: measured on this machine, or said to be not measured.

FUSED, STEPS = "fused kernel", say("step_step_kept")
_AGAIN = "cost-measured-again"  # session state: how often it was measured anew


def _time(sizes: ChosenSizes) -> CostMeasure:
    """One attention layer of the chosen width, in both ways, from 32 tokens on."""
    width, heads = sizes.config.d_model, sizes.config.heads
    again = int(st.session_state.get(_AGAIN, 0))
    try:
        with st.spinner("Measuring", show_time=True):
            times = measured(width, heads, turn=engine().turn, again=again)
    except ValueError as refusal:
        return CostMeasure(("Time", "not measured"), [plain(str(refusal))], None)
    lengths, fused, steps = times.lengths, times.fused, times.explicit
    flops = [
        sum(cost.flops for cost in attention_costs(1, length, width, heads)) for length in lengths
    ]
    expected = [fused[-1] / flops[-1] * count for count in flops]
    last, asked = lengths[-1], sizes.lengths.tokens
    bars = [
        Amount(name, 1_000 * seconds, _milliseconds(seconds), colour)
        for name, seconds, colour in ((STEPS, steps[-1], QUERY), (FUSED, fused[-1], WEIGHT))
    ]
    table = {
        "length": lengths,
        "fused, ms": [1_000 * seconds for seconds in fused],
        say("step_step_ms"): [1_000 * seconds for seconds in steps],
    }
    figure = time_lines(
        (Timed(STEPS, lengths, steps, QUERY), Timed(FUSED, lengths, fused, WEIGHT)),
        Timed(say("operations_alone_scaled"), lengths, expected, LINEAR),
    )
    return CostMeasure(
        (say("fused_kernel_tokens", last=last), _milliseconds(fused[-1])),
        [
            _amounts("cost-time", bars, table),
            Caption(
                say(
                    "attention_layer_width",
                    width=width,
                    heads=heads,
                    first_lengths=lengths[0],
                    last=last,
                )
                + say("n_nothing_measured", asked=asked) * (asked > last)
            ),
            _where(times),
            partial(st.button, "Measure again", "cost-measure-again", on_click=_measure_again),
        ],
        Panel("cost-growth", picture=figure, below=[partial(_loop, sizes)], table=Table(table)),
    )


def _measure_again() -> None:
    st.session_state[_AGAIN] = int(st.session_state.get(_AGAIN, 0)) + 1


def _milliseconds(seconds: float) -> str:
    """Three digits: 0.123 ms, 12.3 ms, 1,234 ms."""
    time = 1_000 * seconds
    return f"{time:,.{int(time < 100) + int(time < 10) + int(time < 1)}f} ms"


def _where(measurement: Measurement | HeadsMeasurement) -> Caption:
    return Caption(
        plain(
            say(
                "measured_threads_time",
                machine=measurement.machine,
                threads=measurement.threads,
                fewest=FEWEST,
                repeats=REPEATS,
            )
        )
    )


def _loop(sizes: ChosenSizes) -> None:
    """All heads at once or one after another, once that is asked for."""
    chosen = sizes.config.d_model, sizes.config.heads, sizes.lengths.tokens
    asked = "cost-looped"
    if st.session_state.get(asked) != chosen:
        st.button(
            say("time_loop_over_heads"),
            "cost-loop",
            on_click=partial(st.session_state.__setitem__, asked, chosen),
        )
        return
    with st.spinner("Measuring", show_time=True), refusals():
        times = measured_heads(*chosen, turn=engine().turn)
    ways = ((say("heads_once"), times.one_shot), ("a loop over heads", times.loop))
    bars = [
        Amount(name, 1_000 * seconds, _milliseconds(seconds), colour)
        for (name, seconds), colour in zip(ways, (WEIGHT, QUERY), strict=True)
    ]
    words = Caption(
        say(
            "loop_takes_times",
            chosen=chosen[2],
            loop=times.loop / times.one_shot,
            chosen_2=chosen[1],
            difference=times.difference,
        )
    )
    draw_panel(Panel("cost-ways", picture=amounts(bars), below=[words, _where(times)]))
