"""What an intervention did, beside the unchanged run: to the predictions, to the rows of weights, to the
stream."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.run_comparison import (
    RowStatistics,
    StreamMovement,
    divergence_rounding,
    divergences,
    largest_difference,
    losses,
    movement,
    ranked,
    rounding,
    row_statistics,
)
from model.analysis.tokens.prediction import divergence, expectation, probabilities
from model.nn.places import layer_label
from model.trace.arrays import Array
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import paired_bars
from viz.figures.bars import next_tokens
from viz.figures.curves import before_and_after
from viz.figures.heatmap import Axis, heatmap
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.names import state_names
from viz.notation.numbers import counted, difference, fixed, nats, probability, settled, significant
from viz.notation.theme import MORE, WEIGHT, rgba
from viz.saving.save import save_figure
from viz.shell.model_picker import say_encoder
from viz.shell.pictures import chart, table
from viz.state.look import Look, traced

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


ENTROPY = r"H_i = -\sum_j w_{ij} \ln w_{ij} \qquad \text{from } 0 \text{ to } \ln n"
LARGEST = r"\max_j\, w_{ij}"
MOVED = (
    r"\text{moved}_t = \frac{\lVert x_t^{\text{changed}} - x_t^{\text{unchanged}} \rVert}"
    r"{\lVert x_t^{\text{unchanged}} \rVert}"
)
SHARP, EVEN = "Largest weight", "Entropy"
SPACIOUS = 8  # tokens up to which a cell has room for two decimals


def rows_effect(seen: Look) -> None:
    """Entropy and largest weight of each row of one head, before and after."""
    before, after = (trace.find(seen.place) for trace in runs(seen))
    ours, theirs = row_statistics(before), row_statistics(after)
    queries, _ = seen.labels
    picture, words = st.columns([3, 2], gap="large")
    with words:
        sharp = one_of("Picture", (SHARP, EVEN), "laboratory-rows") == SHARP
        head = seen.head
        st.latex(LARGEST if sharp else ENTROPY)
        st.markdown(
            f"Mean over all rows and heads of {layer_label(seen.place)}: entropy "
            f"**{row_mean(ours.entropy, ours):.3f}** nats before, **{row_mean(theirs.entropy, theirs):.3f}** "
            f"after; largest weight **{row_mean(ours.largest, ours):.3f}** before, "
            f"**{row_mean(theirs.largest, theirs):.3f}** after."
        )
        if empty := int(theirs.empty[head].sum()):
            st.caption(
                "In 1 row every key is masked: it is 0 and reads nothing."
                if empty == 1
                else f"In {empty} rows every key is masked: they are 0 and read nothing."
            )
        if seen.request.intervention.dropout:
            rest = " or to what the sink leaves of it" * (seen.attention.sinks is not None)
            st.caption(f"These are the weights before dropout, whose rows sum to 1{rest}.")
    with picture:
        figure = before_and_after(
            queries,
            *((run.largest if sharp else run.entropy)[head] for run in (ours, theirs)),
            unit="largest weight of the row" if sharp else "entropy in nats",
            colour=WEIGHT,
            top=1.05 if sharp else None,
        )
        chart(figure, f"laboratory-rows-{sharp}")
    columns = {
        "query": numbered_labels(queries),
        "largest before": ours.largest[head],
        "largest after": theirs.largest[head],
        "entropy before": ours.entropy[head],
        "entropy after": theirs.entropy[head],
    }
    table(columns, "laboratory-rows")


def row_mean(values: np.ndarray, rows: RowStatistics) -> float:
    """The mean over all rows that read something."""
    read = values[~rows.empty]
    return float(read.mean()) if read.size else 0.0


def stream_effect(seen: Look) -> None:
    """By layer, how far each token's vector lies from where it was."""
    before, after = runs(seen)
    stacks = seen.model.stacks()
    stack = stacks[-1]
    if len(stacks) > 1:
        stack = one_of("Stack", stacks, "laboratory-stack", default=stack)
    moved, names = movement(before, after, stack), state_names(after, stack)
    tokens = [token.text for token in after.tokens_of(stack)]
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        figure = heatmap(
            moved.share,
            rows=Axis("state", names, tokens=False),
            columns=Axis("token", tokens),
            quantity="difference",
            decimals=2 if len(tokens) <= SPACIOUS else 1,
        )
        upward = [[0, rgba(MORE, 0)], [1, rgba(MORE, 1)]]  # a distance is never below 0
        figure.data[-1].update(zmin=0, colorscale=upward)
        chart(figure, f"laboratory-stream-{stack}")
    with words:
        st.latex(MOVED)
        st.markdown(_where_it_moved(moved, names))
        st.caption(
            "Largest difference in any state of the stream: "
            f"{largest_difference(before, after):.3g}."
        )
    columns = {
        "state": names,
        "mean distance": moved.distance.mean(-1),
        "mean length before": moved.length.mean(-1),
        "mean share": moved.share.mean(-1),
    }
    table(columns, "laboratory-stream")


def _where_it_moved(moved: StreamMovement, names: tuple[str, ...]) -> str:
    changed = np.flatnonzero(moved.distance.max(-1) > 0)
    if not changed.size:
        return "This stream does not differ from that of the unchanged run in any number."
    return (
        f"The first state that differs: **{names[changed[0]]}**. After the last sub-layer the "
        f"vectors are on average **{moved.share[-1].mean():.1%}** of their length away from the "
        "unchanged ones."
    )


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
