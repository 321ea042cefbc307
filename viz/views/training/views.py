"""What training is, and the shipped trainings: one head along the checkpoints, untrained beside trained."""

from functools import partial

import streamlit as st

from model.training.checkpoints import CheckpointTraces, shipped_training_run
from viz.figures.curves import Curve, training_curves
from viz.figures.heatmap import weights_of_head
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.panel import Caption, Columns, Formula, Panel, Part, Table, draw_panel
from viz.shell.pictures import readout_of
from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import glossary_link
from viz.views.training.choice import TrainedHead, archive, choose_training
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
        st.markdown("**The induction model's training: a plateau, a drop, a plateau**")
        draw_panel(_curves())


def _curves() -> Panel:
    history = shipped_training_run("induction").history
    steps = [int(record["step"]) for record in history]
    losses = Curve(steps[1:], [record["loss"] for record in history if "loss" in record])
    scores = {
        name: Curve(steps, [record[score] for record in history]) for score, name in SHOWN.items()
    }
    columns = {name: line.values for name, line in scores.items()}
    return Panel(
        "training-idea",
        picture=training_curves({"loss": losses}, scores),
        check="Each loss is the mean of the 100 steps before it. The scores are for new lists, each "
        "repeated once.",
        table=Table({"step": steps, "loss": [None, *losses.values], **columns}),
    )


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


def watch() -> Panel:
    """The head at every checkpoint, in the player."""
    chosen = choose_training()
    if chosen is None:
        return Panel("training-watch")
    movement = archive().movement(chosen.training_run)
    data = message(
        chosen.training_run, chosen.traces, movement, place=chosen.place, head=chosen.head
    )
    return Panel(
        "training-watch",
        look_for=_look_for(chosen),
        picture=partial(player, data, mount="training-player"),
        below=[*unread(chosen.traces), Caption(check_of(chosen.traces)), formulas(chosen)],
    )


def beside() -> Panel:
    """The same head at step 0 and at the end, on the same scale."""
    chosen = choose_training()
    if chosen is None:
        return Panel("training-beside")
    traces, place, head = chosen.traces, chosen.place, chosen.head
    queries = [token.text for token in traces.queries(place)]
    keys = [token.text for token in traces.keys(place)]
    numbers = measures(traces, place, head)
    pictures = []
    for at, which in ((0, "untrained"), (-1, "trained")):
        attention = traces.checkpoints[at].attention[place]
        columns = dict(zip(numbered_labels(keys), attention.weights(head).T, strict=True))
        picture = Panel(
            f"training-beside-{which}",
            picture=weights_of_head(attention, head, queries=queries, keys=keys),
            below=[
                partial(readout_of, attention, head, queries, keys),
                *(Caption(f"{one.name}: {one.values[at]:.4f}") for one in numbers),
            ],
            table=Table({"query": numbered_labels(queries), **columns}),
        )
        title = f"**Head {chosen.name}, {which}: step {traces.steps[at]:,}**"
        pictures.append(Panel(which, below=[title, picture]))
    return Panel(
        "training-beside",
        look_for="Left: a head of the model before training, with random weights. Right: the same head "
        "after training. Both use the scale from 0 to 1. The numbers below say what changed.",
        below=[Columns(pictures), *unread(traces)],
        check=check_of(traces),
    )


def formulas(chosen: TrainedHead) -> Columns:
    """The formulas of the numbers that are drawn, side by side."""
    shown = {"Largest weight of a row": SHARPEST, "How far the weights moved": MOVED}
    masks = patterns(chosen.traces, chosen.place)
    if "previous_token" in masks:
        shown = {"The token before": BEFORE, **shown}
    if "induction" in masks:
        shown = {
            "Weight on what followed the same token earlier; R: the rows that have such a key": STRIPE,
            **shown,
        }
    return Columns(
        [Panel(name, below=[Caption(name), Formula(latex)]) for name, latex in shown.items()]
    )


def unread(traces: CheckpointTraces) -> list[Part]:
    """How much of a long text is left out."""
    if not traces.unread:
        return []
    read = len(traces.last.tokens)
    words = f"The first {read:,} tokens are read; {traces.unread:,} more are left out."
    return [partial(st.warning, words)]


def check_of(traces: CheckpointTraces) -> str:
    return (
        f"Check: at all {len(traces.steps)} checkpoints, attention outputs and norms recomputed from "
        f"what was recorded differ from the model's own by at most {difference(traces.check)}."
    )


def _look_for(chosen: TrainedHead) -> str:
    run, traces, head = chosen.training_run, chosen.traces, (chosen.place, chosen.head)
    for example in EXAMPLES:
        view = example.view
        if (view.model, view.text, view.place, view.head) == (run.key, traces.text, *head):
            return plain(f"Press Play. {example.look_for}")
    roles = [what for what in run.heads if run.found(what) == head]
    # The number that says most of this head, from the first checkpoint to the last.
    numbers = measures(traces, *head)
    named = [f"Mean {PATTERN_NAMES[what]}" for what in roles if what in PATTERN_NAMES]
    most = next((one for one in numbers if one.name in named), numbers[-1])
    sentences = [
        "Press Play, or move the slider.",
        f"{most.name}: {most.values[0]:.2f} at the first checkpoint, {most.values[-1]:.2f} at the last.",
        *(ROLES[what] for what in roles if what in ROLES),
    ]
    return plain(" ".join(sentences))
