"""A head before and after its training, and the trainings of two models."""

from functools import partial

import pandas as pd

from viz.figures.curves import Curve, training_curves
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Columns, Panel, Table
from viz.shell.pictures import readout_of
from viz.state.look import Look
from viz.views.all_heads.compare import others, side_by_side
from viz.views.corpus.views import strongest
from viz.views.training.choice import TrainedHead, choose_training
from viz.views.training.player import player
from viz.views.training.player.message import measures
from viz.views.training.views import SHOWN, check_of, player_message, unread

say = sentences_of("all_heads.trained")

_WHEN = {
    "untrained": say("before_training_random"),
    "at first": say("first_step_record"),
}


def untrained(look: Look) -> Panel:
    """A head at step 0 and at the end of its training, on the same scale."""
    chosen = choose_training(first=look.request.model, shuffles=False)
    if chosen is None:
        return Panel("training-beside")
    traces, place, head = chosen.traces, chosen.place, chosen.head
    queries = [token.text for token in traces.queries(place)]
    keys = [token.text for token in traces.keys(place)]
    numbers = measures(traces, place, head)
    most = max(numbers, key=lambda one: abs(one.values[-1] - one.values[0]))
    last = traces.checkpoints[-1].attention[place]
    cell = strongest(last.weights(head), last)
    pictures = []
    began = "untrained" if traces.steps[0] == 0 else "at first"
    for at, which in ((0, began), (-1, "trained")):
        attention = traces.checkpoints[at].attention[place]
        columns = dict(zip(numbered_labels(keys), attention.weights(head).T, strict=True))
        told = [partial(readout_of, attention, head, queries, keys, query=cell[0], key=cell[1])]
        title = f"{chosen.name}, {which}: step {traces.steps[at]:,}"
        picture = Panel(
            f"training-beside-{which}",
            picture=headed(
                weights_of_head(
                    attention, head, queries=queries, keys=keys, fitting=NARROW, cell=cell
                ),
                title,
            ),
            below=[
                *(told if chosen.record is None else []),  # it has no scores
                *(Caption(f"{one.name}: {one.values[at]:.4f}") for one in numbers),
            ],
            table=Table({"query": numbered_labels(queries), **columns}),
        )
        pictures.append(picture)
    return Panel(
        "training-beside",
        look_for=say(
            "left_head_model",
            began_when=_WHEN[began],
            most=most.name,
            first_values=most.values[0],
            last_values=most.values[-1],
            others=others((last, cell)),
        ),
        picture=side_by_side(pictures),
        below=unread(traces),
        check=check_of(chosen),
    )


def two_runs(look: Look) -> Panel:
    """Two trainings: their curves in one picture, and a head of each under one slider."""
    sides = {
        "left": choose_training(first=look.request.model, shuffles=False),
        "right": choose_training("-right", first="stories", shuffles=False),
    }
    runs = {f"{one.title} ({side})": one for side, one in sides.items() if one is not None}
    if len(runs) < 2:
        return Panel("training-two")
    curves = {
        score: {
            title: line for title, one in runs.items() if (line := _line(one, score)) is not None
        }
        for score in ("loss", "induction", "previous_token")
    }
    losses = {f"loss, {title}": line for title, line in curves.pop("loss").items()}
    scores = {
        f"{SHOWN[score]}, {title}": line
        for score, lines in curves.items()
        for title, line in lines.items()
    }
    players = []
    for (title, one), side in zip(runs.items(), sides, strict=True):
        picture = Panel(
            f"training-two-{side}",
            picture=partial(
                player, player_message(one, together=True), mount=f"training-two-{side}"
            ),
            below=unread(one.traces),
            check=check_of(one),
        )
        players.append(Panel(side, below=[f"**{plain(title)}**", picture]))
    columns = {
        name: pd.Series(list(one.values), list(one.steps))
        for name, one in (losses | scores).items()
    }
    return Panel(
        "training-two",
        look_for=say("loss_drop_both_heads"),
        picture=training_curves(
            losses,
            scores,
            unit="" if any(one.record for one in runs.values()) else "nats per token",
        ),
        below=[Columns(players)],
        table=Table(pd.DataFrame(columns), index="step"),
    )


def _line(chosen: TrainedHead, score: str) -> Curve | None:
    """One score of a training against its steps; None where it was not measured."""
    told = [one for one in chosen.training_run.history if score in one]
    points = [(int(one["step"]), one[score]) for one in told]
    if score == "loss" and chosen.record is not None:
        points = list(chosen.record.losses)
    return Curve(*zip(*points, strict=True)) if points else None
