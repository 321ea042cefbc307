"""The gradient of the softmax: its slopes by hand, when it saturates, and its average size."""

from __future__ import annotations

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, whole, worked
from model.worked.source import TWO_LAYERS

_SCORES = numbered("score", 3)
_WEIGHTS = numbered("weight", 3)
CLAIM = (0.1, 0.15)  # the mean slope that a document calls frequent


@worked(
    "softmax-slopes",
    "§2",
    "The slopes of the softmax, and saturation",
    "How far a weight moves when a score moves is p(1−p). "
    "Where a weight is near 0 or 1 almost nothing moves, and nothing is learned.",
    given("scores", "Scores", [2, 4, 1], _SCORES),
    given("stretch", "Factors c", [0.25, 0.5, 1, 2, 4, 8], "factor", lowest=0),
)
def _slopes(values: Values) -> tuple[Step, ...]:
    scores = values["scores"]
    weights = attention.softmax(scores)
    own = attention.own_slopes(weights)
    first = latex.number(weights[0])
    return (
        Step(
            "Weights",
            r"p_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
            weights,
            latex.softmax(scores, weights),
            columns=_SCORES,
            quantity="weight",
            comment="Positive numbers that sum to 1: a discrete distribution over the keys.",
        ),
        Step(
            "Slope of each weight with its own score",
            r"\frac{\partial p_i}{\partial s_i} = p_i\,(1 - p_i)",
            own,
            rf"{first}\,(1 - {first}) = {latex.number(own[0])}",
            columns=_SCORES,
            comment="It lies between 0 and 0.25, and reaches 0.25 where the weight is one half.",
        ),
        _all_slopes(weights),
        _stretched(scores, values["stretch"]),
    )


def _all_slopes(weights: Array) -> Step:
    slopes = attention.softmax_slopes(weights)
    return Step(
        "Slope of every weight with every score",
        r"\frac{\partial p_i}{\partial s_j} = -p_i\,p_j \quad (i \ne j)",
        slopes,
        rf"-{latex.number(weights[0])} \cdot {latex.number(weights[1])} = "
        rf"{latex.number(slopes[0, 1])}",
        rows=_WEIGHTS,
        columns=_SCORES,
        comment="Each row sums to 0: raising every score by the same amount changes no weight.",
    )


def _stretched(scores: Array, stretch: Array) -> Step:
    slopes = np.stack([attention.own_slopes(attention.softmax(scores * c)) for c in stretch])
    return Step(
        "The same slopes with the scores multiplied",
        r"p_i\,(1 - p_i)\ \text{of}\ \mathrm{softmax}(c \cdot s)",
        slopes,
        rf"c = {latex.number(stretch[-1])}:\ {latex.row(slopes[-1])}",
        rows=tuple(f"c = {factor:g}" for factor in stretch),
        columns=_SCORES,
        comment="Large scores push weights to 0 or 1 and slopes to 0: the softmax saturates.",
    )


@worked(
    "average-gradient",
    "§2",
    "How large the softmax gradient is on average",
    "It depends on how many keys there are and how far their scores spread.",
    whole("keys", "Numbers of keys", [2, 3, 4, 6, 8, 16, 64], 1, 512, "size"),
    given(
        "spreads",
        "Standard deviations of the scores",
        [0.5, 1, 2, 4],
        "spread",
        lowest=0,
        highest=50,
    ),
)
def _average(values: Values) -> tuple[Step, ...]:
    keys, spreads = values["keys"], values["spreads"]
    rows = tuple(f"{int(count)} keys" for count in keys)
    columns = tuple(f"spread {spread:g}" for spread in spreads)
    means = np.array(
        [[attention.mean_own_slope(int(n), float(spread)) for spread in spreads] for n in keys]
    )
    inside = (means >= CLAIM[0]) & (means <= CLAIM[1])
    found = [f"{rows[i]} at {columns[j]}" for i, j in np.argwhere(inside)]
    equal = (keys - 1) / keys**2
    return (
        Step(
            "Slope with equal scores",
            r"\frac{1}{n}\left(1 - \frac{1}{n}\right)",
            equal,
            rf"n = {int(keys[0])}:\ {latex.number(equal[0])}",
            columns=rows,
            comment="The more keys share the weight, the smaller each one's slope.",
        ),
        Step(
            "Average slope for random scores",
            r"\mathbb{E}\,[\,p_i\,(1 - p_i)\,],\quad s_j \sim \mathcal{N}(0,\ \text{spread}^2)",
            means,
            rf"n = {int(keys[0])},\ \text{{spread }} {latex.number(spreads[0])}:\ "
            rf"{latex.number(means[0, 0])}",
            rows=rows,
            columns=columns,
            comment=f"“{TWO_LAYERS.title}” calls {CLAIM[0]:g} to {CLAIM[1]:g} frequent: here it is so in "
            f"{len(found)} of {means.size} cases"
            + (": " + ", ".join(found) + "." if found else "."),
        ),
    )
