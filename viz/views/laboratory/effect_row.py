"""What an intervention did, in one row: each number after the change, and before it."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from model.analysis.run_comparison import (
    divergence_rounding,
    losses,
    movement,
    rounding,
    row_statistics,
)
from model.analysis.tokens.prediction import divergence, probabilities
from model.nn.places import layer_label
from model.trace.trace import Trace
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import nats, probability
from viz.state.look import Look
from viz.views.laboratory.effects import runs
from viz.views.laboratory.rows import row_mean

READ_AT_ONCE = 2**22  # logits that are read for the loss each time the page is drawn: 50 ms


class Effect(NamedTuple):
    """One number: what it is called, how it was and how it is now, and what it means."""

    name: str
    before: str
    after: str
    meaning: str


def effect_row(seen: Look) -> None:
    """The effects side by side; nothing where nothing is changed."""
    before, after = runs(seen)
    with st.container(horizontal=True, gap="small", key="laboratory-effects"):
        if before is after:
            return
        for effect in effects(seen, before, after):
            st.metric(
                effect.name,
                plain(effect.after),
                plain(f"was {effect.before}") if effect.before else None,
                delta_color="off",
                delta_arrow="off",
                help=effect.meaning,
                width="content",
            )


def effects(seen: Look, before: Trace, after: Trace, *, hidden: int | None = None) -> list[Effect]:
    """On the prediction, where there is one, on the rows of the shown layer, and on the stream. hidden: a
    token of the last stack whose own vector is left out."""
    found = [] if after.prediction is None else _on_the_prediction(seen, before, after)
    layer = layer_label(seen.place)
    ours, theirs = (row_statistics(run.find(seen.place)) for run in (before, after))
    for name, old, new, meaning in (
        (
            "Entropy",
            ours.entropy,
            theirs.entropy,
            "from 0 (one token has everything) to ln n (all n are equal)",
        ),
        (
            "Top weight",
            ours.largest,
            theirs.largest,
            "1 means that the row attends to one token only",
        ),
    ):
        was, now = f"{row_mean(old, ours):.3f}", f"{row_mean(new, theirs):.3f}"
        said = f"The mean over all rows and heads of {layer}; {meaning}."
        found.append(Effect(f"{name}, {layer}", was, now, said))
    stack = seen.model.stacks()[-1]
    moved = movement(before, after, stack).share[-1]
    name, which = "Last vectors", "all tokens"
    if hidden is not None:
        moved = np.delete(moved, hidden)
        name, which = "Last vectors of the other tokens", "the tokens that are not hidden"
    said = (
        "How far the last vector of each token is from that of the unchanged run, as a share "
        f"of its length. The mean of {which}."
    )
    return [*found, Effect(name, "", f"{moved.mean():.1%} away", said)]


def _on_the_prediction(seen: Look, before: Trace, after: Trace) -> list[Effect]:
    """What is expected after the last token, and how well the text itself is predicted."""
    error = max(rounding(before), rounding(after))
    rows = [run.require_prediction().after(-1) for run in (before, after)]
    expected = []
    for row in rows:
        shares = probabilities(row)
        (token,) = seen.model.tokenizer.named([int(shares.argmax())])
        expected.append(f"{token_label(token.text)} {probability(float(shares.max()), error, 2)}")
    apart = float(divergence(*rows))
    written = nats(apart, divergence_rounding(apart, 2 * error))
    was, now = expected
    found = [
        Effect("Next token", was, now, "The most likely token after the text, and its probability."),
        Effect(
            "Prediction, KL", "", f"{written} nats",
            "The divergence (KL) of the two distributions after the last token.",
        ),
    ]  # fmt: skip
    count = len(after.tokens_of("decoder")) - 1
    if count > 0 and count * len(rows[0]) <= READ_AT_ONCE:
        was, now = (nats(float(losses(run).mean()), max(error, 5e-4)) for run in (before, after))
        said = (
            "The mean of −ln p over the text's own tokens, in nats: 0 where each token is "
            "predicted with certainty."
        )
        found.append(Effect("Loss per token", was, now, said))
    return found
