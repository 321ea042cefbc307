"""What a change does to the prediction, beside the unchanged run."""

import streamlit as st

from model.prediction import divergence, expectation, probabilities
from viz.axes import token_label
from viz.figures.next_tokens import next_tokens
from viz.markdown import plain
from viz.shell import Look, chart

LISTED = 6


def effect_on_prediction(seen: Look) -> None:
    """The next token after the text, before and after a change; nothing without one or a head."""
    baseline, ours = seen.baseline, seen.trace.prediction
    if ours is None or baseline is None or baseline.prediction is None:
        return
    before, after = baseline.prediction.after(-1), ours.after(-1)
    likely = expectation(before, after, LISTED)
    labels = [token_label(token.text) for token in seen.model.tokenizer.named(likely.ids)]
    last = plain(token_label(seen.trace.tokens_of("decoder")[-1].text))
    others_before, others_after = likely.others
    st.header("The next token, before and after", anchor=False)
    picture, words = st.columns([2, 1], gap="large")
    with picture:
        chart(next_tokens(labels, likely.before, likely.after), "next-tokens")
    with words:
        st.markdown(
            f"What the model expects after **{last}**. All tokens that are not listed share "
            f"{others_before:.3f} before and {others_after:.3f} after the change. "
            "The two distributions are "
            f"**{divergence(probabilities(before), probabilities(after)):.4f}** nats apart "
            "(KL divergence over the whole vocabulary)."
        )
