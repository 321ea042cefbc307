"""What the browser gets of a training: every checkpoint's map of one head, curves, and movement. Pure.

Weights are sent in float32, and only those that the mask allows.
"""

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.labels import goes_on_with_its_text
from model.analysis.heads.statistics import after_the_same, mean_share
from model.nn.places import Place, head_label
from model.trace.arrays import BoolArray
from model.training.checkpoints import (
    CheckpointRecord,
    CheckpointTraces,
    TrainingRun,
    WeightMovement,
)
from viz.explorer.packing import Json
from viz.notation.labels import token_label
from viz.notation.names import ADDED_BY
from viz.notation.theme import FEED_FORWARD, MASKED, PROBABILITY, QUANTITIES, STREAM
from viz.notation.words import sentences_of

say = sentences_of("training.player_message")

_TABLES = {"embedding.tokens": "token table", "embedding.positions": "position table"}
LABEL = 12  # characters of a token beside the map
LOSS = "loss"
LINES_AT_MOST = 4  # in one chart
SCORE_NAMES = {
    "induction": "best induction head",
    "previous_token": say("best_previous_token"),
    "repeat_accuracy": say("second_half_lists"),
    "repeat_accuracy_without_previous_token_head": say("same_without_previous"),
    "surname_recall": "surnames recalled",
    "exact_match": "sentences translated correctly",
    "exact_match_new_pairs": say("same_new_noun_adjective"),
    "alignment": say("alignment_best_head"),
    "loss": "training loss",
    "story_loss": say("loss_new_stories"),
    "held_out_loss": say("loss_held_out_text"),
}
PATTERN_NAMES = {
    "induction": say("weight_followed_same"),
    "previous_token": say("weight_token_before"),
}
_WEIGHT = QUANTITIES["weight"]
_QUANTITIES = {"weight": asdict(_WEIGHT), "key": asdict(QUANTITIES["key"])}
_COLOURS = (_WEIGHT.ink, _WEIGHT.ink, (FEED_FORWARD, FEED_FORWARD), (STREAM, STREAM))
_DASHES = ("", "5 3", "", "2 3")


class PlayedMeasure(NamedTuple):
    """One number of a head's map at each checkpoint."""

    name: str
    values: tuple[float, ...]


def patterns(traces: CheckpointTraces, place: str) -> dict[str, BoolArray]:
    """Where heads of known kinds look in this sub-layer, (query, key), as far as this text has such
    cells."""
    attention, keys = traces.last.attention[place], traces.keys(place)
    if attention.kind != "causal":
        return {}
    found = {"previous_token": np.eye(len(keys), k=-1, dtype=bool)}
    if goes_on_with_its_text(attention, translates=bool(traces.last.target_tokens)):
        found = {"induction": after_the_same([token.id for token in keys])} | found
    return {name: cells for name, cells in found.items() if cells.any()}


def measures(traces: CheckpointTraces, place: str, head: int) -> tuple[PlayedMeasure, ...]:
    weights = traces.weights(place, head)
    of_patterns = (
        PlayedMeasure(f"Mean {PATTERN_NAMES[name]}", _floats(mean_share(weights, cells)))
        for name, cells in patterns(traces, place).items()
    )
    largest = weights.max(-1).mean(-1, dtype=np.float64)
    return (*of_patterns, PlayedMeasure(say("mean_largest_weight"), _floats(largest)))


def message(
    training_run: TrainingRun,
    traces: CheckpointTraces,
    movement: WeightMovement | None,
    *,
    place: str,
    head: int,
    losses: Sequence[tuple[int, float]] = (),
    planned: int | None = None,
    probe: bool = False,
    together: bool = False,
) -> Json:
    """Everything that the player draws from. movement: None where no model is left to be compared.

    losses: (step, loss) where they are known more closely than in the history. planned: the step at
    which the training will end; None: the last checkpoint. probe: as in `charts`. together: whether the
    other player of the page follows its slider.
    """
    attention = traces.last.attention[place]
    weights = traces.weights(place, head)
    mask = attention.mask
    if mask is not None and mask.all():
        mask = None
    framed, cells = next(iter(patterns(traces, place).items()), (None, None))
    return {
        "key": training_run.key,
        "title": f"Head {head_label((place, head))}",
        "head": head_label((place, head)),
        "steps": list(traces.steps),
        "lastStep": planned or traces.steps[-1],
        "weights": _base64((weights if mask is None else weights[:, mask]).astype("<f4")),
        "allowed": None if mask is None else _base64(mask.astype(np.uint8)),
        "framed": None if cells is None else _base64(cells.astype(np.uint8)),
        "framedWhy": "" if framed is None else f"framed: {PATTERN_NAMES[framed][10:]}",
        "queries": [token_label(token.text, LABEL) for token in traces.queries(place)],
        "keys": [token_label(token.text, LABEL) for token in traces.keys(place)],
        "measures": [one._asdict() for one in measures(traces, place, head)],
        "charts": charts(training_run.history, losses, probe=probe),
        "movement": None if movement is None else _movement(movement),
        "together": together,
        "theme": {"quantities": _QUANTITIES, "masked": MASKED},
    }


def _movement(movement: WeightMovement) -> Json:
    return {
        "parts": [part_name(part) for part in movement.parts],
        "sinceStart": [_floats(row) for row in movement.since_start],
        "sinceLast": [_floats(row) for row in movement.since_last],
        "colour": QUANTITIES["difference"].ink,
    }


def charts(
    history: Sequence[CheckpointRecord],
    losses: Sequence[tuple[int, float]] = (),
    *,
    probe: bool = False,
) -> list[Json]:
    """Two charts against the step: losses in nats a token, and scores from 0 to 1. probe: whether the scores
    are those of the text that is shown, and the losses in a unit that somebody else chose."""
    names = dict.fromkeys(name for record in history for name in record if name != "step")
    lines = {
        name: [(int(one["step"]), float(one[name])) for one in history if name in one]
        for name in names
    }
    if losses:
        lines[LOSS] = list(losses)
    of_loss = {name: lines[name] for name in lines if LOSS in name}
    of_scores = {
        name: line
        for name, line in lines.items()
        if LOSS not in name and max(line, key=lambda point: point[1])[1] <= 1
    }
    top = max((value for line in of_loss.values() for _, value in line), default=1.0)
    drawn = [
        _chart("Loss" if probe else say("loss_nats_per_token"), of_loss, math.ceil(top)),
        _chart(f"Scores on {'this text' if probe else 'new data'}: 0 to 1", of_scores, 1),
    ]
    return [chart for chart in drawn if chart["lines"]]


def part_name(part: str) -> str:
    """A part of a model as it is said to readers: `decoder.1.self` is "decoder L1 attention"."""
    if part.startswith("embedding."):
        return _TABLES.get(part, part)
    if part.endswith(".final_norm"):
        return "final norm"
    place = Place.named(part)
    return f"{place.stack} {place.label} {ADDED_BY[place.kind]}"


def _chart(title: str, lines: dict[str, list[tuple[int, float]]], high: float) -> Json:
    shown = list(lines.items())[:LINES_AT_MOST]
    neutral = (PROBABILITY, PROBABILITY)
    return {
        "title": title,
        "high": high,
        "lines": [
            {
                "name": SCORE_NAMES.get(name, name.replace("_", " ")),
                "steps": [step for step, _ in line],
                "values": [value for _, value in line],
                "colour": neutral if high != 1 else _COLOURS[at],
                "dash": _DASHES[at],
            }
            for at, (name, line) in enumerate(shown)
        ],
    }


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _base64(array: NDArray[np.generic]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
