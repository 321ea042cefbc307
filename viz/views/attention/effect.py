"""What a change does to the prediction, beside the unchanged run."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.run_comparison import divergence_rounding, losses, rounding
from model.analysis.tokens.prediction import divergence, expectation, probabilities
from model.trace.trace import Trace
from viz.figures.before_after import before_and_after
from viz.figures.next_tokens import next_tokens
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import nats, settled
from viz.notation.theme import WEIGHT
from viz.shell.pictures import chart
from viz.state.look import Look
from viz.views.laboratory.formulas import LOSS

LISTED = 6


def effect_on_prediction(seen: Look) -> None:
    """The next token after the text, before and after a change; nothing without one or a head."""
    baseline, ours = seen.baseline, seen.trace.prediction
    if ours is None or baseline is None or baseline.prediction is None:
        return
    if seen.request.intervention.mask == "none":
        what_leaks(seen, baseline)
    before, after = baseline.prediction.after(-1), ours.after(-1)
    likely = expectation(before, after, LISTED)
    labels = [token_label(token.text) for token in seen.model.tokenizer.named(likely.ids)]
    last = plain(token_label(seen.trace.tokens_of("decoder")[-1].text))
    others_before, others_after = likely.others
    error = max(rounding(baseline), rounding(seen.trace))
    apart = divergence(probabilities(before), probabilities(after))
    shown = min(settled(error), 3)
    st.header("The next token, before and after", anchor=False)
    picture, words = st.columns([2, 1], gap="large")
    with picture:
        decimals = settled(error)
        chart(next_tokens(labels, likely.before, likely.after, decimals=decimals), "next-tokens")
    with words:
        st.markdown(
            f"What the model expects after **{last}**. All tokens that are not listed share "
            f"{others_before:.{shown}f} before and {others_after:.{shown}f} after the change. "
            "The two distributions are "
            f"**{nats(apart, divergence_rounding(apart, 2 * error))}** nats apart "
            "(KL divergence over the whole vocabulary)."
        )


def what_leaks(seen: Look, baseline: Trace) -> None:
    """How well each token is predicted without the mask: a token may then look at the very one that it is
    to predict. Nothing where no layer had a causal mask."""
    tokens = [token.text for token in seen.trace.tokens_of("decoder")]
    if len(tokens) < 2 or all(attention.kind != "causal" for attention in baseline.attention):
        return
    before, after = losses(baseline), losses(seen.trace)
    error = max(rounding(baseline), rounding(seen.trace))
    decimals = min(settled(error), 2)
    st.header("What leaks", anchor=False)
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        figure = before_and_after(
            tokens,
            before,
            after,
            unit="loss in nats",
            colour=WEIGHT,
            first=1,
            decimals=settled(error),
        )
        chart(figure, "what-leaks")
    with words:
        st.latex(LOSS)
        st.markdown(
            "Without the mask a token may look at the very one that it is to predict. The loss, the mean "
            f"over {len(before)} tokens, is **{before.mean():.{decimals}f}** nats before and "
            f"**{after.mean():.{decimals}f}** after.{_most(before - after, tokens, decimals)}"
        )
        st.caption(
            "The last token has no next one in the sentence. So what is expected after it, below, shows "
            "no leak."
        )


def _most(gained: NDArray[np.float64], tokens: list[str], decimals: int) -> str:
    """The token that is predicted better by most, as a sentence; nothing where none is."""
    most = int(gained.argmax())
    if gained[most] <= 0:
        return ""
    return (
        f" It falls at {int((gained > 0).sum())} of them, most at "
        f"**{plain(token_label(tokens[most + 1]))}** ({most + 1}): by {gained[most]:.{decimals}f} nats."
    )
