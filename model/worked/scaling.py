"""Why scores are divided by √d_k: two keys by hand, and the spread of random scores by sampling."""

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, whole, worked

_QUERY = ("query",)
_KEYS = numbered("key", 2, start=1)
_SCORES = numbered("score", 2, start=1)
_SCALINGS = ("not scaled", "divided by √d_k")


@worked(
    "§2",
    "Two keys, with and without scaling",
    "Dividing the scores by √d_k keeps the weights from piling up on one key.",
    given("query", "Query", [2, 3, 4, 1], "dim"),
    given("keys", "Keys", [[1, 0, 1, 0], [0, 1, 0, 1]], _KEYS, "dim"),
)
def two_keys_scaled(sheet: Sheet, query: Array, keys: Array) -> None:
    scores = sheet.scores(query[None], keys, _QUERY, _KEYS)
    sheet.weights(scores, _QUERY, _KEYS, title="Weights without scaling")
    scaled = sheet.scaled(scores, len(query), _QUERY, _KEYS)
    sheet.weights(scaled, _QUERY, _KEYS, title="Weights with scaling")
    sheet.remark("Smaller scores leave more weight for the second key.")


@worked(
    "§2",
    "A lead of nine: softmax of 10 and 1",
    "The softmax depends only on differences of scores. A difference of 9 leaves almost nothing "
    "for the smaller score.",
    given("scores", "Scores", [10, 1], _SCORES),
)
def softmax_of_ten_and_one(sheet: Sheet, scores: Array) -> None:
    exponentials = sheet.step("Exponentials", r"e^{s_j}", np.exp(scores), _SCORES)
    sheet.numbers("e^{@} = @", scores[0], exponentials[0])
    weights, formula = attention.softmax(scores), r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Weights", formula, weights, _SCORES, quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))


def _sampled_scores(seed: int, queries: int, keys: int, width: int) -> Array:
    """Scores (query, key) of random standard normal vectors; each query has keys of its own."""
    generator = np.random.default_rng([seed, width])
    query = generator.standard_normal((queries, 1, width))
    key = generator.standard_normal((queries, keys, width))
    return attention.dot_products(query, key)[:, 0, :]


@worked(
    "§2",
    "The variance of a dot product is d_k",
    "Random queries and keys of unit variance are drawn again and again. "
    "The wider they are, the more their scores spread, unless they are scaled.",
    whole("widths", "d_k", [4, 8, 16, 32, 64, 128, 256, 512], 1, 512, "size"),
    whole("queries", "Queries drawn", 200, 20, 400),
    whole("keys", "Keys for each query", 16, 2, 32),
    whole("seed", "Seed", 0, 0, 9999),
)
def variance_of_a_dot_product(
    sheet: Sheet, widths: Array, queries: int, keys: int, seed: int
) -> None:
    sampled = [_sampled_scores(seed, queries, keys, int(d)) for d in widths]
    pairs = [(scores, scores / np.sqrt(d)) for scores, d in zip(sampled, widths, strict=True)]
    columns = tuple(f"d_k {d:g}" for d in widths)
    formula = r"\mathrm{Var}(q \cdot k) = \sum_{i=1}^{d_k} \mathrm{Var}(q_i k_i) = d_k"
    law = np.stack([widths, widths / widths])
    sheet.step("Variance the law gives", formula, law, _SCALINGS, columns)
    sheet.numbers(r"d_k = @:\ \frac{@}{\sqrt{@}^2} = 1", *[widths[0]] * 3)
    sheet.remark("A sum of d_k products of variance 1 each; dividing by √d_k brings it back to 1.")
    for title, formula, statistic, comment in (
        (
            "Variance of the sampled scores",
            r"\frac{1}{n}\sum (s - \bar s)^2",
            lambda scores: scores.var(),
            "Sampled scores follow the law, apart from chance.",
        ),
        (
            "Entropy of the weights, in nats",
            r"-\sum_j a_j \ln a_j",
            lambda scores: attention.entropy(attention.softmax(scores)).mean(),
            "Without scaling the entropy falls as d_k grows; with scaling it stays the same.",
        ),
        (
            "Largest weight, on average",
            r"\max_j a_j",
            lambda scores: attention.softmax(scores).max(axis=-1).mean(),
            "Without scaling one key takes nearly all the weight at large d_k.",
        ),
    ):
        table = np.array([[statistic(scores) for scores in pair] for pair in pairs]).T
        sheet.step(title, formula, table, _SCALINGS, columns)
        sheet.numbers(r"d_k = @:\ @", widths[0], table[:, 0])
        sheet.remark(comment)
