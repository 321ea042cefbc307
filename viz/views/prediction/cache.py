"""The key–value cache while the model writes: what is kept and computed, why that is right, and a cache of
limited size."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.cost.cost import (
    Apart,
    WritingStep,
    apart,
    key_value_cache,
    keys_read,
    windows_of,
    writing_steps,
)
from model.analysis.cost.operations import lengths_of
from model.analysis.tokens.live_writing import (
    Shorter,
    WrittenToken,
    shorter_caches,
)
from model.nn.places import Place
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.curves import TokenLine, token_lines
from viz.figures.diagrams import staircase
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.names import SUBLAYERS, sublayer_name
from viz.notation.numbers import counted, difference, number, signed
from viz.notation.theme import HEADS, KEY
from viz.shell.background import Offer, passes_or_offer
from viz.shell.panel import (
    Caption,
    Check,
    Columns,
    Formula,
    Panel,
    Part,
    Table,
    draw_view,
)
from viz.state.look import Look, traced
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.prediction.writing import (
    DRAW,
    LIKELIEST,
    choice_of,
    choose_step,
    request_after,
    say_end,
    so_far,
    step_times,
    tokens_to_write,
    writing,
)

FIRST = 5  # the step at which the view opens: the staircase is seen


def growing_cache(look: Look) -> Panel:
    """The staircase of the steps so far, the numbers of the last one, and the proof."""
    draws = one_of("At each step, take", (LIKELIEST, DRAW), "prediction-kept-how") == DRAW
    choice = choice_of(look, draws=draws)
    count = tokens_to_write(look)
    text = writing(look, choice, count)
    if text is None:
        return Panel("prediction-cache")
    ids = text.ids[: choose_step(look, text, "prediction-kept-step", FIRST)]
    run = traced(request_after(look, ids[:-1]))
    read = run.tokens_of("decoder")
    source = len(run.tokens) if run.target_tokens else 0
    windows = windows_of(run)
    steps = writing_steps(look.model.config, windows, len(read) - len(ids) + 1, len(ids), source)
    there = [keys_read(windows, step.tokens) for step in steps]
    windowed = min(there[-1]) < len(read)
    why: list[Part] = []
    if len(ids) > 1:
        before = traced(request_after(look, ids[:-2]))
        why = [partial(_say_why, apart(before, run), steps[-1])]
    written = text.steps[len(ids) - 1]
    is_latent = any(one.rebuilds(run.find(name)) for name, one in written.kept.items())
    return Panel(
        "prediction-cache",
        below=[
            Panel(
                "prediction-kept",
                look_for="Each row is a step. The model computes keys and values of the **new token** alone; "
                "those of the tokens before it are kept. Without the key–value (KV) cache it computes all of "
                "them again."
                + " A layer with a sliding window also drops the tokens that it hides."
                * windowed,
                picture=staircase(steps, [token.text for token in read], there),
                beside=[_new(look, run, steps, source, windowed), *why],
                below=[
                    partial(say_end, look, text, len(ids), count),
                    *_scores(steps, source, windowed),
                ],
                table=Table(
                    {
                        "step": list(range(1, len(steps) + 1)),
                        "tokens": [one.tokens for one in steps],
                        "kept": [one.kept for one in steps],
                        "computed now": [one.new for one in steps],
                        "scores with the cache": [one.cached for one in steps],
                        "scores without it": [one.uncached for one in steps],
                    }
                ),
            ),
            "**What is kept after this step**",
            _latent_bytes(run, written, look.model.precision.itemsize)
            if is_latent
            else _bytes(look, run, steps[-1], written, source),
            "**What a step takes, with the cache and without it**",
            partial(draw_view, step_times, look, choice, count),
        ],
    )


def _new(
    look: Look, run: Trace, steps: tuple[WritingStep, ...], source: int, windowed: bool
) -> str:
    """What the last step computes, and what it reads.

    Args:
        look: the text and its model.
        run: the pass of the last step.
        steps: all steps up to it.
        source: tokens of the source; 0 without one.
        windowed: whether a layer has fewer keys than there are tokens.
    """
    config, last = look.model.config, steps[-1]
    if len(steps) == 1:
        return f"Step 1 reads {counted(last.tokens, 'token')}: nothing is kept yet. Go to step 2."
    token = bold_token(run.tokens_of("decoder")[-1].text, last.tokens - 1)
    against = counted(last.tokens, "key")
    if windowed:
        keys = keys_read(windows_of(run), last.tokens)
        fewer = [number for number in keys if number < last.tokens]
        others = len(keys) - len(fewer)
        against = f"{fewer[0]} keys in {counted(len(fewer), 'layer')} with a sliding window"
        against += f" and {counted(last.tokens, 'key')} in {counted(others, 'other')}" * bool(
            others
        )
    if source:
        against += f", and against the {counted(source, 'key')} of the source in cross-attention"
    shared = f" ({config.key_head_count} of keys and values)" if config.groups_keys else ""
    return (
        f"Step {len(steps)} reads {token}. In each of {counted(config.decoder_layers, 'layer')} with "
        f"{counted(config.heads, 'head')}{shared}, its row of Q is multiplied by {against}: one row "
        "of scores a head. The rows of earlier tokens are not needed: the next token is predicted from "
        "the last row."
    )


def _say_why(gap: Apart, last: WritingStep) -> None:
    """Whether a longer text leaves earlier keys and values as they were: measured in two passes."""
    measured = (
        f"Measured: the pass over {last.tokens - 1} tokens and the pass over {last.tokens} share "
        f"{gap.numbers:,} numbers in keys and values. The largest is "
        f"{number(gap.largest)}. "
        + (
            f"They differ by at most {difference(gap.difference)}."
            if gap.difference
            else "Every one is the same, to the last bit."
        )
    )
    if gap.agree:
        st.success(
            "They may be kept: no token attends to a later one, so a new token changes no earlier "
            f"key or value. {measured}"
        )
    else:
        st.warning(f"They may **not** be kept here: a new token changes them. {measured}")


def _scores(steps: tuple[WritingStep, ...], source: int, windowed: bool) -> list[Part]:
    """Scores with the cache and without it, at the last step and in all."""
    last, count = steps[-1], len(steps)
    cached, uncached = sum(one.cached for one in steps), sum(one.uncached for one in steps)
    keys = "(n + m)" if source else "n"
    also = (
        f" m = {source} is the number of source tokens; the encoder's own scores are not counted."
        * bool(source)
    )
    also += (
        " A layer with a sliding window keeps at most as many keys as it is wide: with the cache, a "
        "token then never has more scores there than the window is wide." * windowed
    )
    return [
        f"| scores, all layers and heads | with the cache | without it |\n|---|--:|--:|\n"
        f"| of each head | new tokens · {keys} | n · {keys} |\n"
        f"| at step {count}, n = {last.tokens} | {last.cached:,} | {last.uncached:,} |\n"
        f"| in {counted(count, 'step')} | {cached:,} | {uncached:,} |",
        Caption(
            "All products of a query and a key are counted, even those that the mask then hides. In the "
            f"first step every token is new.{also}"
        ),
    ]


_LATENT = (
    r"\text{layers} \cdot (d_\text{latent} + d_\text{rotated}) \cdot n \cdot \text{bytes} = "
    r"%d \cdot (%d + %d) \cdot %d \cdot %d = "
)


def _latent_bytes(run: Trace, written: WrittenToken, width: int) -> Panel:
    """The bytes of a cache of latent vectors, from which keys and values are rebuilt (DeepSeek-V2, 2024)."""
    name, first = next(iter(written.kept.items()))
    (_, latent), (_, turned) = first.sizes
    vectors = run.find(name).vectors[1:]
    keys, values = (f"{len(each)} × {each.shape[-1]}" for each in vectors)
    total = sum(one.nbytes for one in written.kept.values())
    plain = width * first.tokens * sum(len(each) * each.shape[-1] for each in vectors)
    numbers = len(written.kept), latent, turned, first.tokens, width
    return Panel(
        "prediction-kept-bytes",
        beside=[Formula(_LATENT % numbers + f"{total:,}".replace(",", "{,}"))],
        below=[
            Caption(
                f"Each layer keeps of every token one **latent vector** of {latent} numbers and one "
                f"rotated key of {turned}, which all heads share. At each step it rebuilds the keys "
                f"({keys} numbers a token) and values ({values}) of all tokens from them. Kept themselves, "
                f"these would take {plain * len(written.kept):,} bytes."
            )
        ],
        check=Check(
            f"Check: the tensors that the running model keeps take {total:,} bytes.",
            f"{total:,} bytes, as the running model keeps them",
        ),
    )


def _bytes(look: Look, run: Trace, last: WritingStep, written: WrittenToken, source: int) -> Panel:
    """The bytes of the cache: the formula with the model's numbers, beside the tensors that are kept.

    Args:
        look: the text and its model.
        run: the pass of the last step.
        last: the counts of that step.
        written: its token, with what is kept after it.
        source: tokens of the source; 0 without one.
    """
    config, caches = look.model.config, written.kept
    tokens = rf"({last.tokens} + {source})" if source else str(last.tokens)
    width = look.model.precision.itemsize
    total = width * key_value_cache(config, lengths_of(run))
    sizes = {SUBLAYERS[Place.named(name).kind]: one.nbytes for name, one in caches.items()}
    measured = sum(one.nbytes for one in caches.values())
    each = " and ".join(f"{size:,} in the {kind}" for kind, size in sizes.items())
    alike = len({one.nbytes for one in caches.values()}) == len(sizes)
    words = (
        f"Check: the tensors of keys and values that the running model keeps take {measured:,} bytes"
        + f": {each} of each of {counted(config.decoder_layers, 'layer')}" * alike
        + f", {width} bytes a number."
    )
    if any(one.tokens < last.tokens for name, one in caches.items() if not name.endswith("cross")):
        words += (
            " That is less than the formula gives: layers with a sliding window drop what the next token "
            "cannot read."
        )
    elif measured != total:
        words += " The formula differs: here keys and values are not as wide as its numbers say."
    if config.groups_keys:
        group = config.heads // config.key_head_count
        words += (
            f" {group} heads share one head of keys and values; with one for each head the cache would "
            f"take {group * measured:,} bytes."
        )
    if source:
        words += (
            f" The keys and values of the {source} source tokens, for cross-attention, are kept whole from "
            "the first step: the encoder has read its text by then, and nothing is added to it."
        )
    stacks = 2 if source else 1
    formula = (
        r"2 \cdot \text{layers} \cdot \text{key heads} \cdot d_k \cdot "
        rf"{'(n + m)' if source else 'n'} \cdot \text{{bytes}} = 2 \cdot {config.decoder_layers} \cdot "
        rf"{config.key_head_count} \cdot {config.head_width} \cdot {tokens} \cdot {width} = "
    )
    return Panel(
        "prediction-kept-bytes",
        beside=[Formula(formula + f"{total:,}".replace(",", "{,}"))],
        check=Check(words, f"{measured:,} bytes, as the running model keeps them"),
        table=Table(
            {
                "sub-layer": [sublayer_name(name, stacks=stacks) for name in caches],
                "key heads": [config.key_head_count] * len(caches),
                "tokens kept": [one.tokens for one in caches.values()],
                "bytes of keys and values": [one.nbytes for one in caches.values()],
            }
        ),
    )


WINDOWS = (2, 4, 8, 16, 32, 64, 128)
FIRSTS = (1, 2, 4, 8)
PERPLEXITY = r"\exp\left(-\tfrac{1}{n} \sum_t \ln p(y_t \mid \text{what is kept})\right)"
_LOOKS = ((KEY, "solid"), (HEADS[0], "dash"), (HEADS[2], "dot"))  # seen on a light and a dark page


def shorter_cache(look: Look) -> Panel:
    """How probable the text is with each cache, and the texts side by side."""
    draws = one_of("At each step, take", (LIKELIEST, DRAW), "prediction-evict-how") == DRAW
    choice = choice_of(look, draws=draws)
    steps = tokens_to_write(look)
    window = st.select_slider(
        "Window: the last tokens that are kept",
        WINDOWS,
        value=8,
        key="prediction-window",
        bind="query-params",
        help="Each token attends to at most this many tokens, itself included.",
    )
    first = st.select_slider(
        "First tokens kept", FIRSTS, value=1, key="prediction-first", bind="query-params"
    )
    model, given = look.model, look.trace.tokens
    offer = Offer(
        "prediction-evict",
        f"The model writes {counted(steps, 'token')} with each of three caches.",
        "Write all three",
        "tokens",
        "written",
        3 * steps,
        (3 * steps + 9 * len(given)) * model.parameter_count,
    )
    run = passes_or_offer(
        ("shorter caches", look.request, choice, steps, window, first),
        lambda run: shorter_caches(
            model, given, choice, steps=steps, window=window, first=first, turn=run.turn
        ),
        offer,
    )
    if run is None or not run.complete or run.found is None:
        return Panel("prediction-evict")
    caches = run.found.found
    tokens = [token.text for token in model.tokenizer.named(caches[0].writing.ids)]
    last = f"the last {window}"
    names = ["everything kept", last, f"{last} and the first" + f" {first}" * (first > 1)]
    lines = [
        TokenLine(name, one.of_whole.tolist(), colour, dash)
        for name, one, (colour, dash) in zip(names, caches, _LOOKS, strict=True)
    ]
    # the first token that is predicted without token 0
    full = window - len(model.begun(given))
    mark = full + 0.5 if 0 <= full < len(tokens) else None
    columns: dict[str, object] = {"token": list(map(token_label, tokens))}
    without = Caption("From the dotted line on the window no longer holds the first token.")
    return Panel(
        "prediction-evict",
        look_for="Each line is the same text, the one written with everything kept, as the model reads it "
        "with one of the caches. Where a line falls, the model no longer expects what it wrote itself.",
        picture=token_lines(tokens, lines, unit="log-probability of the token", mark=mark),
        below=[
            *([without] if mark is not None else []),
            Columns([_text(look, *one) for one in zip(names, caches, strict=True)]),
            _won_back(caches),
            partial(
                view_link,
                "pages/all_heads.py",
                "Why the first token? →",
                replace(current(), show="First token"),
            ),
            Formula(PERPLEXITY),
            Caption(
                "Tokens keep the positions at which they were read, even when those before them are dropped. "
                "(The method that made this known, StreamingLLM, numbers the kept tokens anew.) The given "
                "text is read under the same rule: each of its tokens attends to what is kept for it."
            ),
        ],
        table=Table(columns | {line.name: line.values for line in lines}, index="written"),
    )


def _text(look: Look, name: str, one: Shorter) -> Panel:
    """A text that one of the caches wrote, with its numbers. name: of the cache."""
    given, written = (
        look.model.begun(look.trace.tokens),
        look.model.tokenizer.named(one.writing.ids),
    )
    total = sum(layer.nbytes for layer in one.writing.steps[-1].kept.values())
    return Panel(
        f"prediction-evict-{name}",
        below=[
            f"**{name[0].upper()}{name[1:]}**",
            partial(so_far, given, written),
            f"| measured | |\n|---|--:|\n"
            f"| perplexity of the first text with this cache | {_perplexity(one.of_whole)} |\n"
            f"| perplexity of this text with everything kept | {_perplexity(one.of_own)} |\n"
            f"| bytes kept at the end | {total:,} |",
        ],
    )


def _perplexity(logs: np.ndarray) -> str:
    value = float(np.exp(-logs.mean()))
    return f"**{value:,.2f}**" if value < 1e6 else "**over a million**"


def _won_back(caches: tuple[Shorter, ...]) -> str:
    """What the numbers say of the first tokens."""
    whole, window, both = (float(one.of_whole.mean()) for one in caches)
    means = [signed(f"{round(mean, 3) + 0.0:.3f}") for mean in (whole, window, both)]
    first = counted(caches[2].eviction.first, "first token")
    sentence = (
        f"Mean log-probability of the first text: {means[0]} with everything kept, {means[1]} with the "
        f"window alone, {means[2]} with {first} kept as well. "
    )
    lost, won = whole - window, both - window
    if lost < 0.05:
        return (
            sentence
            + "The window alone loses next to nothing here: a shorter one, or a longer text, shows more."
        )
    back = min(max(won / lost, 0.0), 1.0)
    return f"{sentence}Keeping {first} wins back {back:.0%} of what the window loses."
