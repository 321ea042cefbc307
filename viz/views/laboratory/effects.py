"""What a change did to the predictions, beside the unchanged run: one token, or all of them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.run_comparison import divergence_rounding, divergences, losses, ranked, rounding
from model.analysis.tokens.prediction import expectation
from model.trace.records import Token
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.before_after import before_and_after
from viz.figures.next_tokens import next_tokens
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference, nats, settled
from viz.notation.theme import WEIGHT
from viz.shell.pictures import chart, table
from viz.shell.way_out import say_encoder
from viz.state.held import traced
from viz.state.look import Look
from viz.views.laboratory.formulas import DIVERGENCE, LOSS

LISTED = 6


def runs(seen: Look) -> tuple[Trace, Trace]:
    """The unchanged run and the one that is shown; the same one where nothing is changed."""
    return seen.baseline or seen.trace, seen.trace


def next_token_effect(seen: Look) -> None:
    """What the model expects after one token, before and after the change."""
    before, after = runs(seen)
    if before.prediction is None or after.prediction is None:
        _no_prediction(seen)
        return
    tokens = after.tokens_of("decoder")
    picture, words = st.columns([3, 2], gap="large")
    with words:
        at = _position(tokens)
        ours, theirs = before.prediction.after(at), after.prediction.after(at)
        error = _error(before, after)
        apart = float(divergences(before, after)[at])
        st.latex(DIVERGENCE)
        st.markdown(
            f"After **{plain(token_label(tokens[at].text))}** the two distributions are "
            f"**{nats(apart, divergence_rounding(apart, 2 * error))}** nats apart, over the whole "
            f"vocabulary of {len(ours):,} tokens."
        )
        frame = _ranks(seen, ours, theirs)
        shares = st.column_config.NumberColumn(format=f"%.{settled(error)}f")
        st.dataframe(
            sheltered_table(frame),
            hide_index=True,
            column_config={"before": shares, "after": shares},
        )
    with picture:
        likely = expectation(ours, theirs, LISTED)
        named = seen.model.tokenizer.named(likely.ids)
        labels = [token_label(token.text) for token in named]
        figure = next_tokens(labels, likely.before, likely.after, decimals=settled(error))
        chart(figure, "laboratory-next")
        first, then = (f"{share:.{min(settled(error), 3)}f}" for share in likely.others)
        st.caption(f"All other tokens share {first} before and {then} after.")


def _error(before: Trace, after: Trace) -> float:
    """How far a log probability of either run may be moved by rounding."""
    return max(rounding(before), rounding(after))


def _position(tokens: Sequence[Token]) -> int:
    """The token after which the next one is expected; at first the last one."""
    at: int = st.selectbox(
        "After token",
        range(len(tokens)),
        index=len(tokens) - 1,
        format_func=lambda place: f"{place} {token_label(tokens[place].text, 24)}",
        key=f"laboratory-after-{hash(tuple(token.id for token in tokens))}",
    )
    return at


def _ranks(seen: Look, ours: np.ndarray, theirs: np.ndarray) -> pd.DataFrame:
    """The likeliest tokens of either run: probability and place, 1 the likeliest."""
    rows = ranked(ours, theirs, LISTED)
    named = seen.model.tokenizer.named([row.id for row in rows])
    return pd.DataFrame(
        {
            "next token": [token_label(token.text) for token in named],
            "before": [row.before for row in rows],
            "after": [row.after for row in rows],
            "place before": [row.place_before for row in rows],
            "place after": [row.place_after for row in rows],
        }
    )


def every_position(seen: Look) -> None:
    """How well each token was predicted, before and after, and how far the predictions moved."""
    before, after = runs(seen)
    if before.prediction is None or after.prediction is None:
        _no_prediction(seen)
        return
    tokens = [token.text for token in after.tokens_of("decoder")]
    if len(tokens) < 2:
        st.info("One token has no next one to predict. Type a longer sentence.")
        return
    ours, theirs = losses(before), losses(after)
    apart = divergences(before, after)
    error = _error(before, after)
    picture, words = st.columns([3, 2], gap="large")
    with words:
        kind = one_of(
            "Draw", ("Probability of the token that stands there", "Loss"), "laboratory-loss"
        )
        st.latex(LOSS)
        st.markdown(
            f"Loss of the sentence, the mean over {counted(len(ours), 'token')}: "
            f"**{nats(ours.mean(), error)}** nats before, **{nats(theirs.mean(), error)}** after."
        )
        st.latex(DIVERGENCE)
        st.markdown(_moved_most(tokens, apart, error))
    with picture:
        if kind == "Loss":
            values, unit, top = (ours, theirs), "loss in nats", None
        else:
            values, unit, top = (np.exp(-ours), np.exp(-theirs)), "probability", 1.05
        figure = before_and_after(
            tokens, *values, unit=unit, colour=WEIGHT, first=1, top=top, decimals=settled(error)
        )
        chart(figure, f"laboratory-losses-{kind == 'Loss'}")
    frame = pd.DataFrame(
        {
            "token": [f"{at} {token_label(text)}" for at, text in enumerate(tokens)][1:],
            "loss before": ours,
            "loss after": theirs,
            "divergence of its prediction": apart[:-1],
        }
    )
    table(frame, "laboratory-losses", decimals=settled(error))
    _check(seen, float(ours.mean()))


def _moved_most(tokens: Sequence[str], apart: np.ndarray, error: float) -> str:
    """After which token the predictions moved most, where one leads as it is printed."""
    blurred = divergence_rounding(float(apart.max()), 2 * error)
    most = nats(apart.max(), blurred)
    leading = [at for at, value in enumerate(apart) if nats(value, blurred) == most]
    moved = f"**{most}** nats, {nats(apart.mean(), blurred)} on average."
    if len(leading) > 1:
        return f"The predictions moved by at most {moved}"
    place = f"**{plain(token_label(tokens[leading[0]]))}** (position {leading[0]})"
    return f"The predictions moved most after {place}: {moved}"


def _check(seen: Look, loss: float) -> None:
    """The loss of the unchanged run, computed once more by PyTorch."""
    import torch  # the model has loaded it already

    trace = traced(seen.requests[-1])
    following = [token.id for token in trace.tokens_of("decoder")][1:]
    logits = torch.tensor(trace.logits)[: len(following)]
    again = float(torch.nn.functional.cross_entropy(logits, torch.tensor(following)))
    st.caption(
        f"Check: PyTorch's cross-entropy of the unchanged run differs from the mean above by "
        f"{difference(abs(again - loss))}."
    )


def _no_prediction(seen: Look) -> None:
    say_encoder(
        seen,
        "reads a text and predicts no next token. Its rows of weights and its stream show what a "
        "change does. A GPT predicts.",
    )
