"""The key–value cache while the model writes: what is kept and computed at each step, what that saves, why it
is right, and what a cache of limited size does to the text."""

from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.analysis.cost.cost import (
    Apart,
    WritingStep,
    apart,
    key_value_cache,
    keys_there,
    windows_of,
    writing_steps,
)
from model.analysis.cost.operations import lengths_of
from model.analysis.cost.timing import machine
from model.analysis.tokens.live_writing import (
    Choice,
    Shorter,
    WrittenToken,
    shorter_caches,
)
from model.analysis.tokens.prediction import Sampling
from model.nn.key_value_cache import KEEPS_ALL, Eviction
from model.nn.places import Place
from model.system.files import bytes_text
from model.trace.trace import Trace
from viz.figures.diagrams import StepBars, staircase
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import SUBLAYERS
from viz.notation.numbers import counted, number, signed
from viz.notation.theme import KEY, PROBABILITY, SCORE
from viz.notation.words import sentences_of
from viz.shell.background import Offer, passes_or_offer
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look, traced
from viz.views.prediction.writing import request_after, so_far, tokens_to_write, writing

say = sentences_of("prediction.cache")

GREEDY = Choice(Sampling())
SCORES, BYTES, TIME = "scores", "bytes kept", "milliseconds"
WINDOWS = (0, 2, 4, 8, 16, 32, 64, 128)  # 0: all
FIRSTS = (0, 1, 2, 4, 8)
WITHOUT, EVERYTHING = "without the cache", "every token kept"
MOST_ROWS = 32  # steps that are drawn
PERPLEXITY = r"\exp\left(-\tfrac{1}{n} \sum_t \ln p(y_t \mid \text{what is kept})\right)"


def kept_keys(look: Look) -> Panel:
    """The staircase of the steps and what each costs; of a shorter cache also what it does to the text."""
    window = st.selectbox(
        "Keep",
        WINDOWS,
        format_func=lambda window: str(window or "all"),
        key="prediction-window",
        bind="query-params",
    )
    first = 0
    if window:
        first = int(
            st.selectbox("and first", FIRSTS, key="prediction-first", bind="query-params", index=1)
        )
    measure = st.selectbox("Saved", (SCORES, BYTES, TIME), key="prediction-saved")
    count = tokens_to_write(look)
    if window:
        return _shorter(look, Eviction(int(window), first), measure, count)
    text = writing(look, GREEDY, count, compared=measure == TIME)
    if text is None:
        return Panel("prediction-kept")
    run = traced(request_after(look, text.ids[:-1]))
    steps = _steps(look, run, len(text.ids))
    if measure == SCORES:
        bars = _scores(steps)
    elif measure == BYTES:
        bars = StepBars("bytes kept", [_bytes(step) for step in text.steps], KEY)
    else:
        milliseconds = [1_000 * step.seconds for step in text.steps]
        without = [1_000 * (step.without or 0.0) for step in text.steps]
        bars = StepBars("milliseconds", milliseconds, KEY, without, WITHOUT)
    why = None
    if len(text.ids) > 1:
        why = apart(traced(request_after(look, text.ids[:-2])), run)
    formula, words = _in_bytes(look, run, text.steps[-1])
    return Panel(
        "prediction-kept",
        look_for=_saved(bars, measure),
        picture=_staircase(run, steps, [bars]),
        beside=[
            partial(_share_saved, bars),
            _new(look, run, steps),
            formula,
            Caption(words),
            *([Caption(_why(why, steps[-1]))] if why else []),
            *([Caption(_timed())] if measure == TIME else []),
        ],
        check=None
        if why is None
        else Check(
            f"Check: {_why(why, steps[-1])} {words}"
            + _same_logits([step.apart for step in text.steps]),
            why.difference,
        ),
        table=_table(run, steps, [bars]),
    )


def _steps(
    look: Look, run: Trace, count: int, eviction: Eviction = KEEPS_ALL
) -> tuple[WritingStep, ...]:
    """The steps of which a run is the last one's pass."""
    source = len(run.tokens) if run.target_tokens else 0
    given = len(run.tokens_of("decoder")) - count + 1
    windows = windows_of(run)
    return writing_steps(look.model.config, windows, given, count, source, eviction)


def _scores(steps: tuple[WritingStep, ...]) -> StepBars:
    with_it, without = ([step.cached for step in steps], [step.uncached for step in steps])
    return StepBars("scores", with_it, SCORE, without, WITHOUT)


def _bytes(step: WrittenToken) -> int:
    return sum(one.nbytes for one in step.kept.values())


def _staircase(
    run: Trace,
    steps: tuple[WritingStep, ...],
    bars: list[StepBars],
    eviction: Eviction = KEEPS_ALL,
) -> go.Figure:
    there = [keys_there(windows_of(run), step.tokens, eviction).mean(0) for step in steps]
    tokens = [token.text for token in run.tokens_of("decoder")]
    last = slice(-MOST_ROWS, None)
    return staircase(
        steps[last],
        tokens,
        there[last],
        [one.last(MOST_ROWS) for one in bars],
        first=max(len(steps) - MOST_ROWS, 0),
    )


def _table(run: Trace, steps: tuple[WritingStep, ...], bars: list[StepBars]) -> Table:
    columns: dict[str, object] = {
        "reads": [token_label(token.text) for token in run.tokens_of("decoder")][-len(steps) :],
        "tokens": [step.tokens for step in steps],
        "computed now": [step.new for step in steps],
    }
    for one in bars:
        columns[one.title] = one.values
        if one.other:
            columns[one.other_name] = one.other
    return Table(columns, index="step")


def _saved(bars: StepBars, measure: str) -> str:
    """What the last step takes, with the cache and without one."""
    last = len(bars.values)
    rows = say("row_step_keys_values")
    if not bars.other:
        return say("after_step_take", rows=rows, last=last, last_values=bars.values[-1])
    value, other, step = bars.values[-1], bars.other[-1], f"Step {last} takes"
    if measure == TIME and last > 1:
        value, other, step = sum(bars.values[1:]), sum(bars.other[1:]), say("after_first_take")
    times = other / value if value else 0.0
    return f"{rows}. {step} {value:,.0f} {measure}; without the cache {other:,.0f}" + (
        f", {times:,.{0 if times >= 10 else 1}f} times as many." if times > 1 else "."
    )


def _share_saved(bars: StepBars) -> None:
    """How much of all steps together the cache saves, or what it holds at the end."""
    if not bars.other:
        st.metric(say("kept_end"), bytes_text(int(bars.values[-1])))
    elif (saved := 1 - sum(bars.values) / sum(bars.other)) > 0:
        st.metric(
            f"Saved in {counted(len(bars.values), 'step')}", f"{saved:.0%} of the {bars.title}"
        )


def _new(look: Look, run: Trace, steps: tuple[WritingStep, ...]) -> str:
    """What the last step computes, and what it reads."""
    config, last = look.model.config, steps[-1]
    if len(steps) == 1:
        return say("step_1_reads_nothing", tokens=last.tokens)
    against = counted(last.tokens, "key")
    keys = keys_there(windows_of(run), last.tokens).sum(1)
    fewer = keys[keys < last.tokens]
    if len(fewer):
        others = len(keys) - len(fewer)
        against = say("keys_sliding_window", first_fewer=fewer[0], fewer=len(fewer))
        against += f" and {counted(last.tokens, 'key')} in {counted(others, 'other')}" * bool(
            others
        )
    if run.target_tokens:
        against += say("against_source_cross", tokens=len(run.tokens))
    return say(
        "step_multiplies_row",
        steps=len(steps),
        decoder_layers=config.decoder_layers,
        heads=config.heads,
        against=against,
    )


def _why(gap: Apart, last: WritingStep) -> str:
    """Whether a longer text leaves earlier keys and values as they were: measured in two passes."""
    measured = (
        f"The passes over {last.tokens - 1} and over {last.tokens} tokens share {gap.numbers:,} numbers in "
        f"keys and values, the largest {number(gap.largest)}; "
        + (
            say("differ_most", difference=gap.difference)
            if gap.difference
            else say("every_same_last")
        )
    )
    if gap.agree:
        return say("may_kept_token_attends", measured=measured)
    return say("may_not_kept_new", measured=measured)


def _same_logits(gaps: list[float | None]) -> str:
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return ""
    return say("both_ways_give_same", known=max(known))


def _timed() -> str:
    return plain(say("measured_pass_ran", machine=machine()))


_LATENT = (
    r"\text{layers} \cdot (d_\text{latent} + d_\text{rotated}) \cdot n \cdot \text{bytes} = "
    r"%d \cdot (%d + %d) \cdot %d \cdot %d = "
)


def _in_bytes(look: Look, run: Trace, written: WrittenToken) -> tuple[Formula, str]:
    """The bytes of the cache by the formula with the model's numbers, and those of the tensors kept."""
    if any(one.rebuilds(run.find(name)) for name, one in written.kept.items()):
        return _latent_bytes(run, written, look.model.precision.itemsize)
    config, caches = look.model.config, written.kept
    source, tokens = (len(run.tokens) if run.target_tokens else 0), written.read
    width = look.model.precision.itemsize
    total = width * key_value_cache(config, lengths_of(run))
    sizes = {SUBLAYERS[Place.named(name).kind]: one.nbytes for name, one in caches.items()}
    measured = sum(one.nbytes for one in caches.values())
    each = " and ".join(f"{size:,} in the {kind}" for kind, size in sizes.items())
    alike = len({one.nbytes for one in caches.values()}) == len(sizes)
    words = (
        say("keys_values_running", measured=measured)
        + f": {each} of each of {counted(config.decoder_layers, 'layer')}" * alike
        + f", {width} bytes a number."
    )
    if any(one.tokens < tokens for name, one in caches.items() if not name.endswith("cross")):
        words += say("less_formula_gives")
    elif measured != total:
        words += say("formula_differs_keys")
    if config.groups_keys:
        group = config.heads // config.key_head_count
        words += say("heads_share_head", group=group, measured_group=group * measured)
    if source:
        words += say("source_tokens_kept", source=source)
    formula = (
        r"2 \cdot \text{layers} \cdot \text{key heads} \cdot d_k \cdot "
        rf"{'(n + m)' if source else 'n'} \cdot \text{{bytes}} = 2 \cdot {config.decoder_layers} \cdot "
        rf"{config.key_head_count} \cdot {config.head_width} \cdot "
        rf"{f'({tokens} + {source})' if source else tokens} \cdot {width} = "
    )
    return Formula(formula + f"{total:,}".replace(",", "{,}")), words


def _latent_bytes(run: Trace, written: WrittenToken, width: int) -> tuple[Formula, str]:
    """The bytes of a cache of latent vectors, from which keys and values are rebuilt (DeepSeek-V2, 2024)."""
    name, first = next(iter(written.kept.items()))
    (_, latent), (_, turned) = first.sizes
    vectors = run.find(name).vectors[1:]
    keys, values = (f"{len(each)} × {each.shape[-1]}" for each in vectors)
    total = _bytes(written)
    plainly = width * first.tokens * sum(len(each) * each.shape[-1] for each in vectors)
    numbers = len(written.kept), latent, turned, first.tokens, width
    return Formula(_LATENT % numbers + f"{total:,}".replace(",", "{,}")), say(
        "layer_keeps_every",
        latent=latent,
        turned=turned,
        keys=keys,
        values=values,
        total=total,
        plainly=plainly * len(written.kept),
    )


def _shorter(look: Look, eviction: Eviction, measure: str, count: int) -> Panel:
    """A cache that drops tokens: what it keeps and saves, and how probable the same text is with it.

    Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"; here tokens keep the
    positions at which they were read.
    """
    model, given = look.model, look.trace.tokens
    window, first = eviction.window or 0, eviction.first or 1
    offer = Offer(
        "prediction-evict",
        say("model_writes_three", count=count),
        "Write all three",
        "tokens",
        "written",
        3 * count,
        (3 * count + 9 * len(given)) * model.parameter_count,
    )
    run = passes_or_offer(
        ("shorter caches", look.request, GREEDY, count, window, first),
        lambda run: shorter_caches(
            model, given, GREEDY, steps=count, window=window, first=first, turn=run.turn
        ),
        offer,
    )
    if run is None or not run.complete or run.found is None:
        return Panel("prediction-kept")
    whole, *others = run.found.found
    short = next(one for one in others if one.eviction == eviction)
    known = min(len(short.writing.steps), len(whole.writing.steps))
    passed = traced(request_after(look, whole.writing.ids[:-1]))
    steps = _steps(look, passed, len(whole.writing.ids), eviction)[:known]
    if measure == SCORES:
        everything = [step.cached for step in _steps(look, passed, len(whole.writing.ids))]
        bars = StepBars(
            SCORES, [one.cached for one in steps], SCORE, everything[:known], EVERYTHING
        )
    else:
        made = _bytes if measure == BYTES else lambda step: 1_000 * step.seconds
        kept, everything = (
            [made(step) for step in one.writing.steps[:known]] for one in (short, whole)
        )
        bars = StepBars(measure, kept, KEY, everything, EVERYTHING)
    shares = [np.exp(one.of_whole[:known]).tolist() for one in (short, whole)]
    probabilities = StepBars("p(token)", shares[0], PROBABILITY, shares[1], "every token kept")
    return Panel(
        "prediction-kept",
        look_for=_lost(short, whole),
        picture=_staircase(passed, steps, [bars, probabilities], eviction),
        beside=[
            say("written_every_token"),
            partial(so_far, (), model.tokenizer.named(whole.writing.ids), 0),
            say("written_cache"),
            partial(so_far, (), model.tokenizer.named(short.writing.ids), 0),
            *_perplexities(short, whole),
            Caption(say("tokens_keep_positions")),
            *([Caption(_timed())] if measure == TIME else []),
        ],
        table=_table(passed, steps, [bars, probabilities]) if known == len(steps) else None,
    )


def _perplexities(short: Shorter, whole: Shorter) -> list[Part]:
    rows = (
        (say("first_text_every"), whole.of_whole),
        (say("first_text_cache"), short.of_whole),
        (say("cache_text_every"), short.of_own),
    )
    listed = "\n".join(f"| {name} | {_perplexity(logs)} |" for name, logs in rows)
    return [f"| perplexity | |\n|---|--:|\n{listed}", Formula(PERPLEXITY)]


def _perplexity(logs: np.ndarray) -> str:
    value = float(np.exp(-logs.mean()))
    return f"**{value:,.2f}**" if value < 1e6 else "**over a million**"


def _lost(short: Shorter, whole: Shorter) -> str:
    """What the text that was written with every token kept loses with the shorter cache."""
    eviction = short.eviction
    kept = f"the last {eviction.window} tokens"
    if eviction.first:
        kept += f" and the first {eviction.first}" if eviction.first > 1 else " and the first"
    own, other = (float(one.of_whole.mean()) for one in (whole, short))
    before, after = (signed(f"{round(mean, 2) + 0.0:.2f}") for mean in (own, other))
    return say("only_kept_text_model", kept=kept, after=after, before=before) + (
        say("longer_text_show") if own - other < 0.05 else say("longer_expects")
    )
