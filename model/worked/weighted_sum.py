"""The weighted sum: a new vector made of shares of the values."""

from __future__ import annotations

from dataclasses import replace

from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Step, Values, given, numbered, worked
from model.worked.printed import Printed
from model.worked.source import TWO_LAYERS

_TOKENS = ("The", "Cat", "Sat")


@worked(
    "weighted-sum-of-cat",
    "§4",
    "The new Cat: 30 % The, 38 % Cat, 32 % Sat",
    "The output of attention is a mix of the values, each by its weight. "
    "The weights are given; the values were chosen for this page.",
    given("weights", "Weights of Cat", [0.3, 0.38, 0.32], _TOKENS, lowest=0, highest=1),
    given("values", "Values V", [[1, 0, 2, 0], [0, 3, 0, 1], [1, 1, 1, 1]], _TOKENS, "dim"),
)
def _cat(values: Values) -> tuple[Step, ...]:
    weights, value = values["weights"], values["values"]
    shares = 100.0 * weights
    terms = weights[:, None] * value
    return (
        Step(
            "Shares in percent",
            r"100 \cdot a_j",
            shares,
            rf"100 \cdot {latex.row(weights)} = {latex.row(shares)}",
            columns=_TOKENS,
            quantity="weight",
            notes=Printed(
                "30% 38% 32%",
                TWO_LAYERS.at("Forward Function Walkthrough"),
                '30% by "The", 38% by "Cat/Itself", 32% by "Sat"',
            ),
        ),
        Step(
            "Sum of the weights",
            r"\sum_j a_j",
            weights.sum(),
            rf"{latex.total(weights)} = {latex.number(weights.sum())}",
            quantity="weight",
            comment="A softmax always gives weights that sum to 1.",
        ),
        Step(
            "Each value times its weight",
            r"a_j\, v_j",
            terms,
            rf"{latex.number(weights[0])}\,{latex.row(value[0])} = {latex.row(terms[0])}",
            _TOKENS,
            numbered("dim", 4),
            "value",
        ),
        replace(
            steps.sum_up(weights[None], value, ("Cat",)),
            title="The new vector of Cat",
            comment="The sum of the three rows above: a mix of the values by their shares.",
        ),
    )
