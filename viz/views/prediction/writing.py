"""The model writes, in the background and with a key–value cache: how probable each token was, what it could
have been, and how it was chosen."""

import html
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.live_writing import Choice, Writing, live_writing
from model.analysis.tokens.prediction import Sampling, log_probabilities
from model.serving.engine import Request
from model.trace.arrays import Array
from model.trace.records import Token
from viz.elements.one_of import one_step
from viz.elements.plot import plot
from viz.figures.bars import WrittenStep, written_steps
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import counted, fixed, significant
from viz.notation.theme import PROBABILITY, rgba
from viz.notation.words import sentences_of
from viz.shell.background import Offer, Passes, is_stopped, passes_or_offer
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced
from viz.state.navigation import HOME, view_link
from viz.state.session import current
from viz.views.prediction.next_token import (
    UNCHANGED,
    bars_of,
    cut_controls,
    divisor_control,
    in_words,
    listed_ids,
    row_of,
)
from viz.views.tokens.chat import offer_chat

say = sentences_of("prediction.writing")

SHOWN = 160  # tokens of the text so far: the end of a long one
_STYLE = "margin:0;font-size:18px;line-height:1.8;overflow-wrap:anywhere"
LENGTHS = (16, 32, 64, 128)
LIKELIEST, DRAW = "the most likely", say("drawn_random")
GREEDY = r"y_t = \mathrm{arg\,max}_i\; p_i(y_1, \ldots, y_{t-1})"
DRAWN = r"y_t \sim p(y_1, \ldots, y_{t-1})"
LISTED = 6  # tokens of the chosen step
RIVALS = 3  # tokens in a column above the written one
_STEP = "prediction-step"  # session state: the step shown, from 1


def token_by_token(look: Look) -> Panel:
    """How probable every written token was, and what the chosen step could have written."""
    ways = (LIKELIEST, DRAW)
    draws = st.selectbox("Take", ways, key="prediction-how", bind="query-params") == DRAW
    choice = choice_of() if draws else Choice(UNCHANGED)
    count = tokens_to_write(look)
    text = writing(look, choice, count)
    if text is None:
        words = say("step_reads_whole")
        return Panel("prediction-writing", look_for=words)
    run = traced(request_after(look, text.ids[:-1]))
    prediction = run.require_prediction()
    rows = prediction.rows(prediction.shape[0] - len(text.ids), prediction.shape[0])
    steps = [_step(look, choice, row, id_) for row, id_ in zip(rows, text.ids, strict=True)]
    unsure = int(np.argmin([step.shares[0] for step in steps]))
    step = choose_step(look, text, 1 + unsure)
    own = log_probabilities(rows)[np.arange(len(rows)), list(text.ids)]
    apart = float(np.abs(own - [one.log_probability for one in text.steps]).max())
    row, id_ = row_of(run, rows[step - 1], choice.sampling), text.ids[step - 1]
    named, error = look.model.tokenizer.named(text.ids), rounding(run, rows)
    alone = Panel(
        "prediction-written",
        picture=written_steps(steps, chosen=step - 1, error=error),
        clicked=lambda number: st.session_state.update({_STEP: number + 1}),
        chosen=step,
        beside=[
            f"**Step {step} could write**",
            bars_of(look, row, "prediction-step-bars", listed_ids(row, LISTED, id_), id_),
            Formula(DRAWN if draws else GREEDY),
            *map(Caption, in_words(choice.sampling, row.logits, row.drawn_error)),
        ],
        check=Check(
            say("check_probabilities_pass", apart=apart),
            apart,
        ),
        table=Table(
            {
                "written": [token_label(token.text) for token in named],
                "probability": np.exp(own),
                "likeliest": [
                    token_label(token.text)
                    for token in look.model.tokenizer.named(rows.argmax(-1).tolist())
                ],
                "log-probability": own,
            },
            index="step",
            formats={"probability": f"%.{significant(error)}g"},
        ),
    )
    given = look.model.decoder_prompt(look.trace.tokens)
    return Panel(
        "prediction-writing",
        look_for=_least_sure(steps[unsure], unsure + 1, drawn=draws),
        below=[
            partial(so_far, given, named, step),
            alone,
            *_end(look, text, count),
            partial(_lead_to_explore, look, (*given, *named)),
            partial(offer_chat, look),
        ],
    )


def _step(look: Look, choice: Choice, logits: Array, id_: int) -> WrittenStep:
    """The written token and its likeliest rivals, in the distribution that it was taken from."""
    shares = choice.sampling.of(logits)
    rivals = [one for one in np.argpartition(-shares, RIVALS + 1)[: RIVALS + 1] if one != id_]
    rivals = sorted(rivals, key=lambda one: -shares[one])[:RIVALS]
    named = look.model.tokenizer.named([id_, *map(int, rivals)])
    return WrittenStep([one.text for one in named], [float(shares[one]) for one in (id_, *rivals)])


def _least_sure(step: WrittenStep, number: int, *, drawn: bool) -> str:
    """Where the model was least sure of what it wrote."""
    (written, *rivals), (share, *others) = step.tokens, step.shares
    words = say("column_step_foot", number=number, written=written, share=share)
    if not rivals or not others[0]:
        return f"{words}."
    rival = f"{bold_token(rivals[0])} had {fixed(others[0], 2)}"
    return f"{words}, {'while' if drawn and others[0] > share else 'and'} {rival}."


def _end(look: Look, text: Writing, steps: int) -> list[Part]:
    """Why no step follows. steps: how many were asked for."""
    last = len(text.steps)
    if last < text.total and text.done == text.total:
        return [Caption(say("model_ended_text", last=last))]
    if last == steps == room_of(look):
        n_ctx = look.model.config.n_ctx
        return [Caption(say("text_now_fills_model", n_ctx=n_ctx))]
    return []


def _lead_to_explore(look: Look, tokens: Sequence[Token]) -> None:
    """A link to the attention of the text with what was written, where it can be typed."""
    text = look.model.tokenizer.decode([token.id for token in tokens if not token.special])
    if look.model.config.shape == "decoder" and len(text) <= TEXT_LIMIT:
        view = replace(current(), text=text, show="")
        view_link(HOME, say("attend_explore_whole"), view)


def growing(look: Look, tokens: tuple[Token, ...], choice: Choice, run: Passes[Writing]) -> None:
    """The text so far of a run under way, and where tokens are taken from the model's own distribution how
    probable each was."""
    if run.found is None or not run.found.steps:
        return
    new = look.model.tokenizer.named(run.found.ids)
    so_far(look.model.decoder_prompt(tokens), new, len(new))
    if choice.sampling == UNCHANGED:
        shares = np.exp([step.log_probability for step in run.found.steps])
        steps = [WrittenStep([one.text], [share]) for one, share in zip(new, shares, strict=True)]
        plot(written_steps(steps, chosen=len(steps) - 1), "prediction-growing")


def so_far(given: Sequence[Token], new: Sequence[Token], step: int) -> None:
    """The given text, and marked after it what was written; the token of the step is underlined."""
    st.html(marked_text(given, new, step))


def marked_text(given: Sequence[Token], new: Sequence[Token], step: int) -> str:
    """The same as HTML. Words of a closed list carry no spaces of their own, so they get some."""
    spaced = not any(token.raw for token in (*given, *new))
    shown = max(SHOWN - len(new), 1)
    start = "… " if len(given) > shown else ""
    gap = " " * spaced
    before, chosen, after = new[: step - 1], new[step - 1 : step], new[step:]
    mark = f"background:{rgba(PROBABILITY, 0.28)};color:inherit;border-radius:3px"
    return (
        f'<p style="{_STYLE}">{start}{_joined(given[-shown:], spaced)}{gap}'
        f'<mark style="{mark}">{_joined(before, spaced)}{gap * bool(before)}'
        f"<b><u>{_joined(chosen, spaced)}</u></b>{gap * bool(after)}{_joined(after, spaced)}</mark></p>"
    )


def _joined(tokens: Sequence[Token], spaced: bool) -> str:
    """Tokens as running text: a leading space is a space, what cannot be seen is spelled."""
    texts = [token.text for token in tokens]
    return (" " if spaced else "").join(
        " " + html.escape(token_label(text[1:]))
        if text.startswith(" ") and text.strip()
        else html.escape(token_label(text))
        for text in texts
    )


def room_of(look: Look) -> int:
    """Steps that the model's context has room for."""
    return look.model.config.n_ctx - len(look.model.decoder_prompt(look.trace.tokens)) + 1


def choice_of() -> Choice:
    """A token drawn with a seed under the reader's temperature, top-k and top-p."""
    with st.popover("Temperature, top-k, top-p"):
        sampling = Sampling(divisor_control(), *cut_controls())
        seed = st.slider("Seed", 0, 99, key="prediction-seed", bind="query-params")
    return Choice(sampling, seed)


def tokens_to_write(look: Look) -> int:
    """How many tokens are written: no more than the context has room for."""
    asked = st.selectbox("Tokens", LENGTHS, key="prediction-length", bind="query-params")
    return min(int(asked), room_of(look))


def writing(look: Look, choice: Choice, steps: int, *, compared: bool = False) -> Writing | None:
    """The text once it is written, or as far as it was before it was stopped, from its first token on; the
    text so far while it is under way.

    Args:
        look: the text that is written on.
        choice: how a token is chosen at each step.
        steps: tokens to write.
        compared: whether each step is run without the cache too.
    """
    model, tokens = look.model, look.trace.tokens
    passes = steps * (len(tokens) + steps) if compared else len(tokens) + steps
    twice = say("cache_without") if compared else ""
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
    run = passes_or_offer(
        key,
        lambda run: live_writing(
            model, tokens, choice, steps=steps, compared=compared, turn=run.turn
        ),
        offer,
        partial(growing, look, tokens, choice),
    )
    if run is None or not (run.ended.is_set() or is_stopped(offer, key)):
        return None
    return run.found if run.found is not None and run.found.steps else None


def key_of(request: Request, choice: Choice, steps: int, *, compared: bool = False) -> Hashable:
    """What the passes of a text are known by."""
    return "writing", request, choice, steps, compared


def choose_step(look: Look, text: Writing, first: int) -> int:
    """The step shown, from 1; it is `first` again whenever what was written is another text."""
    given, last = f"{_STEP}-of", len(text.steps)
    known = look.request, text.ids
    if st.session_state.get(given) != known or _STEP not in st.session_state:
        st.session_state.update({given: known, _STEP: first})
    return one_step(_STEP, last) if last > 1 else 1


def request_after(look: Look, ids: tuple[int, ...]) -> Request:
    """The pass over the text and what was written after it."""
    target = "" if look.model.config.shape == "encoder-decoder" else None
    return replace(look.request, target=target, continued=ids)
