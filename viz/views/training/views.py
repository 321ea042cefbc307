"""What training is, and the shipped trainings: one head along the checkpoints, untrained beside trained."""

import streamlit as st

from model.training.checkpoints import CheckpointTraces, shipped_training_run
from viz.figures.curves import Curve, training_curves
from viz.figures.heatmap import weights_of_head
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.pictures import chart, look_for, readout_of, table
from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import glossary_link
from viz.views.training.choice import Seen, archive, seen_training
from viz.views.training.player import message, player
from viz.views.training.player.message import PATTERN_NAMES, measures, patterns

LOSS = r"""L = -\frac{1}{n} \sum_{t=1}^{n} \ln p\left(x_{t+1} \mid x_1 \dots x_t\right)"""
STEP = r"""\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}"""
SHOWN = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "repeat_accuracy": "second half of lists predicted",
}


def idea() -> None:
    words, picture = st.columns(2, gap="large")
    with words:
        st.markdown(
            f"""
A model starts as random numbers. It reads a text and gives each possible next token a
{glossary_link("probability")}. The **{glossary_link("cross-entropy loss", "loss")}** is the mean of −ln
p over the tokens that really came next. It is 0 if each was predicted with certainty, and ln V if all V
tokens are thought equally likely.
"""
        )
        st.latex(LOSS)
        st.markdown(
            """
Back-propagation computes the slope of the loss for every weight θ: the **gradient**. One **step** moves
every weight a little against its slope; η is the learning rate. Then the next batch of texts is read,
and so on. The models here use AdamW, which adapts the rate of each weight.
"""
        )
        st.latex(STEP)
        st.markdown(
            f"""
A **{glossary_link("checkpoint")}** is a copy of all weights at one step. Laid one after another,
checkpoints show when a head finds its job.

Learning need not be smooth. Here the loss stays high for 300 steps. Then a
{glossary_link("previous-token head")} in layer 0 and an {glossary_link("induction head")} in layer 1
form together, and the loss drops: a **phase change**. Nothing told the model to build these heads. They
make the next token easier to predict.
"""
        )
    with picture:
        _curves()


def _curves() -> None:
    history = shipped_training_run("induction").history
    steps = [int(record["step"]) for record in history]
    losses = Curve(steps[1:], [record["loss"] for record in history if "loss" in record])
    scores = {
        name: Curve(steps, [record[score] for record in history]) for score, name in SHOWN.items()
    }
    st.markdown("**The induction model's training: a plateau, a drop, a plateau**")
    chart(training_curves({"loss": losses}, scores), "training-idea")
    st.caption(
        "Each loss is the mean of the 100 steps before it. The scores are for new lists, each "
        "repeated once."
    )
    columns = {name: line.values for name, line in scores.items()}
    table({"step": steps, "loss": [None, *losses.values], **columns}, "idea")


MOVED = r"""\frac{\lVert \theta_{\text{now}} - \theta_{\text{then}} \rVert}
{\lVert \theta_{\text{step } 0} \rVert}"""
STRIPE = r"""\frac{1}{|R|} \sum_{i \in R}\ \sum_{j < i,\ x_{j-1} = x_i} w_{ij}"""
BEFORE = r"""\frac{1}{n-1} \sum_{i=1}^{n-1} w_{i,\,i-1}"""
SHARPEST = r"""\frac{1}{n} \sum_{i} \max_j w_{ij}"""
ROLES = {
    "induction": (
        "In a repeated list, the framed cells are the tokens that followed each token the "
        "first time."
    ),
    "previous_token": (
        "The induction head of the next layer needs this one: on repeated lists both form in "
        "the same steps."
    ),
    "alignment": (
        "The token of a row predicts the next French word. Where the two languages order words "
        "differently, the cells should leave the diagonal."
    ),
}


def watch() -> None:
    picture = st.container()
    seen = seen_training()
    if seen is None:
        return
    movement = archive().movement(seen.training_run)
    with picture:
        player(
            message(seen.training_run, seen.traces, movement, place=seen.place, head=seen.head),
            mount="training-player",
        )
    look_for(_look_for(seen))
    say_what_is_cut(seen.traces)
    checked(seen.traces)
    formulas(seen)


def beside() -> None:
    """The same head at step 0 and at the end, on the same scale."""
    pictures = st.container()
    seen = seen_training()
    if seen is None:
        return
    look_for(
        "Left: a head of the model before training, with random weights. Right: the same head "
        "after training. Both use the scale from 0 to 1. The numbers below say what changed."
    )
    say_what_is_cut(seen.traces)
    steps = seen.traces.steps
    queries = [token.text for token in seen.traces.queries(seen.place)]
    keys = [token.text for token in seen.traces.keys(seen.place)]
    numbers = measures(seen.traces, seen.place, seen.head)
    for column, at, which in zip(
        pictures.columns(2, gap="large"), (0, -1), ("untrained", "trained"), strict=True
    ):
        attention = seen.traces.checkpoints[at].attention[seen.place]
        with column:
            st.markdown(f"**Head {seen.name}, {which}: step {steps[at]:,}**")
            chart(
                weights_of_head(attention, seen.head, queries=queries, keys=keys),
                f"training-beside-{which}",
            )
            readout_of(attention, seen.head, queries, keys)
            for one in numbers:
                st.caption(f"{one.name}: {one.values[at]:.4f}")
            weights = attention.weights(seen.head)
            columns = dict(zip(numbered_labels(keys), weights.T, strict=True))
            table({"query": numbered_labels(queries), **columns}, f"training-beside-{which}")
    checked(seen.traces)


def formulas(seen: Seen) -> None:
    shown = {"Largest weight of a row": SHARPEST, "How far the weights moved": MOVED}
    found = patterns(seen.traces, seen.place)
    if "previous_token" in found:
        shown = {"The token before": BEFORE, **shown}
    if "induction" in found:
        shown = {
            "Weight on what followed the same token earlier; R: the rows that have such a key": STRIPE,
            **shown,
        }
    for column, (name, formula) in zip(st.columns(len(shown)), shown.items(), strict=True):
        column.caption(name)
        column.latex(formula)


def say_what_is_cut(shown: CheckpointTraces) -> None:
    """Says how much of a long text is left out; one place, whether there is something to say or not."""
    with st.container():
        if shown.unread:
            read = len(shown.last.tokens)
            st.warning(f"The first {read:,} tokens are read; {shown.unread:,} more are left out.")


def checked(shown: CheckpointTraces) -> None:
    st.caption(
        f"Check: at all {len(shown.steps)} checkpoints, attention outputs and norms recomputed from "
        f"what was recorded differ from the model's own by at most {difference(shown.check)}."
    )


def _look_for(seen: Seen) -> str:
    for example in EXAMPLES:
        where = (example.view.model, example.view.text, example.view.place, example.view.head)
        if where == (seen.training_run.key, seen.traces.text, seen.place, seen.head):
            return plain(f"Press Play. {example.look_for}")
    roles = [
        what
        for what in seen.training_run.heads
        if seen.training_run.found(what) == (seen.place, seen.head)
    ]
    # The number that says most of this head, from the first checkpoint to the last.
    numbers = measures(seen.traces, seen.place, seen.head)
    named = [f"Mean {PATTERN_NAMES[what]}" for what in roles if what in PATTERN_NAMES]
    one = next((one for one in numbers if one.name in named), numbers[-1])
    said = [
        "Press Play, or move the slider.",
        f"{one.name}: {one.values[0]:.2f} at the first checkpoint, {one.values[-1]:.2f} at the last.",
        *(ROLES[what] for what in roles if what in ROLES),
    ]
    return plain(" ".join(said))
