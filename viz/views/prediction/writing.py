"""The model writes: in the background, with a key–value cache, shown while it grows; and the time of each
step."""

import html
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

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
from viz.shell.background import Offer, Passes, is_stopped, passes_or_offer
from viz.shell.panel import Panel, Table, below_controls
from viz.state.look import Look
from viz.state.session import current
from viz.views.prediction.next_token import sampling_controls

SHOWN = 160  # tokens of the text so far: the end of a long one
_STYLE = "margin:0; font-size:1.15rem; line-height:1.8; overflow-wrap:anywhere"


def growing(look: Look, tokens: tuple[Token, ...], run: Passes[Writing]) -> None:
    """A run under way: its text so far and, of the chosen head, its matrix."""
    text = run.found
    if text is None or not text.steps:
        return
    given, new = look.model.begun(tokens), look.model.tokenizer.named(text.ids)
    so_far(given, new)
    _matrix(look, text.rows, tokens, (*given, *new))


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
    look: Look, rows: GrowingRows, source: Sequence[Token], written: Sequence[Token]
) -> None:
    """The rows so far of the chosen layer and head; of the first layer where the chosen one has none."""
    names = [name for name in look.model.attention_names if name.startswith("decoder")]
    name = look.place if look.place in names else names[0]
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
    head = min(current().head, look.model.layer(name).heads - 1)
    st.caption(f"{sublayer_name(name)}, head {head}: each written token adds a row.")


def _joined(tokens: Sequence[Token], spaced: bool) -> str:
    """Tokens as running text: a leading space is a space, what cannot be seen is spelled."""
    texts = [token.text for token in tokens]
    return (" " if spaced else "").join(
        " " + html.escape(token_label(text[1:]))
        if text.startswith(" ") and text.strip()
        else html.escape(token_label(text))
        for text in texts
    )


LENGTHS = (16, 32, 64, 128)
LIKELIEST, DRAW = "the most likely token", "a token drawn at random"


def room_of(look: Look) -> int:
    """Steps that the model's context has room for."""
    return look.model.config.n_ctx - len(look.model.begun(look.trace.tokens)) + 1


def choice_of(look: Look, *, draws: bool) -> Choice:
    """The likeliest token, or one drawn with a seed under the reader's temperature, top-k and top-p."""
    if not draws:
        return Choice(Sampling())
    with st.popover("Temperature, top-k, top-p and seed"):
        sampling = sampling_controls(look.model.config.d_vocab)
        seed = st.number_input("Seed", 0, 9_999, value=0, step=1, key="prediction-seed",
                               bind="query-params")  # fmt: skip
    return Choice(sampling, int(seed))


def tokens_to_write(look: Look) -> int:
    """How many tokens are written: no more than the context has room for."""
    asked = st.select_slider(
        "Tokens to write", LENGTHS, key="prediction-length", bind="query-params"
    )
    return min(int(asked), room_of(look))


def writing(look: Look, choice: Choice, steps: int, *, compared: bool = False) -> Writing | None:
    """The text once it is written, or as far as it was before it was stopped, from its first token on; the
    text so far and the growing matrix while it is under way.

    Args:
        look: the text that is written on.
        choice: how a token is chosen at each step.
        steps: tokens to write.
        compared: whether each step is run without the cache too.
    """
    model, tokens = look.model, look.trace.tokens
    passes = steps * (len(tokens) + steps) if compared else len(tokens) + steps
    twice = ", each with the cache and without it" if compared else ""
    offer = Offer(
        "prediction-compared" if compared else "prediction-writing",
        f"The model writes {counted(steps, 'token')}{twice}.",
        "Measure" if compared else "Write",
        "tokens",
        "written",
        steps,
        passes * model.parameter_count,
    )
    key = key_of(look.request, choice, steps, compared=compared)
    with below_controls():
        run = passes_or_offer(
            key,
            lambda run: live_writing(
                model, tokens, choice, steps=steps, compared=compared, turn=run.turn
            ),
            offer,
            partial(growing, look, tokens),
        )
    if run is None or not (run.ended.is_set() or is_stopped(offer, key)):
        return None
    return run.found if run.found is not None and run.found.steps else None


def key_of(request: Request, choice: Choice, steps: int, *, compared: bool = False) -> Hashable:
    """What the passes of a text are known by."""
    return "writing", request, choice, steps, compared


def choose_step(look: Look, text: Writing, key: str, first: int = 1) -> int:
    """The step shown, from 1; it is `first` again whenever the text or the model is another.

    key: of the session state, which holds the step.
    """
    given, last = f"{key}-of", len(text.steps)
    if st.session_state.get(given) != look.request or key not in st.session_state:
        st.session_state[given] = look.request
        st.session_state[key] = min(first, last)
    return one_step(key, last, partial(_go, key), key) if last > 1 else 1


def _go(key: str, by: int) -> None:
    st.session_state[key] += by


def say_end(look: Look, text: Writing, step: int, steps: int) -> None:
    """Says why no step follows. steps: how many were asked for."""
    last = len(text.steps)
    if last < text.total and text.done == text.total:
        st.info(f"The model ended its text at step {last}.")
    elif step == last == steps == room_of(look):
        n_ctx = look.model.config.n_ctx
        st.info(f"The text now fills the model's context of {n_ctx:,} tokens.")


def request_after(look: Look, ids: tuple[int, ...]) -> Request:
    """The pass over the text and what was written after it."""
    target = "" if look.model.config.shape == "encoder-decoder" else None
    return replace(look.request, target=target, continued=ids)


WITH, WITHOUT = "with the cache", "without it"


def step_times(look: Look, choice: Choice, count: int) -> Panel:
    """Both times of each step, and how far their logits are apart. count: tokens to write."""
    text = writing(look, choice, count, compared=True)
    if text is None:
        return Panel("prediction-step-times")
    cached = [1_000 * step.seconds for step in text.steps]
    again = [1_000 * (step.without or 0.0) for step in text.steps]
    tokens = [token.text for token in look.model.tokenizer.named(text.ids)]
    lines = (TokenLine(WITHOUT, again, MASKED, "dash"), TokenLine(WITH, cached, KEY))
    apart = max(step.apart or 0.0 for step in text.steps)
    check = (
        f"Check: both ways give the same logits; over {counted(len(cached), 'step')} they differ by at most "
        f"{difference(apart)}. "
    )
    if len(cached) > 1:
        check += (
            f"The first step reads the whole text in both. The {counted(len(cached) - 1, 'step')} after it "
            f"take {sum(cached[1:]):,.0f} ms with the cache and {sum(again[1:]):,.0f} ms without it. "
        )
    return Panel(
        "prediction-step-times",
        picture=token_lines(tokens, lines, unit="milliseconds of the step", zero=True),
        check=check
        + plain(
            f"Each pass ran once, on {machine()}, which others may be using, so single times vary. Waiting "
            "for a turn is not counted."
        ),
        table=Table(
            {
                "written": list(map(token_label, tokens)),
                "tokens read by then": [step.read for step in text.steps],
                "computed with the cache": [step.new for step in text.steps],
                f"{WITH}, ms": cached,
                f"{WITHOUT}, ms": again,
                "largest difference of logits": [step.apart for step in text.steps],
            },
            decimals=2,
            formats={"largest difference of logits": "%.1e"},
        ),
    )
