"""The key–value cache while the model writes: what is kept and computed, why that is right, and a cache of
limited size."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
    Choice,
    Shorter,
    ShorterCaches,
    WrittenToken,
    shorter_caches,
)
from model.nn.places import Place
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.curves import TokenLine, token_lines
from viz.figures.diagrams import staircase
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.names import SUBLAYERS, sublayer_name
from viz.notation.numbers import counted, difference, number, signed
from viz.notation.theme import HEADS, KEY
from viz.shell.background import Offer, Passes, PassesOf, run_or_offer
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, traced
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.prediction.writing import (
    DRAW,
    LIKELIEST,
    choice_of,
    request_after,
    so_far,
    times,
    tokens_to_write,
    writing,
    written_to_step,
)

FIRST = 5  # the step at which the view opens: the staircase is seen


def kept(seen: Look) -> None:
    """The staircase of the steps so far, the numbers of the last one, and the proof."""
    pictures = st.container()
    how, where = st.columns(2, gap="large", vertical_alignment="bottom")
    with how:
        draws = one_of("At each step, take", (LIKELIEST, DRAW), "prediction-kept-how") == DRAW
        choice = choice_of(seen, draws=draws)
    with where:
        count = tokens_to_write(seen)
    with pictures:
        found = writing(seen, choice, count)
    if found is None or not found.steps:
        return
    with pictures:
        picture, words = st.columns([3, 2], gap="large")
    with picture:
        stairs, below = st.container(), st.container()
        ids = written_to_step(seen, found, count, "prediction-kept-step", below, first=FIRST)
    run = traced(request_after(seen, ids[:-1]))
    read = run.tokens_of("decoder")
    source = len(run.tokens) if run.target_tokens else 0
    windows = windows_of(run)
    steps = writing_steps(seen.model.config, windows, len(read) - len(ids) + 1, len(ids), source)
    there = [keys_read(windows, step.tokens) for step in steps]
    windowed = min(there[-1]) < len(read)
    with stairs:
        chart(staircase(steps, [token.text for token in read], there), "prediction-kept")
    with picture:
        _scores(steps, source, windowed)
    with words:
        _say_new(seen, run, steps, source, windowed)
        if len(ids) > 1:
            _say_why(apart(traced(request_after(seen, ids[:-2])), run), steps[-1])
    st.markdown("**What is kept after this step**")
    written = found.steps[len(ids) - 1]
    if any(one.rebuilds(run.find(name)) for name, one in written.kept.items()):
        _latent_bytes(run, written, seen.model.precision.itemsize)
    else:
        _bytes(seen, run, steps[-1], written, source)
    st.markdown("**What a step takes, with the cache and without it**")
    times(seen, choice, count)


def _say_new(
    seen: Look, run: Trace, steps: tuple[WritingStep, ...], source: int, windowed: bool
) -> None:
    """What the last step computes, and what it reads."""
    config, last = seen.model.config, steps[-1]
    look_for(
        "Each row is a step. The model computes keys and values of the **new token** alone; those of "
        "the tokens before it are kept. Without the key–value (KV) cache it computes all of them again."
        + " A layer with a sliding window also drops the tokens that it hides."
        * windowed
    )
    if len(steps) == 1:
        st.markdown(
            f"Step 1 reads {counted(last.tokens, 'token')}: nothing is kept yet. Go to step 2."
        )
        return
    token = bold_token(run.tokens_of("decoder")[-1].text, last.tokens - 1)
    against = counted(last.tokens, "key")
    if windowed:
        against = _of_windows(keys_read(windows_of(run), last.tokens), last.tokens)
    if source:
        against += f", and against the {counted(source, 'key')} of the source in cross-attention"
    shared = f" ({config.key_head_count} of keys and values)" if config.groups_keys else ""
    st.markdown(
        f"Step {len(steps)} reads {token}. In each of {counted(config.decoder_layers, 'layer')} with "
        f"{counted(config.heads, 'head')}{shared}, its row of Q is multiplied by {against}: one row "
        "of scores a head. The rows of earlier tokens are not needed: the next token is predicted from "
        "the last row."
    )


def _of_windows(keys: list[int], tokens: int) -> str:
    """How many keys are there in layers with a sliding window and in the others."""
    fewer = [count for count in keys if count < tokens]
    others = len(keys) - len(fewer)
    said = f"{fewer[0]} keys in {counted(len(fewer), 'layer')} with a sliding window"
    return said + f" and {counted(tokens, 'key')} in {counted(others, 'other')}" * bool(others)


def _say_why(found: Apart, last: WritingStep) -> None:
    """Whether a longer text leaves earlier keys and values as they were: measured in two passes."""
    measured = (
        f"Measured: the pass over {last.tokens - 1} tokens and the pass over {last.tokens} share "
        f"{found.numbers:,} numbers in keys and values. The largest is "
        f"{number(found.largest)}. "
        + (
            f"They differ by at most {difference(found.difference)}."
            if found.difference
            else "Every one is the same, to the last bit."
        )
    )
    if found.agree:
        st.success(
            "They may be kept: no token attends to a later one, so a new token changes no earlier "
            f"key or value. {measured}"
        )
    else:
        st.warning(f"They may **not** be kept here: a new token changes them. {measured}")


def _scores(steps: tuple[WritingStep, ...], source: int, windowed: bool) -> None:
    """Scores with the cache and without it, at the last step and in all."""
    last, count = steps[-1], len(steps)
    cached, uncached = sum(one.cached for one in steps), sum(one.uncached for one in steps)
    keys = "(n + m)" if source else "n"
    with_all, without = f"new tokens · {keys}", f"n · {keys}"
    st.markdown(
        f"| scores, all layers and heads | with the cache | without it |\n|---|--:|--:|\n"
        f"| of each head | {with_all} | {without} |\n"
        f"| at step {count}, n = {last.tokens} | {last.cached:,} | {last.uncached:,} |\n"
        f"| in {counted(count, 'step')} | {cached:,} | {uncached:,} |"
    )
    also = (
        f" m = {source} is the number of source tokens; the encoder's own scores are not counted."
        * bool(source)
    )
    also += (
        " A layer with a sliding window keeps at most as many keys as it is wide: with the cache, a "
        "token then never has more scores there than the window is wide." * windowed
    )
    st.caption(
        "All products of a query and a key are counted, even those that the mask then hides. In the "
        f"first step every token is new.{also}"
    )
    columns = {
        "tokens": [one.tokens for one in steps],
        "kept": [one.kept for one in steps],
        "computed now": [one.new for one in steps],
        "scores with the cache": [one.cached for one in steps],
        "scores without it": [one.uncached for one in steps],
    }
    table({"step": list(range(1, count + 1))} | columns, "prediction-kept")


_LATENT = (
    r"\text{layers} \cdot (d_\text{latent} + d_\text{rotated}) \cdot n \cdot \text{bytes} = "
    r"%d \cdot (%d + %d) \cdot %d \cdot %d = "
)


def _latent_bytes(run: Trace, written: WrittenToken, width: int) -> None:
    """The bytes of a cache of latent vectors, from which keys and values are rebuilt (DeepSeek-V2, 2024)."""
    name, first = next(iter(written.kept.items()))
    (_, latent), (_, turned) = first.sizes
    vectors = run.find(name).vectors[1:]
    keys, values = (f"{len(each)} × {each.shape[-1]}" for each in vectors)
    held = sum(one.nbytes for one in written.kept.values())
    plain = width * first.tokens * sum(len(each) * each.shape[-1] for each in vectors)
    numbers = len(written.kept), latent, turned, first.tokens, width
    st.latex(_LATENT % numbers + f"{held:,}".replace(",", "{,}"))
    st.caption(
        f"Check: the tensors that the running model keeps take {held:,} bytes. Each layer keeps of every "
        f"token one **latent vector** of {latent} numbers and one rotated key of {turned}, which all heads "
        f"share. At each step it rebuilds the keys ({keys} numbers a token) and values ({values}) of all "
        f"tokens from them. Kept themselves, these would take {plain * len(written.kept):,} bytes."
    )


def _bytes(seen: Look, run: Trace, last: WritingStep, written: WrittenToken, source: int) -> None:
    """The bytes of the cache: the formula with the model's numbers, beside the tensors that are kept."""
    config, found = seen.model.config, written.kept
    tokens = rf"({last.tokens} + {source})" if source else str(last.tokens)
    width = seen.model.precision.itemsize
    total = width * key_value_cache(config, lengths_of(run))
    st.latex(
        r"2 \cdot \text{layers} \cdot \text{key heads} \cdot d_k \cdot "
        rf"{'(n + m)' if source else 'n'} \cdot \text{{bytes}} = 2 \cdot {config.decoder_layers} \cdot "
        rf"{config.key_head_count} \cdot {config.head_width} \cdot {tokens} \cdot {width} = "
        + f"{total:,}".replace(",", "{,}")
    )
    sizes = {SUBLAYERS[Place.named(name).kind]: one.nbytes for name, one in found.items()}
    held = sum(one.nbytes for one in found.values())
    each = " and ".join(f"{size:,} in the {kind}" for kind, size in sizes.items())
    alike = len({one.nbytes for one in found.values()}) == len(sizes)
    said = (
        f"Check: the tensors of keys and values that the running model keeps take {held:,} bytes"
        + f": {each} of each of {counted(config.decoder_layers, 'layer')}" * alike
        + f", {width} bytes a number."
    )
    if any(one.tokens < last.tokens for name, one in found.items() if not name.endswith("cross")):
        said += (
            " That is less than the formula gives: layers with a sliding window drop what the next token "
            "cannot read."
        )
    elif held != total:
        said += " The formula differs: here keys and values are not as wide as its numbers say."
    if config.groups_keys:
        group = config.heads // config.key_head_count
        said += (
            f" {group} heads share one head of keys and values; with one for each head the cache would "
            f"take {group * held:,} bytes."
        )
    if source:
        said += (
            f" The keys and values of the {source} source tokens, for cross-attention, are kept whole from "
            "the first step: the encoder has read its text by then, and nothing is added to it."
        )
    st.caption(said)
    stacks = 2 if source else 1
    columns = {
        "sub-layer": [sublayer_name(name, stacks=stacks) for name in found],
        "key heads": [config.key_head_count] * len(found),
        "tokens kept": [one.tokens for one in found.values()],
        "bytes of keys and values": [one.nbytes for one in found.values()],
    }
    table(columns, "prediction-kept-bytes")


WINDOWS = (2, 4, 8, 16, 32, 64, 128)
FIRSTS = (1, 2, 4, 8)
PERPLEXITY = r"\exp\left(-\tfrac{1}{n} \sum_t \ln p(y_t \mid \text{what is kept})\right)"
_LOOKS = ((KEY, "solid"), (HEADS[0], "dash"), (HEADS[2], "dot"))  # seen on a light and a dark page


@dataclass(frozen=True)
class Asked:
    """One comparison."""

    request: Request
    choice: Choice
    steps: int
    window: int
    first: int


class ShorterRun(Passes[ShorterCaches]):
    """A comparison under way or ended."""


@st.cache_resource
def runs() -> PassesOf[Asked, ShorterRun]:
    """The comparisons of this process, shared by all visitors."""
    return PassesOf(ShorterRun)


def shorter_cache(seen: Look) -> None:
    """How probable the text is with each cache, and the texts side by side."""
    picture = st.container()
    asked = _controls(seen)
    with picture:
        found = _found(seen, asked)
    if found is None:
        return
    with picture:
        _lines(seen, asked, found)
        look_for(
            "Each line is the same text, the one written with everything kept, as the model reads it with "
            "one of the caches. Where a line falls, the model no longer expects what it wrote itself."
        )
        _texts(seen, found)
    _say(found)
    st.latex(PERPLEXITY)
    st.caption(
        "Tokens keep the positions at which they were read, even when those before them are dropped. (The "
        "method that made this known, StreamingLLM, numbers the kept tokens anew.) The given text is read "
        "under the same rule: each of its tokens attends to what is kept for it."
    )


def _controls(seen: Look) -> Asked:
    how, length, wide, first = st.columns([2, 2, 2, 1.4], gap="medium", vertical_alignment="bottom")
    with how:
        draws = one_of("At each step, take", (LIKELIEST, DRAW), "prediction-evict-how") == DRAW
        choice = choice_of(seen, draws=draws)
    with length:
        steps = tokens_to_write(seen)
    window = wide.select_slider(
        "Window: the last tokens that are kept",
        WINDOWS,
        value=8,
        key="prediction-window",
        bind="query-params",
        help="Each token attends to at most this many tokens, itself included.",
    )
    firsts = first.select_slider(
        "First tokens kept", FIRSTS, value=1, key="prediction-first", bind="query-params"
    )
    return Asked(seen.request, choice, steps, int(window), int(firsts))


def _found(seen: Look, asked: Asked) -> tuple[Shorter, ...] | None:
    model, tokens = seen.model, seen.trace.tokens
    weights = model.parameter_count
    total = 3 * asked.steps
    offer = Offer(
        "prediction-evict",
        f"The model writes {counted(asked.steps, 'token')} with each of three caches.",
        "Write all three",
        "tokens",
        "written",
        total,
        (total + 9 * len(tokens)) * weights,
    )

    def work(run: ShorterRun) -> Iterator[ShorterCaches]:
        return shorter_caches(
            model,
            tokens,
            asked.choice,
            steps=asked.steps,
            window=asked.window,
            first=asked.first,
            turn=run.turn,
        )

    run = run_or_offer(runs(), asked, work, offer)
    return run.found.found if run is not None and run.complete and run.found else None


def names_of(found: tuple[Shorter, ...]) -> list[str]:
    """The three caches in words."""
    window, first = found[2].eviction.window, found[2].eviction.first
    last = f"the last {window}"
    return ["everything kept", last, f"{last} and the first" + f" {first}" * (first > 1)]


def _lines(seen: Look, asked: Asked, found: tuple[Shorter, ...]) -> None:
    named = seen.model.tokenizer.named(found[0].writing.ids)
    tokens = [token.text for token in named]
    lines = [
        TokenLine(name, one.of_whole.tolist(), colour, dash)
        for name, one, (colour, dash) in zip(names_of(found), found, _LOOKS, strict=True)
    ]
    full = asked.window - len(
        seen.model.begun(seen.trace.tokens)
    )  # the first token that is predicted without token 0
    mark = full + 0.5 if 0 <= full < len(tokens) else None
    figure = token_lines(tokens, lines, unit="log-probability of the token", mark=mark)
    chart(figure, "prediction-evict")
    if mark is not None:
        st.caption("From the dotted line on the window no longer holds the first token.")
    columns: dict[str, object] = {"token": list(map(token_label, tokens))}
    columns |= {one.name: one.values for one in lines}
    table(columns, "prediction-evict", index="written")


def _texts(seen: Look, found: tuple[Shorter, ...]) -> None:
    """The three texts side by side, each with its numbers."""
    given = seen.model.begun(seen.trace.tokens)
    for box, name, one in zip(st.columns(3, gap="medium"), names_of(found), found, strict=True):
        with box:
            st.markdown(f"**{name[0].upper()}{name[1:]}**")
            so_far(given, seen.model.tokenizer.named(one.writing.ids))
            kept = one.writing.steps[-1].kept
            held = sum(layer.nbytes for layer in kept.values())
            st.markdown(
                f"| measured | |\n|---|--:|\n"
                f"| perplexity of the first text with this cache | {_perplexity(one.of_whole)} |\n"
                f"| perplexity of this text with everything kept | {_perplexity(one.of_own)} |\n"
                f"| bytes kept at the end | {held:,} |"
            )


def _perplexity(logs: np.ndarray) -> str:
    value = float(np.exp(-logs.mean()))
    return f"**{value:,.2f}**" if value < 1e6 else "**over a million**"


def _say(found: tuple[Shorter, ...]) -> None:
    """What the numbers say of the first tokens."""
    whole, window, both = (float(one.of_whole.mean()) for one in found)
    means = [signed(f"{round(mean, 3) + 0.0:.3f}") for mean in (whole, window, both)]
    first = counted(found[2].eviction.first, "first token")
    said = (
        f"Mean log-probability of the first text: {means[0]} with everything kept, {means[1]} with the "
        f"window alone, {means[2]} with {first} kept as well. "
    )
    lost, won = whole - window, both - window
    if lost < 0.05:
        said += "The window alone loses next to nothing here: a shorter one, or a longer text, shows more."
    else:
        back = min(max(won / lost, 0.0), 1.0)
        said += f"Keeping {first} wins back {back:.0%} of what the window loses."
    st.markdown(said)
    view = replace(current(), show="Why the first token?")
    view_link("pages/all_heads.py", "Why the first token? →", view)
