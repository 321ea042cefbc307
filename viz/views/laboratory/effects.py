"""What an intervention did, beside the unchanged run: to the predictions, to the rows of weights, to the
stream."""

from typing import NamedTuple

import numpy as np

from model.analysis.run_comparison import (
    RowStatistics,
    StreamMovement,
    divergence_rounding,
    largest_difference,
    losses,
    movement,
    rounding,
    row_statistics,
)
from model.analysis.tokens.prediction import divergence, probabilities
from model.nn.places import layer_label
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.curves import before_and_after
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import numbered_labels, token_label
from viz.notation.names import state_names
from viz.notation.numbers import nats, probability
from viz.notation.theme import MORE, WEIGHT, rgba
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Table
from viz.state.look import Look

say = sentences_of("laboratory.effects")


def runs(look: Look) -> tuple[Trace, Trace]:
    """The unchanged run and the one that is shown; the same one where nothing is changed."""
    return look.baseline or look.trace, look.trace


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
            say("1_row_every_key") if empty == 1 else say("rows_every_key_masked", empty=empty)
        ]
    if look.request.intervention.dropout:
        rest = say("sink_leaves") * (look.attention.sinks is not None)
        remarks.append(say("weights_before_dropout", rest=rest))
    return Panel(
        f"laboratory-rows-{sharp}",
        picture=before_and_after(
            queries,
            *((run.largest if sharp else run.entropy)[head] for run in (ours, theirs)),
            unit=say("largest_weight_row") if sharp else "entropy in nats",
            colour=WEIGHT,
            top=1.05 if sharp else None,
        ),
        below=[
            Formula(LARGEST if sharp else ENTROPY),
            say(
                "mean_over_rows_heads",
                layer_label=layer_label(look.place),
                row_mean=row_mean(ours.entropy, ours),
                theirs_row_mean=row_mean(theirs.entropy, theirs),
                ours_row_mean=row_mean(ours.largest, ours),
                largest_row_mean=row_mean(theirs.largest, theirs),
            ),
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
        look_for=_where_it_moved(moved, names),
        below=[
            Formula(MOVED),
            Caption(say("largest_difference_any", largest=largest)),
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
        return say("stream_not_differ")
    return say(
        "first_state_differs", names=names[changed[0]], mean_last_share=moved.share[-1].mean()
    )


READ_AT_ONCE = 2**22  # logits that are read for the loss each time the page is drawn: 50 ms


class PredictionEffect(NamedTuple):
    """One number: what it is called, how it was and how it is now, and what it means."""

    name: str
    before: str
    after: str
    meaning: str


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
        ("Top weight", "largest", say("1_means_row_attends")),
    )
    rows = [
        PredictionEffect(
            f"{name}, {layer}",
            f"{row_mean(getattr(ours, field), ours):.3f}",
            f"{row_mean(getattr(theirs, field), theirs):.3f}",
            say("mean_over_rows_heads_2", layer=layer, meaning=meaning),
        )
        for name, field, meaning in of_rows
    ]
    moved = movement(before, after, look.model.stacks()[-1]).share[-1]
    name, which = "Last vectors", "all tokens"
    if hidden is not None:
        moved = np.delete(moved, hidden)
        name, which = say("last_vectors_other"), say("tokens_not_hidden")
    meaning = say("far_last_vector", which=which)
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
            "Next token", was, now, say('most_likely_token')
        ),
        PredictionEffect(
            "Prediction, KL", "", f"{written} nats",
            say('divergence_kl_distributions'),
        ),
    ]  # fmt: skip
    count = len(after.tokens_of("decoder")) - 1
    if count > 0 and count * len(rows[0]) <= READ_AT_ONCE:
        was, now = (nats(float(losses(run).mean()), max(error, 5e-4)) for run in (before, after))
        meaning = say("mean_ln_p_over_text")
        effects.append(PredictionEffect("Loss per token", was, now, meaning))
    return effects
