"""The softmax by hand, the axis it runs along, and the weighted sum that it is for."""

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, worked

_QUERIES, _KEYS = numbered("query", 3), numbered("key", 3)
_TOKENS = ("The", "Cat", "Sat")
_SOFTMAX = r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"


@worked(
    "§3",
    "Softmax of three scores",
    "Raise e to each score, add up the results, and divide each by the sum.",
    given("scores", "Scores", [0.9, -1.5, 3.2], "score"),
)
def softmax_of_three(sheet: Sheet, scores: Array) -> None:
    exponentials = sheet.step("Exponentials", r"e^{s_j}", np.exp(scores), "score")
    sheet.numbers("e^{@} = @", scores[0], exponentials[0])
    total = sheet.step("Their sum", r"\sum_m e^{s_m}", exponentials.sum())
    sheet.numbers("@ = @", latex.total(exponentials), total)
    weights = attention.softmax(scores)
    sheet.step("Weights", _SOFTMAX, weights, "score", quantity="weight")
    sheet.numbers(r"\frac{@}{@} = @", exponentials[0], total, weights[0])
    title = "The same with the largest score taken off first"
    formula = r"a_j = \frac{e^{s_j - s_{\max}}}{\sum_m e^{s_m - s_{\max}}}"
    lowered = scores - scores.max()
    shares = np.exp(lowered) / np.exp(lowered).sum()
    sheet.step(title, formula, shares, "score", quantity="weight")
    sheet.numbers(r"@ \to @", lowered, shares)
    sheet.remark("Computers do it this way: no exponential can then be too large.")


@worked(
    "§3",
    "Twice the score is far more than twice the weight",
    "Scores 4 and 2 differ by a factor 2, but their weights by a factor e².",
    given("scores", "Scores", [2, 4, 1], "score"),
)
def twice_the_score(sheet: Sheet, scores: Array) -> None:
    if scores[0] == 0:
        raise ValueError(
            f"Score 0 is {scores[0]:g}, and {scores[1]:g} / {scores[0]:g} has no value."
        )
    weights = attention.softmax(scores)
    sheet.step("Weights", _SOFTMAX, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    ratio = sheet.step("Ratio of the scores", r"\frac{s_1}{s_0}", scores[1] / scores[0])
    sheet.numbers(r"\frac{@}{@} = @", scores[1], scores[0], ratio)
    lead, formula = scores[1] - scores[0], r"\frac{a_1}{a_0} = e^{s_1 - s_0}"
    sheet.step("Ratio of the weights", formula, np.exp(lead), quantity="weight")
    sheet.numbers("e^{@} = @", lead, np.exp(lead))
    sheet.remark("The softmax turns differences of scores into factors between weights.")


@worked(
    "§3",
    "Which axis the softmax runs along",
    "Weights are shares of one query's attention, so the softmax runs over the keys.",
    given("scores", "Scores", [[1, 0, 1], [0, 1, 1], [1, 1, 2]], _QUERIES, _KEYS),
)
def softmax_over_keys(sheet: Sheet, scores: Array) -> None:
    title = "Softmax along the last axis: over the keys"
    rows = sheet.weights(scores, _QUERIES, _KEYS, title=title)
    sheet.remark("dim=-1 of (batch, heads, queries, keys): each query spreads 1 over its keys.")
    title = "Softmax along the other axis: over the queries"
    formula = r"\frac{e^{s_{ij}}}{\sum_m e^{s_{mj}}}"
    columns = attention.softmax(scores, axis=0)
    sheet.step(title, formula, columns, _QUERIES, _KEYS)
    sheet.numbers(r"\text{column 0: } @", latex.softmax(scores[:, 0], columns[:, 0]))
    sheet.remark("A common mistake: now the columns sum to 1 and the rows do not.")
    sums = np.stack([rows.sum(axis=1), columns.sum(axis=1)])
    ways = ("over the keys", "over the queries")
    sheet.step("Sum of each query's row", r"\sum_j a_{ij}", sums, ways, _QUERIES)
    sheet.numbers("@ = @", latex.total(columns[0]), sums[1, 0])


@worked(
    "§4",
    "The new Cat: 30 % The, 38 % Cat, 32 % Sat",
    "The output of attention is a mix of the values, each by its weight. "
    "The weights are the notes' own; the values were chosen for this page.",
    given("weights", "Weights of Cat", [0.3, 0.38, 0.32], _TOKENS, lowest=0, highest=1),
    given("values", "Values V", [[1, 0, 2, 0], [0, 3, 0, 1], [1, 1, 1, 1]], _TOKENS, "dim"),
)
def weighted_sum_of_cat(sheet: Sheet, weights: Array, values: Array) -> None:
    shares = 100.0 * weights
    sheet.step("Shares in percent", r"100 \cdot a_j", shares, _TOKENS, quantity="weight")
    sheet.numbers(r"100 \cdot @ = @", weights, shares)
    sheet.step("Sum of the weights", r"\sum_j a_j", weights.sum(), quantity="weight")
    sheet.numbers("@ = @", latex.total(weights), weights.sum())
    sheet.remark("A softmax always gives weights that sum to 1.")
    terms = weights[:, None] * values
    title = "Each value times its weight"
    sheet.step(title, r"a_j\, v_j", terms, _TOKENS, "dim", quantity="value")
    sheet.numbers(r"@\,@ = @", weights[0], values[0], terms[0])
    sheet.output(weights[None], values, ("Cat",), title="The new vector of Cat")
    sheet.remark("The sum of the three rows above: each value contributes by its share.")
