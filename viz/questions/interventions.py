"""Questions on what an intervention does: each compares a changed run with the unchanged one. Pure."""

import numpy as np

from model.analysis.run_comparison import losses, predicted, rounding
from model.analysis.tokens.prediction import Distribution, probabilities
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.trace.blocks import of_query
from viz.notation.numbers import probability, settled
from viz.questions.question import CLEAR, Question, Scene, quoted, token_name
from viz.questions.rows import open_keys, row_of

_MOVED, _STILL = 0.05, 0.01  # an intervention between the two is too unclear for a question
_MOVED_LOSS, _SAME_LOSS = 0.1, 0.01  # nats, for the mean loss of a sentence
_SAME = 1e-6  # rounding changes weights and logits by less
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
    deeper = (
        " The vectors of this layer change too, because the layers before it are not scaled either."
        if ours.layer
        else ""
    )
    return Question(
        f"Scores are no longer divided by √d = {1 / ours.scale:.4g}. What happens to the largest "
        f"weight in the row of {looking}, in head {scene.head_name}?",
        _DIRECTIONS,
        answer,
        f"It was {before:.3f} and is now {after:.3f}.",
        f"The scores of this row had a range of {wide[0]:.2f}, and now have one of {wide[1]:.2f}. "
        f"The further apart the scores, the more the softmax gives to the largest.{deeper}",
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
    gain = "Each token may now attend to the one that it must predict. " + (
        f"{token} gains most: its loss goes from {lost} to {kept}."
        if lost != kept and before[most] > after[most]
        else "No token is predicted better."
    )
    return Question(
        "The loss says how badly the next tokens of the sentence are predicted: the mean of −ln of "
        "their probabilities. The causal mask is lifted in all layers. What happens to the loss of "
        f"{was:.{decimals}f}?",
        _DIRECTIONS,
        answer,
        f"It was {was:.{decimals}f} and is now {now:.{decimals}f}, the mean over {len(before)} "
        "tokens.",
        f"{gain} A model trained this way would only learn to copy the answer."
        if answer == 2
        else f"{gain} But this model never learned to look ahead, and predicts other tokens worse.",
    )


def without_head(scene: Scene, number: int) -> Question | None:
    """How much does the expected token depend on one head?"""
    attention = scene.attention
    if number >= attention.heads:
        return None
    head = (scene.head + number) % attention.heads
    expected = _expected(scene, Intervention(ablated=frozenset({(scene.place, head)})))
    if expected is None:
        return None
    before, after, best, error, _ = expected
    answer = _direction(float(before[best]), float(after[best]))
    if answer is None:
        return None
    had, has = (probability(float(share), error, most=3) for share in (before[best], after[best]))
    (token,) = (quoted(named) for named in scene.named([best]))
    name = head_label((attention.name, head))
    return Question(
        f"Head {name} is left out: its output is zero. What happens to the probability of {token} "
        "as the next token?",
        _DIRECTIONS,
        answer,
        f"It was {had} and is now {has}.",
        "Other heads do the same work, or this head does nothing that matters for this token."
        if answer == 1
        else "What this head added to the residual stream made the token less likely."
        if answer == 0
        else (
            "What this head added to the residual stream made the token more likely, and no "
            "other head makes up for it completely."
        ),
    )


def _expected(
    scene: Scene, intervention: Intervention
) -> tuple[Distribution, Distribution, int, float, float] | None:
    """What is expected after the last token without and with an intervention, and the likeliest token
    without; how far rounding may move a logit, and the most that the intervention moves one.

    None where the model predicts nothing, or expects no token clearly.
    """
    runs = scene.trace, scene.run(intervention)
    if runs[0].prediction is None or runs[1].prediction is None:
        return None
    logits = runs[0].prediction.after(-1), runs[1].prediction.after(-1)
    before, after = map(probabilities, logits)
    best = int(before.argmax())
    if before[best] < CLEAR:
        return None
    error = max(rounding(run, row) for run, row in zip(runs, logits, strict=True))
    return before, after, best, error, float(np.abs(logits[0] - logits[1]).max())


def _direction(before: float, after: float) -> int | None:
    """Which of the directions a number took; None where that is unclear."""
    if abs(after - before) <= _STILL:
        return 1
    if abs(after - before) < _MOVED:
        return None
    return 0 if after > before else 2
