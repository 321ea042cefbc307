"""What the model writes up to a step of the reader's, for the views that look at a step."""

from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.tokens.sampling import Choice, written
from model.serving.engine import Request
from viz.elements.one_of import one_step
from viz.state.held import traced
from viz.state.look import Look
from viz.views.prediction.sampling import sampling_controls

STEPS = 16
LIKELIEST, DRAW = "the most likely token", "a token drawn at random"


def room(seen: Look) -> int:
    """Steps that the model's context has room for."""
    read = 1 if seen.model.config.shape == "encoder-decoder" else len(seen.trace.tokens)
    return seen.model.config.n_ctx - read + 1


def drawn(seen: Look) -> Choice:
    """Drawn with a seed under the reader's temperature, top-k and top-p."""
    with st.popover("Temperature, top-k, top-p and seed"):
        sampling = sampling_controls(seen.model.config.d_vocab)
        seed = st.number_input("Seed", 0, 9_999, value=0, step=1, key="prediction-seed",
                               bind="query-params")  # fmt: skip
    return Choice(sampling, int(seed))


def written_to_step(
    seen: Look, choice: Choice, key: str, where: DeltaGenerator, *, first: int = 1, held: int = 1
) -> tuple[int, ...]:
    """The ids written up to the step that the reader chooses there.

    key: of the step. first: the step at which the view opens. held: the traces of so many last steps are
    needed, so each is passed only once.
    """
    context, last = seen.model.config.n_ctx, min(STEPS, room(seen))
    with where:
        step = _step(seen, key, last, first)
    ids = _written(seen, choice, step, held)
    if len(ids) < step:
        st.info(f"The model ended its text at step {len(ids)}.")
    elif step == last < STEPS:
        st.info(f"The text now fills the model's context of {context:,} tokens.")
    return ids


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


def _written(seen: Look, choice: Choice, steps: int, held: int) -> tuple[int, ...]:
    """The ids of the first steps, one pass for each; what was chosen before is remembered."""

    def choose(ids: tuple[int, ...]) -> int:
        request = request_after(seen, ids)
        chosen = _next(request, choice)
        if len(ids) >= steps - held:
            traced(request)
        return chosen

    with st.spinner("The model is writing. Choose another step to stop it.", show_time=True):
        return written(choose, steps=steps, end=seen.model.tokenizer.end)


@lru_cache(maxsize=4096)
def _next(request: Request, choice: Choice) -> int:
    prediction = traced(request, passing=True).require_prediction()
    return choice.of(prediction.after(-1), len(request.continued))
