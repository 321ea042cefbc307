"""The softmax by hand: exponentials, their sum, the weights, and the axis it runs along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, worked
from model.worked.printed import Printed
from model.worked.source import TWO_LAYERS

_SCORES = numbered("score", 3)
_LESSON = TWO_LAYERS.at("Quick lesson on softmax")
_WALK = TWO_LAYERS.at("Forward Function Walkthrough")
_QUERIES, _KEYS = numbered("query", 3), numbered("key", 3)


@worked(
    "softmax-of-three",
    "§3",
    "Softmax of three scores",
    "Take e to each score, add them up, and divide each by the sum.",
    given("scores", "Scores", [0.9, -1.5, 3.2], _SCORES),
)
def _of_three(values: Values) -> tuple[Step, ...]:
    scores = values["scores"]
    exponentials = np.exp(scores)
    total = exponentials.sum()
    weights = attention.softmax(scores)
    return (
        Step(
            "Exponentials",
            r"e^{s_j}",
            exponentials,
            rf"{latex.powers(scores)[0]} = {latex.number(exponentials[0])}",
            columns=_SCORES,
            notes=Printed(
                "2.45960311116 0.22313016014 24.5325301971",
                _LESSON,
                "[2.45960311116, 0.22313016014, 24.5325301971]",
                "The second figure is cut off, not rounded: its next digit is an 8.",
            ),
        ),
        Step(
            "Their sum",
            r"\sum_m e^{s_m}",
            total,
            rf"{latex.total(exponentials)} = {latex.number(total)}",
            notes=Printed("27.2152634684", _LESSON, "2.45960311116/27.2152634684"),
        ),
        Step(
            "Weights",
            r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
            weights,
            rf"\frac{{{latex.number(exponentials[0])}}}{{{latex.number(total)}}} = "
            rf"{latex.number(weights[0])}",
            columns=_SCORES,
            quantity="weight",
            notes=Printed(
                "0.090376136 0.008198731 0.901425133",
                _LESSON,
                "[0.090376136, 0.008198731, 0.901425133]",
                "All three are right to six decimals at most: 2.45960311116 / 27.2152634684 is "
                "0.090375870.",
            ),
        ),
        _without_the_largest(scores),
    )


def _without_the_largest(scores: Array) -> Step:
    lowered = scores - scores.max()
    weights = np.exp(lowered) / np.exp(lowered).sum()
    return Step(
        "The same with the largest score taken off first",
        r"a_j = \frac{e^{s_j - s_{\max}}}{\sum_m e^{s_m - s_{\max}}}",
        weights,
        rf"{latex.row(lowered)} \to {latex.row(weights)}",
        columns=_SCORES,
        quantity="weight",
        comment="Computers do it this way: no exponential can then be too large.",
    )


def _ratio(first: float, second: float) -> float:
    if second == 0:
        raise ValueError(f"Score 0 is {second:g}, and {first:g} / {second:g} has no value.")
    return first / second


@worked(
    "twice-the-score",
    "§3",
    "Twice the score is far more than twice the weight",
    "Scores 4 and 2 differ by a factor 2, but their weights by a factor e².",
    given("scores", "Scores", [2, 4, 1], _SCORES),
)
def _twice_the_score(values: Values) -> tuple[Step, ...]:
    scores = values["scores"]
    weights = attention.softmax(scores)
    lead = float(scores[1] - scores[0])
    of_scores = _ratio(float(scores[1]), float(scores[0]))
    return (
        Step(
            "Weights",
            r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
            weights,
            latex.softmax(scores, weights),
            columns=_SCORES,
            quantity="weight",
            notes=Printed(
                "0.12 0.84 0.04",
                _WALK,
                "[0.12, 0.84, 0.04]",
                "The first weight is .1142, which rounds to .11 and not to .12.",
            ),
        ),
        Step(
            "Ratio of the scores",
            r"\frac{s_1}{s_0}",
            np.array(of_scores),
            rf"\frac{{{latex.number(scores[1])}}}{{{latex.number(scores[0])}}} = "
            rf"{latex.number(of_scores)}",
            notes=Printed("2x", _WALK, "4.0 is 2x bigger than 2.0"),
        ),
        Step(
            "Ratio of the weights",
            r"\frac{a_1}{a_0} = e^{s_1 - s_0}",
            np.exp(lead),
            rf"e^{{{latex.number(lead)}}} = {latex.number(np.exp(lead))}",
            quantity="weight",
            notes=Printed("7x", _WALK, "84 is 7x bigger than 0.12"),
            comment="The softmax turns differences of scores into factors between weights.",
        ),
    )


@worked(
    "softmax-over-keys",
    "§3",
    "Which axis the softmax runs along",
    "Weights are shares of one query's attention, so the softmax runs over the keys.",
    given("scores", "Scores", [[1, 0, 1], [0, 1, 1], [1, 1, 2]], _QUERIES, _KEYS),
)
def _over_keys(values: Values) -> tuple[Step, ...]:
    scores = values["scores"]
    rows, columns = steps.weigh(scores, _QUERIES, _KEYS), attention.softmax(scores, axis=0)
    sums = np.stack([rows.result.sum(axis=1), columns.sum(axis=1)])
    return (
        replace(
            rows,
            title="Softmax along the last axis: over the keys",
            comment="dim=-1 of (batch, heads, queries, keys): each query spreads 1 over its keys.",
        ),
        Step(
            "Softmax along the other axis: over the queries",
            r"\frac{e^{s_{ij}}}{\sum_m e^{s_{mj}}}",
            columns,
            rf"\text{{column 0: }} {latex.softmax(scores[:, 0], columns[:, 0])}",
            _QUERIES,
            _KEYS,
            "other",
            comment="A common mistake: now the columns sum to 1 and the rows do not.",
        ),
        Step(
            "Sum of each query's row",
            r"\sum_j a_{ij}",
            sums,
            rf"{latex.total(columns[0])} = {latex.number(sums[1, 0])}",
            ("over the keys", "over the queries"),
            _QUERIES,
        ),
    )
