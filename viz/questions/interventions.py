"""Questions on what an intervention does: each compares a changed run with the unchanged one. Pure."""

import numpy as np

from model.analysis.run_comparison import losses, predicted, rounding
from model.analysis.tokens.prediction import probabilities
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.trace.blocks import of_query
from viz.notation.numbers import probability, settled
from viz.notation.words import sentences_of
from viz.questions.question import CLEAR, Question, Scene, quoted, token_name
from viz.questions.rows import open_keys, row_of

say = sentences_of("questions.interventions")

_MOVED, _STILL = 0.05, 0.01  # an intervention between the two is too unclear for a question
_MOVED_LOSS, _SAME_LOSS = 0.1, 0.01  # nats, for the mean loss of a sentence
_DIRECTIONS = ("It grows", "It hardly moves", "It shrinks")


def without_scaling(scene: Scene, number: int) -> Question | None:
    """What happens to the largest weight of a row when scores are not divided by √dₖ?"""
    ours = scene.attention
    theirs = scene.run(Intervention(scale=1.0)).find(scene.place)
    query, head = row_of(ours, number), scene.head
    keys = open_keys(ours, query, head)
    before, after = (float(of_query(run, query).weights(head)[0].max()) for run in (ours, theirs))
    answer = _direction(before, after)
    if len(keys) < 3 or ours.scale in (0, 1) or answer is None:
        return None
    wide = [float(np.ptp(of_query(run, query).biased(head)[0, keys])) for run in (ours, theirs)]
    looking = scene.query_name(query)
    deeper = say("vectors_layer_change") if ours.layer else ""
    return Question(
        say(
            "scores_longer_divided",
            value=1 / ours.scale,
            looking=looking,
            head_name=scene.head_name,
        ),
        _DIRECTIONS,
        answer,
        say("now", before=before, after=after),
        say("scores_row_range", first_wide=wide[0], wide=wide[1], deeper=deeper),
    )


def leaking_mask(scene: Scene, number: int) -> Question | None:
    """What happens to the loss when every token may look at the one that it must predict?"""
    ours = scene.trace
    if number or scene.attention.kind != "causal" or ours.prediction is None:
        return None
    if len(predicted(ours)) < 2:
        return None
    theirs = scene.run(Intervention(mask="none"))
    before, after = losses(ours), losses(theirs)
    decimals = min(2, settled(max(rounding(ours), rounding(theirs))))
    was, now = float(before.mean()), float(after.mean())
    moved = abs(now - was)
    if _SAME_LOSS < moved < _MOVED_LOSS:
        return None
    answer = 1 if moved <= _SAME_LOSS else 0 if now > was else 2
    most = int((before - after).argmax())
    token = token_name(predicted(ours)[most], most + 1)
    lost, kept = (f"{loss[most]:.{decimals}f}" for loss in (before, after))
    gain = say("token_may_now_attend") + (
        say("gains_most_loss", token=token, lost=lost, kept=kept)
        if lost != kept and before[most] > after[most]
        else say("token_predicted_better")
    )
    return Question(
        say("loss_says_badly", was=f"{was:.{decimals}f}"),
        _DIRECTIONS,
        answer,
        say(
            "now_mean_over_tokens",
            was=f"{was:.{decimals}f}",
            now=f"{now:.{decimals}f}",
            before=len(before),
        ),
        say("model_trained_way", gain=gain)
        if answer == 2
        else say("model_never_learned", gain=gain),
    )


def without_head(scene: Scene, number: int) -> Question | None:
    """How much does the expected token depend on one head?"""
    attention = scene.attention
    if number >= attention.heads or scene.trace.prediction is None:
        return None
    head = (scene.head + number) % attention.heads
    runs = scene.trace, scene.run(Intervention(ablated=frozenset({(scene.place, head)})))
    logits = [run.require_prediction().after(-1) for run in runs]
    before, after = map(probabilities, logits)
    best = int(before.argmax())
    answer = _direction(float(before[best]), float(after[best]))
    if before[best] < CLEAR or answer is None:
        return None
    error = max(map(rounding, runs, logits))
    had, has = (probability(float(share), error, most=3) for share in (before[best], after[best]))
    (token,) = (quoted(named) for named in scene.named([best]))
    name = head_label((attention.name, head))
    return Question(
        say("head_left_out_output", name=name, token=token),
        _DIRECTIONS,
        answer,
        say("now_2", had=had, has=has),
        say("other_heads_same")
        if answer == 1
        else say("head_added_residual")
        if answer == 0
        else say("head_added_residual_stream"),
    )


def _direction(before: float, after: float) -> int | None:
    """Which of the directions a number took; None where that is unclear."""
    if abs(after - before) <= _STILL:
        return 1
    if abs(after - before) < _MOVED:
        return None
    return 0 if after > before else 2
