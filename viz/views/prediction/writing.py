"""What the model writes: in the background, with a key–value cache, shown while it grows, with the time of
each step."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.cost.timing import machine
from model.analysis.tokens.live_writing import Choice, GrowingRows, Writing, live_writing
from model.analysis.tokens.prediction import Sampling
from model.serving.engine import Request
from model.trace.blocks import block_of
from model.trace.records import Token
from viz.elements.one_of import one_step
from viz.elements.plot import plot
from viz.figures.curves import TokenLine, token_lines
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import sublayer_name
from viz.notation.numbers import counted, difference
from viz.notation.theme import KEY, MASKED, WEIGHT, rgba
from viz.shell.background import Offer, Passes, PassesOf, is_stopped, run_or_offer
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.state.session import current
from viz.views.prediction.next_token import sampling_controls

SHOWN = 160  # tokens of the text so far: the end of a long one
_STYLE = "margin:0; font-size:1.15rem; line-height:1.8; overflow-wrap:anywhere"


def growing(seen: Look, tokens: tuple[Token, ...], run: Passes[Writing]) -> None:
    """What is known of a run under way: its text and, of the chosen head, its matrix."""
    found = run.found
    if found is None or not found.steps:
        return
    tokenizer = seen.model.tokenizer
    given = seen.model.begun(tokens)
    new = tokenizer.named(found.ids)
    so_far(given, new)
    _matrix(seen, found.rows, tokens, (*given, *new))


def so_far(given: Sequence[Token], new: Sequence[Token]) -> None:
    """The given text, what was written after it marked, and its last token underlined."""
    st.html(marked_text(given, new))


def marked_text(given: Sequence[Token], new: Sequence[Token]) -> str:
    """The same as HTML. Words of a closed list carry no spaces of their own, so they get some."""
    spaced = not any(token.raw for token in (*given, *new))
    shown = max(SHOWN - len(new), 1)
    start = "… " if len(given) > shown else ""
    before = " " * (spaced and len(new) > 1)
    mark = f"background:{rgba(WEIGHT, 0.22)};color:inherit;border-radius:3px"
    return (
        f'<p style="{_STYLE}">{start}{_joined(given[-shown:], spaced)}{" " * spaced}'
        f'<mark style="{mark}">{_joined(new[:-1], spaced)}{before}'
        f"<b><u>{_joined(new[-1:], spaced)}</u></b></mark></p>"
    )


def _matrix(
    seen: Look, rows: GrowingRows, source: Sequence[Token], written: Sequence[Token]
) -> None:
    """The rows so far of the chosen layer and head; of the first layer where the chosen one has none."""
    names = [name for name in seen.model.attention_names if name.startswith("decoder")]
    name = seen.place if seen.place in names else names[0]
    read = source if name.endswith("cross") else written
    if rows.is_full or block_of(len(written), len(read)) != (1, 1):
        st.caption("The matrix of so long a text is drawn when the text is written.")
        return
    weights = rows.weights(name, current().head)
    if weights is None:
        return
    queries, keys = weights.shape
    future = None if name.endswith("cross") else ~np.tri(queries, keys, dtype=bool)
    figure = heatmap(
        weights,
        rows=Axis("query", [token.text for token in written[:queries]]),
        columns=Axis("key", [token.text for token in read[:keys]]),
        quantity="weight",
        blocked=future,
        words=(),
        square=True,
    )
    plot(figure, "prediction-growing")
    head = min(current().head, seen.model.layer(name).heads - 1)
    st.caption(f"{sublayer_name(name)}, head {head}: each written token adds a row.")


def _joined(tokens: Sequence[Token], spaced: bool) -> str:
    return (" " if spaced else "").join(_readable(token.text) for token in tokens)


def _readable(text: str) -> str:
    """A token inside running text: its leading space is a space, what cannot be seen is spelled."""
    if text.startswith(" ") and text.strip():
        return " " + html.escape(token_label(text[1:]))
    return html.escape(token_label(text))


LENGTHS = (16, 32, 64, 128)
LIKELIEST, DRAW = "the most likely token", "a token drawn at random"


@dataclass(frozen=True)
class Asked:
    """One text to be written. compared: each step is run without the cache too."""

    request: Request
    choice: Choice
    steps: int
    compared: bool = False


class WritingRun(Passes[Writing]):
    """A text under way or written."""


@st.cache_resource
def runs() -> PassesOf[Asked, WritingRun]:
    """The texts that this process writes, shared by all visitors."""
    return PassesOf(WritingRun)


def room(seen: Look) -> int:
    """Steps that the model's context has room for."""
    return seen.model.config.n_ctx - len(seen.model.begun(seen.trace.tokens)) + 1


def choice_of(seen: Look, *, draws: bool) -> Choice:
    """The likeliest token, or one drawn with a seed under the reader's temperature, top-k and top-p."""
    if not draws:
        return Choice(Sampling())
    with st.popover("Temperature, top-k, top-p and seed"):
        sampling = sampling_controls(seen.model.config.d_vocab)
        seed = st.number_input("Seed", 0, 9_999, value=0, step=1, key="prediction-seed",
                               bind="query-params")  # fmt: skip
    return Choice(sampling, int(seed))


def tokens_to_write(seen: Look) -> int:
    """How many tokens are written: no more than the context has room for."""
    asked = st.select_slider(
        "Tokens to write", LENGTHS, key="prediction-length", bind="query-params"
    )
    return min(int(asked), room(seen))


def writing(seen: Look, choice: Choice, steps: int, *, compared: bool = False) -> Writing | None:
    """The text once it is written, or as far as it was before it was stopped; the text so far and the growing
    matrix while it is under way."""
    model, tokens = seen.model, seen.trace.tokens
    weights = model.parameter_count
    passes = steps * (len(tokens) + steps) if compared else len(tokens) + steps
    twice = ", each with the cache and without it" if compared else ""
    offer = Offer(
        "prediction-compared" if compared else "prediction-writing",
        f"The model writes {counted(steps, 'token')}{twice}.",
        "Measure" if compared else "Write",
        "tokens",
        "written",
        steps,
        passes * weights,
    )

    def work(run: WritingRun) -> Iterator[Writing]:
        return live_writing(model, tokens, choice, steps=steps, compared=compared, turn=run.turn)

    asked = Asked(seen.request, choice, steps, compared)
    run = run_or_offer(runs(), asked, work, offer, partial(growing, seen, tokens))
    if run is None or not (run.ended.is_set() or is_stopped(offer, asked)):
        return None
    return run.found


def written_to_step(
    seen: Look,
    found: Writing,
    steps: int,
    key: str,
    where: DeltaGenerator,
    *,
    first: int = 1,
) -> tuple[int, ...]:
    """The ids written up to the step that the reader chooses there.

    key: of the step. first: the step at which the view opens.
    """
    context, last = seen.model.config.n_ctx, len(found.steps)
    with where:
        step = _step(seen, key, last, first)
    if last < found.total and found.done == found.total:
        st.info(f"The model ended its text at step {last}.")
    elif step == last == steps == room(seen):
        st.info(f"The text now fills the model's context of {context:,} tokens.")
    return found.ids[:step]


def request_after(seen: Look, ids: tuple[int, ...]) -> Request:
    """The pass over the text and what was written after it."""
    target = "" if seen.model.config.shape == "encoder-decoder" else None
    return replace(seen.request, target=target, continued=ids)


def _step(seen: Look, key: str, last: int, first: int) -> int:
    """The step shown, from 1; it starts again whenever the text or the model is another."""
    given = f"{key}-of"
    if st.session_state.get(given) != seen.request or key not in st.session_state:
        st.session_state[given] = seen.request
        st.session_state[key] = min(first, last)
    if last <= 1:
        return 1
    boxes = st.columns([2, 1, 1], vertical_alignment="bottom")
    return one_step(key, last, boxes, partial(_go, key), key)


def _go(key: str, by: int) -> None:
    st.session_state[key] += by


WITH, WITHOUT = "with the cache", "without it"


def times(seen: Look, choice: Choice, count: int) -> None:
    """Both times of each step, and how far their logits are apart."""
    found = writing(seen, choice, count, compared=True)
    if found is None or not found.steps:
        return
    read = [step.read for step in found.steps]
    kept = [1_000 * step.seconds for step in found.steps]
    again = [1_000 * (step.without or 0.0) for step in found.steps]
    tokens = [one.text for one in seen.model.tokenizer.named(found.ids)]
    lines = (TokenLine(WITHOUT, again, MASKED, "dash"), TokenLine(WITH, kept, KEY))
    figure = token_lines(tokens, lines, unit="milliseconds of the step", zero=True)
    chart(figure, "prediction-step-times")
    st.caption(_in_words(found, kept, again))
    columns = {
        "written": list(map(token_label, tokens)),
        "tokens read by then": read,
        "computed with the cache": [step.new for step in found.steps],
        f"{WITH}, ms": kept,
        f"{WITHOUT}, ms": again,
        "largest difference of logits": [step.apart for step in found.steps],
    }
    formats = {"largest difference of logits": "%.1e"}
    table(columns, "prediction-step-times", decimals=2, formats=formats)


def _in_words(found: Writing, kept: list[float], again: list[float]) -> str:
    apart = max(step.apart or 0.0 for step in found.steps)
    said = (
        f"Check: both ways give the same logits; over {counted(len(kept), 'step')} they differ by at most "
        f"{difference(apart)}. "
    )
    if len(kept) > 1:
        said += (
            f"The first step reads the whole text in both. The {counted(len(kept) - 1, 'step')} after it "
            f"take {sum(kept[1:]):,.0f} ms with the cache and {sum(again[1:]):,.0f} ms without it. "
        )
    return said + plain(
        f"Each pass ran once, on {machine()}, which others may be using, so single times vary. Waiting for "
        "a turn is not counted."
    )
