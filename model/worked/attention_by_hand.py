"""Self-attention worked by hand: "The cat sat", the one-hot picture, and the soft look-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Input, Step, Values, given, numbered, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

TOKENS = ("The", "Cat", "Sat")
DIMENSIONS = numbered("dim", 4)
_SELF_ATTENTION = INTRODUCTION.at("Self attention at higher and detailed level")
_SAME = Printed("1 0 1 0; 0 1 0 1; 1 1 1 1", _SELF_ATTENTION, "Q(the)=K(the)=V(the) = [1010]")
_LEARNED = (
    "The matrix is the identity here, so that nothing changes; "
    "in a model it starts random and is learned by back-propagation."
)


def _matrix(letter: str) -> Input:
    return given(f"{letter.lower()}_matrix", f"W_{letter}", np.eye(4), DIMENSIONS, DIMENSIONS)


@worked(
    "the-cat-sat",
    "§1",
    "The cat sat: self-attention by hand",
    "Every token looks at every token, turns the matches into weights, "
    "and takes the weighted sum of the values.",
    given(
        "embedding", "Embeddings E", [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]], TOKENS, DIMENSIONS
    ),
    _matrix("Q"),
    _matrix("K"),
    _matrix("V"),
)
def _cat_sat(values: Values) -> tuple[Step, ...]:
    embedding = values["embedding"]
    query = steps.project(embedding, values["q_matrix"], "Q", TOKENS, "E")
    key = steps.project(embedding, values["k_matrix"], "K", TOKENS, "E")
    value = steps.project(embedding, values["v_matrix"], "V", TOKENS, "E")
    projections = tuple(
        replace(step, notes=_SAME, comment=_LEARNED) for step in (query, key, value)
    )
    score = steps.score(query.result, key.result, TOKENS, TOKENS)
    scaled = steps.scale(score.result, 4, TOKENS, TOKENS, cell=(0, 1))
    weights = steps.weigh(scaled.result, TOKENS, TOKENS)
    return (
        *projections,
        replace(
            score,
            notes=Printed(
                "2 0 2; 0 2 2; 2 2 4",
                _SELF_ATTENTION,
                "Score(Q sat, K sat)=[1111].[1111] Transpose = 4",
            ),
        ),
        replace(
            scaled,
            notes=Printed(
                "1 1 1; _ _ _; _ _ _",
                _SELF_ATTENTION,
                "Scaled score(Q the, K cat)=0/2=1",
                "0/2 is 0. The rows of Cat and Sat are not written out there.",
            ),
        ),
        _softmax_inputs(scaled),
        replace(
            weights,
            notes=Printed(
                "0.4223 0.1554 0.4223; 0.1554 0.4223 0.4223; 0.2119 0.2119 0.5762",
                _SELF_ATTENTION,
                "[0.2119,0.2119,0.5762]",
                "The weight of Sat on itself is .57612, which rounds to .5761 and not to .5762.",
            ),
        ),
        *_cat_sat_output(weights, value),
    )


def _softmax_inputs(scaled: Step) -> Step:
    return replace(
        scaled,
        title="The rows that enter the softmax",
        formula=r"\mathrm{softmax}\!\left(\frac{q_i K^\top}{\sqrt{d_k}}\right)",
        numbers=rf"\mathrm{{softmax}}({latex.row(scaled.result[1])})\ \text{{for Cat}}",
        notes=Printed(
            "1 0 1; 0 2 2; 2 2 4",
            _SELF_ATTENTION,
            "Softmax(0,2,2)",
            "The rows of Cat and Sat are the unscaled scores, "
            "but the weights printed beside them are those of the scaled ones.",
        ),
    )


def _cat_sat_output(weights: Step, value: Step) -> tuple[Step, ...]:
    own = weights.result[0]
    output = steps.sum_up(weights.result, value.result, TOKENS)
    terms = Step(
        "The terms of The's output",
        r"a_{\text{The},\,j}\; v_j",
        own[:, None] * value.result,
        numbers=rf"\text{{dim 0: }} {latex.total(own * value.result[:, 0])}",
        rows=TOKENS,
        columns=DIMENSIONS,
        quantity="value",
        notes=Printed(
            "0.4223 0 0.4223 0; 0 0.1554 0 0.1554; 0.4223 0.4223 0.4223 0.4223",
            _SELF_ATTENTION,
            "[0.4223,0,0.4223,0]+[0,0.1554,0,0.1554]+[0.4223,0.4223,0.4223,0.4223]",
        ),
        comment="Adding the three rows of this table gives the first row of the output.",
    )
    return (
        terms,
        replace(
            output,
            notes=Printed(
                "1.2669 0.9999 1.2669 0.9999; _ _ _ _; _ _ _ _",
                _SELF_ATTENTION,
                "[1.2669,0.9999,1.2669,0.9999]",
                "The's row is added up wrongly: its own terms .4223 + .4223 make .8446 and "
                ".1554 + .4223 make .5777. Cat and Sat are left out there.",
            ),
        ),
    )


_PICTURE = Printed(
    "0.8 0.3 0.4; 0.4 0.6 0.2; 0.3 0.4 0.8",
    _SELF_ATTENTION,
    "[0.8,0.3,0.4 0.4,0.6,0.2 0.3,0.4,0.8]",
    "With one-hot inputs and W = I the output rows are the weights and must sum to 1; "
    "the printed rows add up to 1.5, 1.2 and 1.5.",
)


@worked(
    "one-hot-picture",
    "§1",
    "One-hot inputs: the outputs are the weights",
    "With one-hot inputs and W = I the output rows are the weights themselves, "
    "so each must sum to 1.",
    given("embedding", "One-hot inputs", np.eye(3), TOKENS, "dim"),
)
def _one_hot_picture(values: Values) -> tuple[Step, ...]:
    vectors = values["embedding"]
    score = steps.score(vectors, vectors, TOKENS, TOKENS, cell=(0, 0))
    scaled = steps.scale(score.result, 3, TOKENS, TOKENS, cell=(0, 0))
    weights = steps.weigh(scaled.result, TOKENS, TOKENS)
    output = steps.sum_up(weights.result, vectors, TOKENS)
    sums = output.result.sum(axis=1)
    return (
        replace(score, formula=r"S = E E^\top"),
        scaled,
        weights,
        replace(output, notes=_PICTURE),
        Step(
            "Sum of each output row",
            r"\sum_d z_{id}",
            sums,
            numbers=rf"{latex.total(output.result[0])} = {latex.number(sums[0])}",
            columns=TOKENS,
            comment="Each output row is a row of weights here, so every sum is 1.",
        ),
    )


@worked(
    "soft-look-up",
    "§1",
    "Query, key and value: a soft look-up",
    "The query is what a token looks for, the key what a token offers to be found by, "
    "the value what it hands over. It works like a dict whose keys match by degree.",
    given("query", "Query", [1, 0.5], "dim"),
    given("keys", "Keys", [[1, 0], [0, 1], [1, 1]], "entry", "dim"),
    given("values", "Values", [[10, 0], [0, 10], [5, 5]], "entry", "dim"),
    given("sharpness", "Sharpness", 1, lowest=0, highest=100),
)
def _soft_look_up(values: Values) -> tuple[Step, ...]:
    entries = numbered("entry", 3)
    query, key, value = values["query"][None], values["keys"], values["values"]
    score = steps.score(query, key, ("the query",), entries)
    scaled = score.result * values["sharpness"]
    weights = steps.weigh(scaled, ("the query",), entries)
    best = np.eye(3)[[int(score.result.argmax())]]
    hard = steps.sum_up(best, value, ("the query",))
    return (
        replace(score, title="How well each key matches the query"),
        replace(
            hard,
            title="What a dict would return: the value of the best key alone",
            comment="A dict gives one value; here that is the value whose key scores highest.",
        ),
        replace(
            weights,
            title="The match as weights",
            formula=r"a = \mathrm{softmax}(\text{sharpness} \cdot q K^\top)",
        ),
        replace(
            steps.sum_up(weights.result, value, ("the query",)),
            title="What attention returns: every value, by the weight of its key",
            comment="The larger the sharpness, the closer this comes to the dict.",
        ),
    )
