"""The gradient of the softmax: its slopes by hand, when it saturates, and how large it is on average."""

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, whole, worked
from model.worked.source import TWO_LAYERS

CLAIM = (0.1, 0.15)  # the mean slope that one document calls frequent


@worked(
    "§2",
    "The slopes of the softmax, and saturation",
    "How far a weight moves when a score moves is p(1−p). "
    "Where a weight is near 0 or 1 almost nothing moves, and nothing is learned.",
    given("scores", "Scores", [2, 4, 1], "score"),
    given("stretch", "Factors c", [0.25, 0.5, 1, 2, 4, 8], "factor", lowest=0),
)
def softmax_slopes(sheet: Sheet, scores: Array, stretch: Array) -> None:
    weights, formula = attention.softmax(scores), r"p_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Weights", formula, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    sheet.remark("Positive numbers that sum to 1: a discrete distribution over the keys.")

    formula = r"\frac{\partial p_i}{\partial s_i} = p_i\,(1 - p_i)"
    own = attention.own_slopes(weights)
    sheet.step("Slope of each weight with its own score", formula, own, "score")
    sheet.numbers(r"@\,(1 - @) = @", weights[0], weights[0], own[0])
    sheet.remark("It lies between 0 and 0.25, and reaches 0.25 where the weight is one half.")

    formula = r"\frac{\partial p_i}{\partial s_j} = -p_i\,p_j \quad (i \ne j)"
    slopes = attention.softmax_slopes(weights)
    sheet.step("Slope of every weight with every score", formula, slopes, "weight", "score")
    sheet.numbers(r"-@ \cdot @ = @", weights[0], weights[1], slopes[0, 1])
    sheet.remark("Each row sums to 0: raising every score by the same amount changes no weight.")

    formula = r"p_i\,(1 - p_i)\ \text{of}\ \mathrm{softmax}(c \cdot s)"
    slopes = np.stack([attention.own_slopes(attention.softmax(scores * c)) for c in stretch])
    rows = tuple(f"c = {factor:g}" for factor in stretch)
    sheet.step("The same slopes with the scores multiplied", formula, slopes, rows, "score")
    sheet.numbers(r"c = @:\ @", stretch[-1], slopes[-1])
    sheet.remark("Large scores push weights to 0 or 1 and slopes to 0: the softmax saturates.")


@worked(
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
def average_gradient(sheet: Sheet, keys: Array, spreads: Array) -> None:
    rows = tuple(f"{count:g} keys" for count in keys)
    columns = tuple(f"spread {spread:g}" for spread in spreads)
    formula, equal = r"\frac{1}{n}\left(1 - \frac{1}{n}\right)", (keys - 1) / keys**2
    sheet.step("Slope with equal scores", formula, equal, rows)
    sheet.numbers(r"n = @:\ @", keys[0], equal[0])
    sheet.remark("The more keys share the weight, the smaller each one's slope.")

    formula = r"\mathbb{E}\,[\,p_i\,(1 - p_i)\,],\quad s_j \sim \mathcal{N}(0,\ \text{spread}^2)"
    means = np.array([[attention.mean_own_slope(int(n), float(s)) for s in spreads] for n in keys])
    sheet.step("Average slope for random scores", formula, means, rows, columns)
    sheet.numbers(r"n = @,\ \text{spread } @:\ @", keys[0], spreads[0], means[0, 0])
    inside = (means >= CLAIM[0]) & (means <= CLAIM[1])
    found = ", ".join(f"{rows[i]} at {columns[j]}" for i, j in np.argwhere(inside))
    sheet.remark(
        f"“{TWO_LAYERS.title}” calls {CLAIM[0]:g} to {CLAIM[1]:g} frequent: here it is so in "
        f"{inside.sum()} of {means.size} cases{': ' if found else ''}{found}."
    )
