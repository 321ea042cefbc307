"""Why scores are divided by √d_k: two keys by hand, and the spread of random scores by sampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_QUERY = ("query",)
_KEYS = numbered("key", 2, start=1)
_SELF_ATTENTION = INTRODUCTION.at("Self attention at higher and detailed level, Scaling")
_SCALINGS = ("not scaled", "divided by √d_k")


@worked(
    "two-keys-scaled",
    "§2",
    "Two keys, with and without scaling",
    "Dividing the scores by √d_k keeps the weights from piling up on one key.",
    given("query", "Query", [2, 3, 4, 1], "dim"),
    given("keys", "Keys", [[1, 0, 1, 0], [0, 1, 0, 1]], _KEYS, "dim"),
)
def _two_keys(values: Values) -> tuple[Step, ...]:
    query, keys = values["query"][None], values["keys"]
    score = steps.score(query, keys, _QUERY, _KEYS)
    scaled = steps.scale(score.result, query.shape[1], _QUERY, _KEYS)
    raw = steps.weigh(score.result, _QUERY, _KEYS)
    return (
        replace(score, notes=Printed("6 4", _SELF_ATTENTION, "2*1+*0+4*1+1*0= 6")),
        replace(
            raw,
            title="Weights without scaling",
            notes=Printed("0.88 0.12", _SELF_ATTENTION, "[0.88,0.12]"),
        ),
        replace(scaled, notes=Printed("3 2", _SELF_ATTENTION, "[6/2,4/2]=[3,2]")),
        replace(
            steps.weigh(scaled.result, _QUERY, _KEYS),
            title="Weights with scaling",
            notes=Printed("0.73 0.27", _SELF_ATTENTION, "[0.73,0.27]"),
            comment="Smaller scores leave more weight for the second key.",
        ),
    )


@worked(
    "softmax-of-ten-and-one",
    "§2",
    "A lead of nine: softmax of 10 and 1",
    "The softmax looks at differences of scores. A difference of 9 leaves almost nothing "
    "for the smaller score.",
    given("scores", "Scores", [10, 1], numbered("score", 2, start=1)),
)
def _ten_and_one(values: Values) -> tuple[Step, ...]:
    scores = values["scores"]
    exponentials = np.exp(scores)
    weights = attention.softmax(scores)
    keys = numbered("score", 2, start=1)
    return (
        Step(
            "Exponentials",
            r"e^{s_j}",
            exponentials,
            numbers=rf"{latex.powers(scores)[0]} = {latex.number(exponentials[0])}",
            columns=keys,
        ),
        Step(
            "Weights",
            r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
            weights,
            numbers=latex.softmax(scores, weights),
            columns=keys,
            quantity="weight",
            notes=Printed(
                "0.99 0.01",
                _SELF_ATTENTION,
                "softmax(10,1) = [0.99,0.01]",
                "A lead of 9 is a factor e⁹ ≈ 8103, so the second weight is .0001 and not .01.",
            ),
        ),
    )


def _sampled_scores(seed: float, queries: float, keys: float, width: float) -> Array:
    """Scores (query, key) of random standard normal vectors; each query has keys of its own."""
    generator = np.random.default_rng([int(seed), int(width)])
    query = generator.standard_normal((int(queries), 1, int(width)))
    key = generator.standard_normal((int(queries), int(keys), int(width)))
    return attention.dot_products(query, key)[:, 0, :]


@worked(
    "variance-of-a-dot-product",
    "§2",
    "The variance of a dot product is d_k",
    "Random queries and keys of unit variance are drawn again and again. "
    "The wider they are, the more their scores spread, unless they are scaled.",
    whole("widths", "d_k", [4, 8, 16, 32, 64, 128, 256, 512], 1, 512, "size"),
    whole("queries", "Queries drawn", 200, 20, 400),
    whole("keys", "Keys for each query", 16, 2, 32),
    whole("seed", "Seed", 0, 0, 9999),
)
def _variance(values: Values) -> tuple[Step, ...]:
    widths = values["widths"]
    sampled = [
        _sampled_scores(float(values["seed"]), float(values["queries"]), float(values["keys"]), d)
        for d in widths
    ]
    pairs = [(scores, scores / np.sqrt(d)) for scores, d in zip(sampled, widths, strict=True)]
    weights = [tuple(attention.softmax(scores) for scores in pair) for pair in pairs]
    columns = tuple(f"d_k {int(width)}" for width in widths)
    first = int(widths[0])

    def table(title: str, formula: str, rows: list[list[float]], comment: str) -> Step:
        result = np.array(rows).T
        example = rf"d_k = {first}:\ {latex.row(result[:, 0])}"
        return Step(title, formula, result, example, _SCALINGS, columns, comment=comment)

    return (
        Step(
            "Variance the law gives",
            r"\mathrm{Var}(q \cdot k) = \sum_{i=1}^{d_k} \mathrm{Var}(q_i k_i) = d_k",
            np.stack([widths, widths / widths]),
            rf"d_k = {first}:\ \frac{{{first}}}{{\sqrt{{{first}}}^2}} = 1",
            _SCALINGS,
            columns,
            comment="A sum of d_k products of variance 1 each; dividing by √d_k brings it back to 1.",
        ),
        table(
            "Variance of the sampled scores",
            r"\frac{1}{n}\sum (s - \bar s)^2",
            [[float(scores.var()) for scores in pair] for pair in pairs],
            "Sampled scores follow the law up to chance.",
        ),
        table(
            "Entropy of the weights, in nats",
            r"-\sum_j a_j \ln a_j",
            [[float(attention.entropy(w).mean()) for w in pair] for pair in weights],
            "Without scaling the entropy falls as d_k grows; with it it stays where it was.",
        ),
        table(
            "Largest weight, on average",
            r"\max_j a_j",
            [[float(w.max(axis=-1).mean()) for w in pair] for pair in weights],
            "Without scaling one key takes nearly all the weight at large d_k.",
        ),
    )
