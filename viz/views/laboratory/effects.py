"""What an intervention did to the predictions, beside the unchanged run: one token, or all of them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.run_comparison import divergence_rounding, divergences, losses, ranked, rounding
from model.analysis.tokens.prediction import divergence, expectation
from model.trace.arrays import Array
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.elements.paired_bars import paired_bars
from viz.figures.bars import next_tokens
from viz.figures.curves import before_and_after
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import counted, difference, fixed, nats, settled, significant
from viz.notation.theme import WEIGHT
from viz.saving.save import save_figure
from viz.shell.alternatives import say_encoder
from viz.shell.pictures import chart, table
from viz.state.held import traced
from viz.state.look import Look

DIVERGENCE = r"D_{\mathrm{KL}}(p \,\|\, q) = \sum_v p_v \ln \frac{p_v}{q_v}"
LOSS = r"\text{loss}_t = -\ln p(\text{token}_{t+1} \mid \text{tokens} \le t)"
LISTED = 6
SEES_NEXT = 3  # keys of the narrowest window that shows a token the next one


def runs(seen: Look) -> tuple[Trace, Trace]:
    """The unchanged run and the one that is shown; the same one where nothing is changed."""
    return seen.baseline or seen.trace, seen.trace


def effect_on_prediction(seen: Look) -> None:
    """The next token after the text, before and after an intervention; nothing without an
    intervention or a prediction."""
    before, after = runs(seen)
    if before is after or before.prediction is None or after.prediction is None:
        return
    changed = seen.request.intervention
    if changed.mask == "none" and (changed.window is None or changed.window >= SEES_NEXT):
        _what_leaks(before, after)
    last = bold_token(after.tokens_of("decoder")[-1].text)
    st.header("The next token, before and after", anchor=False)
    picture, words = st.columns([2, 1], gap="large")
    with picture:
        ours, theirs = before.prediction.after(-1), after.prediction.after(-1)
        apart, (first, then) = _draw_expected(seen, ours, theirs, "next-tokens")
    words.markdown(
        f"What the model expects after {last}. The tokens that are not listed have {first} "
        f"together before the change and {then} after it. The KL divergence of the two "
        f"distributions, over the whole vocabulary, is **{apart}** nats."
    )


def _what_leaks(before: Trace, after: Trace) -> None:
    """How well each token is predicted without the mask; nothing where no layer had a causal mask."""
    tokens = [token.text for token in after.tokens_of("decoder")]
    if len(tokens) < 2 or all(attention.kind != "causal" for attention in before.attention):
        return
    old, new = losses(before), losses(after)
    digits = settled(_error(before, after))
    decimals = min(digits, 2)
    st.header("What leaks", anchor=False)
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        paired_bars(tokens[1:], old.tolist(), new.tolist(), unit="loss in nats", decimals=digits)
        save_figure(
            lambda: before_and_after(
                tokens, old, new, unit="loss in nats", colour=WEIGHT, first=1, decimals=digits
            ),
            "what-leaks",
        )
    with words:
        st.latex(LOSS)
        said = (
            "Without the mask a token may attend to the very token that it must predict. The mean "
            f"loss over {len(old)} tokens is **{fixed(old.mean(), decimals)}** nats before and "
            f"**{fixed(new.mean(), decimals)}** after."
        )
        gained = old - new
        most = int(gained.argmax())
        if gained[most] > 0:
            said += (
                f" It falls at {int((gained > 0).sum())} of them, most at "
                f"{bold_token(tokens[most + 1], most + 1)}: by {gained[most]:.{decimals}f} nats."
            )
        st.markdown(said)
        st.caption(
            "The last token has no next token in the sentence, so the prediction after it, below, "
            "shows no leak."
        )


def next_token_effect(seen: Look) -> None:
    """What the model expects after one token, before and after the intervention."""
    before, after = runs(seen)
    if before.prediction is None or after.prediction is None:
        _no_prediction(seen)
        return
    tokens = after.tokens_of("decoder")
    picture, words = st.columns([3, 2], gap="large")
    with words:
        at = one_listed(
            "After token",
            numbered_labels((token.text for token in tokens), 24),
            f"laboratory-after-{hash(tuple(token.id for token in tokens))}",
            first=len(tokens) - 1,
        )
    ours, theirs = before.prediction.after(at), after.prediction.after(at)
    with picture:
        apart, (first, then) = _draw_expected(seen, ours, theirs, "laboratory-next")
        st.caption(f"All other tokens have {first} together before and {then} after.")
    with words:
        st.latex(DIVERGENCE)
        st.markdown(
            f"After {bold_token(tokens[at].text)} the KL divergence of the two distributions is "
            f"**{apart}** nats, over the whole vocabulary of {len(ours):,} tokens."
        )
        shares = st.column_config.NumberColumn(format=f"%.{significant(_error(before, after))}g")
        st.dataframe(
            sheltered_table(_ranks(seen, ours, theirs)),
            hide_index=True,
            column_config={"before": shares, "after": shares},
        )


def _draw_expected(seen: Look, ours: Array, theirs: Array, key: str) -> tuple[str, tuple[str, str]]:
    """Draws the likeliest next tokens of both runs, from their logits. Gives the divergence of the runs in
    nats, and what all other tokens share in each."""
    error = _error(*runs(seen))
    likely, decimals = expectation(ours, theirs, LISTED), settled(error)
    tokens = [token.text for token in seen.model.tokenizer.named(likely.ids)]
    before, after = likely.before, likely.after
    paired_bars(tokens, before, after, unit="probability", decimals=decimals, end=1.0)
    labels = list(map(token_label, tokens))
    save_figure(lambda: next_tokens(labels, before, after, decimals=decimals), key)
    first, then = (fixed(share, min(decimals, 3)) for share in likely.others)
    apart = float(divergence(ours, theirs))
    return nats(apart, divergence_rounding(apart, 2 * error)), (first, then)


def _error(before: Trace, after: Trace) -> float:
    """How far a log probability of either run may be moved by rounding."""
    return max(rounding(before), rounding(after))


def _ranks(seen: Look, ours: Array, theirs: Array) -> pd.DataFrame:
    """The likeliest tokens of either run: probability and rank, 1 the likeliest."""
    rows = ranked(ours, theirs, LISTED)
    named = seen.model.tokenizer.named([row.id for row in rows])
    return pd.DataFrame(
        {
            "next token": [token_label(token.text) for token in named],
            "before": [row.before for row in rows],
            "after": [row.after for row in rows],
            "rank before": [row.place_before for row in rows],
            "rank after": [row.place_after for row in rows],
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
        st.info("A single token has no next one to predict. Type a longer sentence.")
        return
    ours, theirs = losses(before), losses(after)
    apart, error = divergences(before, after), _error(before, after)
    picture, words = st.columns([3, 2], gap="large")
    with words:
        kinds = ("Probability", "Loss")
        kind = one_of("Picture", kinds, "laboratory-loss")
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
    columns = {
        "token": numbered_labels(tokens)[1:],
        "loss before": ours,
        "loss after": theirs,
        "divergence of its prediction": apart[:-1],
    }
    table(columns, "laboratory-losses", decimals=settled(error))
    _check(seen, float(ours.mean()))


def _moved_most(tokens: Sequence[str], apart: np.ndarray, error: float) -> str:
    """After which token the predictions moved most, where one leads as it is printed."""
    blurred = divergence_rounding(float(apart.max()), 2 * error)
    most = nats(apart.max(), blurred)
    leading = [at for at, value in enumerate(apart) if nats(value, blurred) == most]
    moved = f"**{most}** nats, {nats(apart.mean(), blurred)} on average."
    if len(leading) > 1:
        return f"The predictions moved by at most {moved}"
    (at,) = leading
    return f"The predictions moved most after {bold_token(tokens[at], at)}: {moved}"


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
        "reads a text and predicts no next token. Its weights and its stream show what a change "
        "does. Choose a GPT to see a prediction.",
    )
