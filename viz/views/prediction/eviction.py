"""A cache of limited size: what dropping earlier tokens does to the text, and why the first ones are kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from model.analysis.tokens.sampling import Choice
from model.analysis.tokens.shorter_caches import Shorter, ShorterCaches, shorter_caches
from model.serving.engine import Request
from viz.elements.one_of import one_of
from viz.figures.curves import TokenLine, token_lines
from viz.notation.labels import token_label
from viz.notation.numbers import counted, signed
from viz.notation.theme import HEADS, KEY
from viz.shell.background import Offer, Passes, PassesOf, run_or_offer
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.prediction.growing import so_far
from viz.views.prediction.writing import DRAW, LIKELIEST, choice_of, tokens_to_write

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
