"""Questions on what the model expects next. Pure."""

import numpy as np

from model.prediction import probabilities, temperature
from viz.questions.question import CLEAR, Question, Scene, listed, quoted, token_name

_RANKS = (0, 1, 2, 9)  # of the offered tokens: the likeliest, two near it, one further down
_TEMPERATURES = (2.0, 0.5)


def next_token(scene: Scene, number: int) -> Question | None:
    """Which token comes next, in the model's view?"""
    prediction = scene.trace.prediction
    if prediction is None or number >= prediction.shape[0]:
        return None
    at = prediction.shape[0] - 1 - number
    logits = prediction.after(at)
    shares = probabilities(logits)
    order = np.argsort(-shares, kind="stable")
    if len(order) <= _RANKS[-1] or shares[order[0]] - shares[order[1]] < CLEAR:
        return None
    best = int(order[0])
    offered = sorted(int(order[rank]) for rank in _RANKS)  # by id: the order says nothing
    names = [quoted(token) for token in scene.named(offered)]
    if len(set(names)) < len(names):  # two halves of a character look alike
        return None
    tokens = scene.trace.tokens_of("decoder")
    stands = ""
    if at + 1 < len(tokens):
        really = tokens[at + 1]
        stands = f" In your sentence {quoted(really)} follows; it had {shares[really.id]:.3f}."
    return Question(
        f"Which token does the model expect after {token_name(tokens[at], at)}?",
        tuple(names),
        offered.index(best),
        f"Probabilities: "
        f"{listed([f'{name} {shares[id_]:.4f}' for name, id_ in zip(names, offered, strict=True)])}; "
        f"all {len(shares):,} tokens share 1.{stands}",
        f"Its logit is {logits[best]:.2f}, the next largest {logits[int(order[1])]:.2f}. The softmax "
        "makes probabilities of all logits at once.",
    )


def warmed(scene: Scene, number: int) -> Question | None:
    """What does a temperature do to the likeliest token?"""
    prediction = scene.trace.prediction
    if prediction is None or number >= len(_TEMPERATURES):
        return None
    divisor, logits = _TEMPERATURES[number], prediction.after(-1)
    before, after = probabilities(logits), temperature(logits, divisor)
    best = int(before.argmax())
    moved = float(after[best] - before[best])
    if abs(moved) < CLEAR / 2:
        return None
    (token,) = (quoted(named) for named in scene.named([best]))
    return Question(
        f"The model expects {token} with {before[best]:.3f}. Every logit is divided by {divisor:g}, "
        "the temperature. What happens to this probability?",
        ("It grows", "It stays as it is", "It shrinks"),
        0 if moved > 0 else 2,
        f"It becomes {after[best]:.3f}.",
        "Dividing by more than 1 brings the logits nearer together, so the other tokens gain. Dividing "
        "by less than 1 draws them apart. The order of the tokens stays the same.",
    )
