"""Questions on what the model expects next. Pure."""

import numpy as np

from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import Distribution, probabilities, temperature
from viz.notation.names import listed, state_names
from viz.notation.numbers import probability, settled, signed
from viz.notation.words import sentences_of
from viz.questions.question import CLEAR, OPTIONS, Question, Scene, quoted, token_name

say = sentences_of("questions.next_tokens")

_RANKS = (0, 1, 2, 9)  # of the offered tokens: the likeliest, two near it, one further down
_TEMPERATURES = (2.0, 0.5)


def next_token(scene: Scene, number: int) -> Question | None:
    """Which token comes next, in the model's view?"""
    prediction = scene.trace.prediction
    if prediction is None or number >= prediction.shape[0]:
        return None
    at = prediction.shape[0] - 1 - number
    logits = prediction.after(at)
    shares, error = probabilities(logits), rounding(scene.trace, logits)
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
        had = probability(shares[really.id], error, 3)
        stands = say("sentence_follows_probability", quoted=quoted(really), had=had)
    given = [
        f"{name} {probability(shares[id_], error)}"
        for name, id_ in zip(names, offered, strict=True)
    ]
    largest, following = (signed(f"{logits[id_]:.{settled(error, 2)}f}") for id_ in order[:2])
    return Question(
        say("token_model_expect", token_name=token_name(tokens[at], at)),
        tuple(names),
        offered.index(best),
        say("probabilities_tokens_share", given=listed(given), shares=len(shares), stands=stands),
        say("logit_next_largest", largest=largest, following=following),
    )


def settled_state(scene: Scene, number: int) -> Question | None:
    """After which layer does the token that the model expects come first, and stay first?"""
    prediction = scene.trace.prediction
    if number or prediction is None or "unembedding" in scene.trace.unproven:
        return None
    states = scene.trace.residual["decoder"]
    logits = [scene.unembed(state[-1:])[0] for state in states]
    shares = [probabilities(row) for row in logits]
    firsts = [int(row.argmax()) for row in shares]
    best = firsts[-1]
    at = max((state + 1 for state, first in enumerate(firsts) if first != best), default=0)
    if not at or min(_lead(shares[at], best), -_lead(shares[at - 1], best)) < CLEAR:
        return None
    last = len(states) - 1
    near = dict.fromkeys((at, 0, last, (at + last) // 2, at // 2, *range(last)))
    offered = sorted(list(near)[:OPTIONS])
    names = state_names(scene.trace, "decoder")
    in_the_end, then, before = (
        probability(shares[state][best], rounding(scene.trace, logits[state]), most)
        for state, most in ((-1, 3), (at, 4), (at - 1, 4))
    )
    token, instead = (quoted(named) for named in scene.named([best, firsts[at - 1]]))
    return Question(
        say("model_expects_after", token=token, last_read=scene.last_read, in_the_end=in_the_end),
        tuple(names[state] for state in offered),
        offered.index(at),
        say(
            "after_probability_state",
            names=names[at],
            token=token,
            then=then,
            before=before,
            instead=instead,
        ),
        say("adds_last_token", names=names[at], token=token),
    )


def _lead(shares: Distribution, token: int) -> float:
    """How far a token is ahead of all others; below 0 where another one is ahead."""
    return float(shares[token] - np.delete(shares, token).max())


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
    error = rounding(scene.trace, logits)
    had, has = (
        probability(share, blur, 3)
        for share, blur in ((before[best], error), (after[best], error / divisor))
    )
    (token,) = (quoted(named) for named in scene.named([best]))
    return Question(
        say("model_expects_probability", token=token, had=had, divisor=divisor),
        ("It grows", say("stays_same"), "It shrinks"),
        0 if moved > 0 else 2,
        f"It is now {has}.",
        say("dividing_more_1"),
    )
