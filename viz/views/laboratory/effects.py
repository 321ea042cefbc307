"""What an intervention did, beside the unchanged run: to the predictions, to the rows of weights, to the
stream."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.analysis.run_comparison import (
    RowStatistics,
    StreamMovement,
    divergence_rounding,
    divergences,
    largest_difference,
    losses,
    most_moved,
    movement,
    ranked,
    rounding,
    row_statistics,
)
from model.analysis.tokens.prediction import divergence, expectation, probabilities
from model.nn.places import Head, head_label, layer_label
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
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
from viz.notation.theme import MORE, PROBABILITY, WEIGHT, rgba
from viz.shell.model_picker import say_encoder
from viz.shell.panel import Caption, Check, Formula, Panel, Table, draw_panel
from viz.state.look import Look, traced
from viz.state.session import change_view, current

DIVERGENCE = r"D_{\mathrm{KL}}(p \,\|\, q) = \sum_v p_v \ln \frac{p_v}{q_v}"
LOSS = r"\text{loss}_t = -\ln p(\text{token}_{t+1} \mid \text{tokens} \le t)"
LISTED = 6
SEES_NEXT = 3  # keys of the narrowest window that shows a token the next one


def runs(look: Look) -> tuple[Trace, Trace]:
    """The unchanged run and the one that is shown; the same one where nothing is changed."""
    return look.baseline or look.trace, look.trace


def effect_on_prediction(look: Look) -> None:
    """The next token after the text, before and after an intervention; nothing without an
    intervention or a prediction."""
    before, after = runs(look)
    if before is after or before.prediction is None or after.prediction is None:
        return
    changed = look.request.intervention
    has_mask = any(attention.kind == "causal" for attention in before.attention)
    if (
        changed.mask == "none"
        and (changed.window is None or changed.window >= SEES_NEXT)
        and has_mask
        and len(after.tokens_of("decoder")) > 1
    ):
        st.header("What leaks", anchor=False)
        draw_panel(_what_leaks(before, after))
    st.header("The next token, before and after", anchor=False)
    last = bold_token(after.tokens_of("decoder")[-1].text)
    ours, theirs = before.prediction.after(-1), after.prediction.after(-1)
    bars, figure, apart, (first, then) = _expected(look, ours, theirs)
    words = (
        f"What the model expects after {last}. The tokens that are not listed have {first} "
        f"together before the change and {then} after it. The KL divergence of the two "
        f"distributions, over the whole vocabulary, is **{apart}** nats."
    )
    draw_panel(Panel("next-tokens", picture=bars, beside=[words], saved=figure))


def _what_leaks(before: Trace, after: Trace) -> Panel:
    """How well each token is predicted without the mask."""
    tokens = [token.text for token in after.tokens_of("decoder")]
    old, new = losses(before), losses(after)
    digits = settled(_error(before, after))
    decimals = min(digits, 2)

    unit = "loss in nats"
    bars = partial(paired_bars, tokens[1:], old.tolist(), new.tolist(), unit=unit, decimals=digits)
    figure = partial(
        before_and_after, tokens, old, new, unit=unit, colour=PROBABILITY, first=1, decimals=digits
    )

    words = (
        "Without the mask a token may attend to the very token that it must predict. The mean "
        f"loss over {len(old)} tokens is **{fixed(old.mean(), decimals)}** nats before and "
        f"**{fixed(new.mean(), decimals)}** after."
    )
    gained = np.round(old - new, decimals)
    most = int((old - new).argmax())
    if gained[most] > 0:
        words += (
            f" It falls at {int((gained > 0).sum())} of them, most at "
            f"{bold_token(tokens[most + 1], most + 1)}: by {gained[most]:.{decimals}f} nats."
        )
    remark = (
        "The last token has no next token in the sentence, so the prediction after it, below, "
        "shows no leak."
    )
    return Panel(
        "what-leaks",
        picture=bars,
        beside=[Formula(LOSS), words, Caption(remark)],
        saved=figure,
    )


def next_token_effect(look: Look) -> Panel:
    """What the model expects after one token, before and after the intervention."""
    before, after = runs(look)
    if before.prediction is None or after.prediction is None:
        return _no_prediction(look)
    tokens = after.tokens_of("decoder")
    at = one_listed(
        "After token",
        numbered_labels((token.text for token in tokens), 24),
        f"laboratory-after-{hash(tuple(token.id for token in tokens))}",
        first=len(tokens) - 1,
    )
    ours, theirs = before.prediction.after(at), after.prediction.after(at)
    bars, figure, apart, (first, then) = _expected(look, ours, theirs)
    ranks = ranked(ours, theirs, LISTED)
    named = look.model.tokenizer.named([one.id for one in ranks])
    listed = {
        "next token": [token_label(token.text) for token in named],
        "before": [one.before for one in ranks],
        "after": [one.after for one in ranks],
        "rank before": [one.place_before for one in ranks],  # 1: the likeliest
        "rank after": [one.place_after for one in ranks],
    }
    shares = st.column_config.NumberColumn(format=f"%.{significant(_error(before, after))}g")
    return Panel(
        "laboratory-next",
        picture=bars,
        beside=[
            Formula(DIVERGENCE),
            f"After {bold_token(tokens[at].text)} the KL divergence of the two distributions is "
            f"**{apart}** nats, over the whole vocabulary of {len(ours):,} tokens.",
            lambda: st.dataframe(
                sheltered_table(pd.DataFrame(listed)),
                hide_index=True,
                column_config={"before": shares, "after": shares},
            ),
        ],
        below=[Caption(f"All other tokens have {first} together before and {then} after.")],
        saved=figure,
    )


def _expected(
    look: Look, ours: Array, theirs: Array
) -> tuple[Callable[[], None], Callable[[], go.Figure], str, list[str]]:
    """The likeliest next tokens of both runs: what draws them, as bars and as a figure, the divergence of the
    runs in nats, and what all other tokens share in each.

    Args:
        look: the changed run.
        ours: logits of the unchanged one.
        theirs: logits of the changed one.
    """
    error = _error(*runs(look))
    likely, decimals = expectation(ours, theirs, LISTED), settled(error)
    tokens = [token.text for token in look.model.tokenizer.named(likely.ids)]
    pair = likely.before, likely.after
    bars = partial(paired_bars, tokens, *pair, unit="probability", decimals=decimals, end=1.0)
    figure = partial(next_tokens, list(map(token_label, tokens)), *pair, decimals=decimals)
    others = [fixed(share, min(decimals, 3)) for share in likely.others]
    apart = float(divergence(ours, theirs))
    return bars, figure, nats(apart, divergence_rounding(apart, 2 * error)), others


def _error(before: Trace, after: Trace) -> float:
    """How far a log probability of either run may be moved by rounding."""
    return max(rounding(before), rounding(after))


def every_position(look: Look) -> Panel:
    """How well each token was predicted, before and after, and how far the predictions moved."""
    before, after = runs(look)
    if before.prediction is None or after.prediction is None:
        return _no_prediction(look)
    tokens = [token.text for token in after.tokens_of("decoder")]
    if len(tokens) < 2:
        raise NotShownError("A single token has no next one to predict. Type a longer sentence.")
    ours, theirs = losses(before), losses(after)
    apart, error = divergences(before, after), _error(before, after)
    if one_of("Picture", ("Probability", "Loss"), "laboratory-loss") == "Loss":
        name, values, unit, top = "loss", (ours, theirs), "loss in nats", None
    else:
        name, values = "probability", (np.exp(-ours), np.exp(-theirs))
        unit, top = name, 1.05
    return Panel(
        f"laboratory-losses-{name}",
        picture=before_and_after(
            tokens,
            *values,
            unit=unit,
            colour=PROBABILITY,
            first=1,
            top=top,
            decimals=settled(error),
        ),
        beside=[
            Formula(LOSS),
            f"Loss of the sentence, the mean over {counted(len(ours), 'token')}: "
            f"**{nats(ours.mean(), error)}** nats before, **{nats(theirs.mean(), error)}** after.",
            Formula(DIVERGENCE),
            _moved_most(tokens, apart, error),
        ],
        check=_check(look, float(ours.mean())),
        table=Table(
            {
                "token": numbered_labels(tokens)[1:],
                "loss before": ours,
                "loss after": theirs,
                "divergence of its prediction": apart[:-1],
            },
            decimals=settled(error),
        ),
    )


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


def _check(look: Look, loss: float) -> Check:
    """The loss of the unchanged run, computed once more by PyTorch."""
    import torch  # the model has loaded it already

    trace = traced(look.requests[-1])
    following = [token.id for token in trace.tokens_of("decoder")][1:]
    logits = torch.tensor(trace.logits)[: len(following)]
    again = float(torch.nn.functional.cross_entropy(logits, torch.tensor(following)))
    return Check(
        "Check: PyTorch's cross-entropy of the unchanged run differs from the mean beside the picture by "
        f"{difference(abs(again - loss))}.",
        abs(again - loss),
    )


def _no_prediction(look: Look) -> Panel:
    words = (
        "reads a text and predicts no next token. Its weights and its stream show what a change "
        "does. Choose a GPT to see a prediction."
    )
    return Panel("laboratory-no-prediction", picture=partial(say_encoder, look, words))


ENTROPY = r"H_i = -\sum_j w_{ij} \ln w_{ij} \qquad \text{from } 0 \text{ to } \ln n"
LARGEST = r"\max_j\, w_{ij}"
MOVED = (
    r"\text{moved}_t = \frac{\lVert x_t^{\text{changed}} - x_t^{\text{unchanged}} \rVert}"
    r"{\lVert x_t^{\text{unchanged}} \rVert}"
)
SHARP, EVEN = "Largest weight", "Entropy"
SPACIOUS = 8  # tokens up to which a cell has room for two decimals


def rows_effect(look: Look) -> Panel:
    """Entropy and largest weight of each row of one head, before and after."""
    ours, theirs = (row_statistics(trace.find(look.place)) for trace in runs(look))
    queries, head = look.labels[0], look.head
    sharp = one_of("Picture", (SHARP, EVEN), "laboratory-rows") == SHARP
    remarks = []
    if empty := int(theirs.empty[head].sum()):
        remarks = [
            "In 1 row every key is masked: it is 0 and reads nothing."
            if empty == 1
            else f"In {empty} rows every key is masked: they are 0 and read nothing."
        ]
    if look.request.intervention.dropout:
        rest = " or to what the sink leaves of it" * (look.attention.sinks is not None)
        remarks.append(f"These are the weights before dropout, whose rows sum to 1{rest}.")
    return Panel(
        f"laboratory-rows-{sharp}",
        picture=before_and_after(
            queries,
            *((run.largest if sharp else run.entropy)[head] for run in (ours, theirs)),
            unit="largest weight of the row" if sharp else "entropy in nats",
            colour=WEIGHT,
            top=1.05 if sharp else None,
        ),
        beside=[
            Formula(LARGEST if sharp else ENTROPY),
            f"Mean over all rows and heads of {layer_label(look.place)}: entropy "
            f"**{row_mean(ours.entropy, ours):.3f}** nats before, **{row_mean(theirs.entropy, theirs):.3f}** "
            f"after; largest weight **{row_mean(ours.largest, ours):.3f}** before, "
            f"**{row_mean(theirs.largest, theirs):.3f}** after.",
            *map(Caption, remarks),
        ],
        table=Table(
            {
                "query": numbered_labels(queries),
                "largest before": ours.largest[head],
                "largest after": theirs.largest[head],
                "entropy before": ours.entropy[head],
                "entropy after": theirs.entropy[head],
            }
        ),
    )


def row_mean(values: np.ndarray, rows: RowStatistics) -> float:
    """The mean over all rows that read something."""
    read = values[~rows.empty]
    return float(read.mean()) if read.size else 0.0


def stream_effect(look: Look) -> Panel:
    """By layer, how far each token's vector lies from where it was."""
    before, after = runs(look)
    stacks = look.model.stacks()
    stack = stacks[-1]
    if len(stacks) > 1:
        stack = one_of("Stack", stacks, "laboratory-stack", default=stack)
    moved, names = movement(before, after, stack), state_names(after, stack)
    tokens = [token.text for token in after.tokens_of(stack)]
    figure = heatmap(
        moved.share,
        rows=Axis("state", names, tokens=False),
        columns=Axis("token", tokens),
        quantity="difference",
        decimals=2 if len(tokens) <= SPACIOUS else 1,
    )
    upward = [[0, rgba(MORE, 0)], [1, rgba(MORE, 1)]]  # a distance is never below 0
    figure.data[-1].update(zmin=0, colorscale=upward)
    largest = f"{largest_difference(before, after):.3g}"
    return Panel(
        f"laboratory-stream-{stack}",
        picture=figure,
        beside=[
            Formula(MOVED),
            _where_it_moved(moved, names),
            Caption(f"Largest difference in any state of the stream: {largest}."),
        ],
        table=Table(
            {
                "state": names,
                "mean distance": moved.distance.mean(-1),
                "mean length before": moved.length.mean(-1),
                "mean share": moved.share.mean(-1),
            }
        ),
    )


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


class PredictionEffect(NamedTuple):
    """One number: what it is called, how it was and how it is now, and what it means."""

    name: str
    before: str
    after: str
    meaning: str


def effect_row(look: Look) -> None:
    """The effects side by side; nothing where nothing is changed."""
    before, after = runs(look)
    with st.container(horizontal=True, gap="small", key="laboratory-effects"):
        if before is after:
            return
        for effect in effects(look, before, after):
            st.metric(
                effect.name,
                plain(effect.after),
                plain(f"was {effect.before}") if effect.before else None,
                delta_color="off",
                delta_arrow="off",
                help=effect.meaning,
                width="content",
            )
        _most_moved(before, after, (look.place, look.head))


def _most_moved(before: Trace, after: Trace, opened: Head) -> None:
    """The way to the head that a change moves most, where that is another one than the open head."""
    heads = [(one.name, head) for one in after.attention for head in range(one.heads)]
    moved = most_moved(before, after, heads)
    if moved is None or moved.head == opened:
        return
    query, key = moved.cell
    st.button(
        f"{head_label(moved.head)} changes most: from {fixed(moved.before, 2)} to {fixed(moved.after, 2)} →",
        key="laboratory-most-moved",
        type="tertiary",
        help="Opens that head, at the weight that changes most.",
        on_click=_open_moved,
        args=(moved.head, query, key),
    )


def _open_moved(head: Head, query: int, key: int) -> None:
    change_view(replace(current(), place=head[0], head=head[1], query=query, key=key))


def effects(
    look: Look, before: Trace, after: Trace, *, hidden: int | None = None
) -> list[PredictionEffect]:
    """On the prediction, where there is one, on the rows of the shown layer, and on the stream.

    Args:
        look: the changed run.
        before: the unchanged run.
        after: the changed run.
        hidden: a token of the last stack whose own vector is left out.
    """
    layer = layer_label(look.place)
    ours, theirs = (row_statistics(run.find(look.place)) for run in (before, after))
    of_rows = (
        ("Entropy", "entropy", "from 0 (one token has everything) to ln n (all n are equal)"),
        ("Top weight", "largest", "1 means that the row attends to one token only"),
    )
    rows = [
        PredictionEffect(
            f"{name}, {layer}",
            f"{row_mean(getattr(ours, field), ours):.3f}",
            f"{row_mean(getattr(theirs, field), theirs):.3f}",
            f"The mean over all rows and heads of {layer}; {meaning}.",
        )
        for name, field, meaning in of_rows
    ]
    moved = movement(before, after, look.model.stacks()[-1]).share[-1]
    name, which = "Last vectors", "all tokens"
    if hidden is not None:
        moved = np.delete(moved, hidden)
        name, which = "Last vectors of the other tokens", "the tokens that are not hidden"
    meaning = (
        "How far the last vector of each token is from that of the unchanged run, as a share "
        f"of its length. The mean of {which}."
    )
    prediction = [] if after.prediction is None else _on_the_prediction(look, before, after)
    return [*prediction, *rows, PredictionEffect(name, "", f"{moved.mean():.1%} away", meaning)]


def _on_the_prediction(look: Look, before: Trace, after: Trace) -> list[PredictionEffect]:
    """What is expected after the last token, and how well the text itself is predicted."""
    error = max(rounding(before), rounding(after))
    rows = [run.require_prediction().after(-1) for run in (before, after)]
    expected = []
    for row in rows:
        shares = probabilities(row)
        (token,) = look.model.tokenizer.named([int(shares.argmax())])
        expected.append(f"{token_label(token.text)} {probability(float(shares.max()), error, 2)}")
    apart = float(divergence(*rows))
    written = nats(apart, divergence_rounding(apart, 2 * error))
    was, now = expected
    effects = [
        PredictionEffect(
            "Next token", was, now, "The most likely token after the text, and its probability."
        ),
        PredictionEffect(
            "Prediction, KL", "", f"{written} nats",
            "The divergence (KL) of the two distributions after the last token.",
        ),
    ]  # fmt: skip
    count = len(after.tokens_of("decoder")) - 1
    if count > 0 and count * len(rows[0]) <= READ_AT_ONCE:
        was, now = (nats(float(losses(run).mean()), max(error, 5e-4)) for run in (before, after))
        meaning = (
            "The mean of −ln p over the text's own tokens, in nats: 0 where each token is "
            "predicted with certainty."
        )
        effects.append(PredictionEffect("Loss per token", was, now, meaning))
    return effects
