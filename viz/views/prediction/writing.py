"""What the model writes: in the background, with a key–value cache, shown while it grows; for the views that
look at one of its steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.tokens.live_writing import Writing, live_writing
from model.analysis.tokens.prediction import Sampling
from model.analysis.tokens.sampling import Choice
from model.serving.engine import Request
from viz.elements.one_of import one_step
from viz.notation.numbers import counted
from viz.shell.background import Offer, Passes, PassesOf, is_stopped, run_or_offer
from viz.state.look import Look
from viz.views.prediction.growing import growing
from viz.views.prediction.sampling import sampling_controls

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
