"""What training is, and the shipped trainings: one head along the checkpoints, untrained beside trained, two
trainings beside each other."""

from functools import partial

import numpy as np
import streamlit as st

from model.analysis.heads.ranking import STATISTICS
from model.nn.places import head_label
from model.training.checkpoints import CheckpointTraces, shipped_training_run
from model.training.training_file import RecordedTraining
from viz.explorer.packing import Json
from viz.figures.curves import (
    Curve,
    heads_forming,
    training_curves,
)
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import (
    Caption,
    Check,
    Columns,
    Formula,
    Panel,
    Part,
    Table,
    draw_panel,
)
from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import with_terms
from viz.views.training.choice import TrainedHead, archive, choose_training, offer_training
from viz.views.training.player import message, player
from viz.views.training.player.message import PATTERN_NAMES, measures, patterns

say = sentences_of("training.views")

LOSS = r"""L = -\frac{1}{n} \sum_{t=1}^{n} \ln p\left(x_{t+1} \mid x_1 \dots x_t\right)"""
STEP = r"""\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}"""
SHOWN = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "repeat_accuracy": say("second_half_lists"),
}


def idea() -> None:
    words, picture = st.columns(2, gap="large")
    with words:
        st.markdown(with_terms(say("model_starts_random")))
        st.latex(LOSS)
        st.markdown(say("back_propagation_computes"))
        st.latex(STEP)
        st.markdown(with_terms(say("checkpoint_term_checkpoint")))
    with picture:
        st.markdown(say("induction_model_training"))
        draw_panel(plateau())


def plateau() -> Panel:
    """Loss and scores of the induction model's training."""
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
        below=[Caption(say("loss_mean_100_steps"))],
        table=Table({"step": steps, "loss": [None, *losses.values], **columns}),
    )


MOVED = r"""\frac{\lVert \theta_{\text{now}} - \theta_{\text{then}} \rVert}
{\lVert \theta_{\text{step } 0} \rVert}"""
STRIPE = r"""\frac{1}{|R|} \sum_{i \in R}\ \sum_{j < i,\ x_{j-1} = x_i} w_{ij}"""
BEFORE = r"""\frac{1}{n-1} \sum_{i=1}^{n-1} w_{i,\,i-1}"""
SHARPEST = r"""\frac{1}{n} \sum_{i} \max_j w_{ij}"""
ROLES = {
    "induction": say("repeated_list_framed"),
    "previous_token": say("induction_head_next"),
    "alignment": say("token_row_predicts"),
}


def watch() -> Panel:
    """The head at every checkpoint, in the player."""
    chosen = choose_training()
    if chosen is None:
        return Panel("training-watch", below=[offer_training])
    every = [] if chosen.record is None else [_every_head(chosen, chosen.record)]
    return Panel(
        "training-watch",
        look_for=_look_for(chosen),
        picture=partial(player, player_message(chosen), mount="training-player"),
        below=[offer_training, *every, *unread(chosen.traces), formulas(chosen)],
        check=check_of(chosen),
    )


def player_message(chosen: TrainedHead, *, together: bool = False) -> Json:
    record, run = chosen.record, chosen.training_run
    return message(
        run,
        chosen.traces,
        archive().movement(run) if record is None else None,
        place=chosen.place,
        head=chosen.head,
        losses=() if record is None else record.losses,
        planned=None if record is None else record.steps[-1],
        probe=record is not None,
        together=together,
    )


def _every_head(chosen: TrainedHead, record: RecordedTraining) -> Panel:
    """One statistic of every head, at every step that was recorded."""
    probe = record.probes[chosen.probe]
    (own,) = (layer for layer in probe.layers if layer.place.name == chosen.place)
    known = {one.title: one for one in STATISTICS if one.name in own.statistics}
    if not known:
        return Panel("training-heads")
    titles = sorted(known, key=lambda title: known[title].name != "induction")  # that first
    title = st.selectbox("Of every head", titles, key="training-statistic", bind="query-params")
    statistic = known[title]
    layers = probe.measured(statistic.name)
    heads = [(layer.place.name, head) for layer in layers for head in range(layer.heads)]
    values = np.concatenate([layer.of(statistic.name) for layer in layers], axis=1)
    names = [head_label(head) for head in heads]
    at = heads.index((chosen.place, chosen.head))
    end = int(values[-1].argmax())
    return Panel(
        "training-heads",
        look_for=say(
            "head_form_every",
            title=title,
            lowered=statistic.meaning[0].lower() + statistic.meaning[1:],
            chosen=chosen.name,
            end_names=names[end],
            values=values[-1, end],
        ),
        picture=heads_forming(
            record.steps, values, heads=names, chosen=at, unit=f"{title.lower()} ({statistic.unit})"
        ),
        table=Table({"step": record.steps} | dict(zip(names, values.T, strict=True))),
    )


def formulas(chosen: TrainedHead) -> Columns:
    """The formulas of the numbers that are drawn, side by side."""
    shown = {say("largest_weight_row"): SHARPEST}
    if chosen.record is None:
        shown[say("far_weights_moved")] = MOVED
    masks = patterns(chosen.traces, chosen.place)
    if "previous_token" in masks:
        shown = {"The token before": BEFORE, **shown}
    if "induction" in masks:
        shown = {
            say("weight_followed_same"): STRIPE,
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
    words = say("first_tokens_read", read=read, unread=traces.unread)
    return [Caption(words)]


def check_of(chosen: TrainedHead) -> Check:
    """For a record: what was compared in the training, and its statistics with the weights in the file."""
    record, traces = chosen.record, chosen.traces
    if record is None:
        return check_of_traces(traces)
    gap = record.gap(chosen.probe, chosen.place, chosen.head)
    return Check(
        say(
            "check_recorded_steps",
            steps=len(record.steps),
            float=float(record.checks.max()),
            chosen=chosen.name,
            traces_steps=len(traces.steps),
            gap=gap,
        ),
        max(gap, float(record.checks.max())),
    )


def check_of_traces(traces: CheckpointTraces) -> Check:
    return Check(
        say("check_checkpoints_attention", steps=len(traces.steps), check=traces.check),
        traces.check,
    )


def _look_for(chosen: TrainedHead) -> str:
    run, traces, head = chosen.training_run, chosen.traces, (chosen.place, chosen.head)
    for example in EXAMPLES:
        view = example.view
        if (view.model, view.text, view.place, view.head) == (run.key, traces.text, *head):
            return plain(example.look_for)
    roles = [what for what in run.heads if run.head(what) == head]
    # The number that says most of this head, from the first checkpoint to the last.
    numbers = measures(traces, *head)
    named = [f"Mean {PATTERN_NAMES[what]}" for what in roles if what in PATTERN_NAMES]
    most = next((one for one in numbers if one.name in named), numbers[-1])
    sentences = [
        say(
            "first_checkpoint_last",
            most=most.name,
            first_values=most.values[0],
            last_values=most.values[-1],
        ),
        *(ROLES[what] for what in roles if what in ROLES and chosen.record is None),
    ]
    return plain(" ".join(sentences))
