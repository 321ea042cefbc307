"""Questions on what an intervention does: each compares a changed run with the unchanged one. Pure."""

import numpy as np

from model.analysis.run_comparison import losses, predicted, rounding
from model.analysis.tokens.prediction import Distribution, probabilities
from model.nn.intervention import Intervention
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
        f"Scores are no longer divided by √dₖ = {1 / ours.scale:.4g}. What happens to the largest "
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


def without_positions(scene: Scene, number: int) -> Question | None:
    """Does the model still expect the same token when no token knows its place?"""
    if "positions" in scene.trace.unproven:
        return None
    expected = None if number else _expected(scene, Intervention(positions=False))
    if expected is None:
        return None
    before, after, best, error, moved = expected
    if moved <= _SAME:  # a model that has no positions
        return None
    now = int(after.argmax())
    fall = float(before[best] - after[best])
    if now != best:
        answer = 2 if after[now] - after[best] >= _MOVED / 2 else None
    else:
        answer = 1 if fall >= CLEAR else 0 if fall <= _STILL else None
    if answer is None:
        return None
    had, has, first = (
        probability(float(share), error, most=3)
        for share in (before[best], after[best], after[now])
    )
    token, instead = (quoted(named) for named in scene.named([best, now]))
    other = "" if now == best else f" Now {instead} is the most likely token, with {first}."
    return Question(
        f"Positions are switched off in the whole model. After {scene.last_read} the model expected {token} "
        f"with a probability of {had}. Does it still?",
        ("Yes, as surely as before", "Yes, but less surely", "No, another token comes first"),
        answer,
        f"{token} had a probability of {had} and now has {has}.{other}",
        "Without positions a token knows what the other tokens are, but not where they are. Heads "
        "that attend to the previous token, and heads that depend on those, can no longer find it."
        if answer
        else (
            "Here it is enough to know which tokens there are; their order does not matter for "
            "the answer."
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
