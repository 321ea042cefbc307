"""Masks at work: the four-by-four case, and two routes to causal weights."""

from __future__ import annotations

from dataclasses import replace

from model.arithmetic import attention
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_TOKENS = ("y1", "y2", "y3", "pad")
_KEYS = numbered("key", 4)
_DECODER = INTRODUCTION.at("Decoder in transformers")
_PRODUCTS = "0.3 0.7 1.1 0.0; 0.7 1.9 3.1 0.0; 1.1 3.1 5.1 0.0; 0.0 0.0 0.0 0.0"
_QUOTED = "Score:-[[0.3 0.7 1.1 0.0] [0.7 1.9 3.1 0.0] [1.1 3.1 5.1 0.0] [0.0 0.0 0.0 0.0]]"


@worked(
    "four-by-four-masked",
    "§5",
    "Four tokens, one of them padding",
    "The mask hides the future and the padding before the softmax; what is left shares the weight.",
    given(
        "vectors",
        "Inputs (Q = K = V)",
        [
            [0.1, 0.2, 0.3, 0.4],
            [0.5, 0.6, 0.7, 0.8],
            [0.9, 1.0, 1.1, 1.2],
            [0.0, 0.0, 0.0, 0.0],
        ],
        _TOKENS,
        "dim",
    ),
    whole("real", "1 for a real token, 0 for padding", [1, 1, 1, 0], 0, 1, _TOKENS),
    given("fill", "Fill for masked scores", -1e9, lowest=-1e20, highest=0),
)
def _four_by_four(values: Values) -> tuple[Step, ...]:
    vectors, fill = values["vectors"], float(values["fill"])
    allowed = attention.causal_mask(4) * values["real"]
    products = steps.score(vectors, vectors, _TOKENS, _TOKENS, cell=(1, 1))
    scaled = steps.scale(products.result, 4, _TOKENS, _TOKENS, cell=(1, 1))
    hidden = steps.hide(scaled.result, allowed, fill, _TOKENS, _TOKENS)
    weights = steps.weigh(hidden.result, _TOKENS, _TOKENS, row=2, allowed=allowed)
    return (
        replace(
            products,
            notes=Printed(
                _PRODUCTS,
                _DECODER,
                _QUOTED,
                "For 1.9, 3.1 and 5.1 the dot products are 1.74, 2.78 and 4.46.",
            ),
        ),
        replace(
            scaled,
            notes=Printed(
                _PRODUCTS,
                _DECODER,
                _QUOTED,
                "The same table stands under the formula Q·Kᵀ/2, but nothing in it is halved.",
            ),
        ),
        Step(
            "Mask: look-ahead times padded keys",
            r"M_{ij} = m_j\ \text{where } j \le i",
            allowed,
            rf"M_{{\text{{pad}}}} = {latex.row(allowed[3])}",
            _TOKENS,
            _TOKENS,
            notes=Printed("1 0 0 0; 1 1 0 0; 1 1 1 0; 1 1 1 0", _DECODER, "1*1, 1*0]] [1 1 1 0]"),
            blocked=allowed == 0,
        ),
        hidden,
        _four_weights(weights),
        steps.sum_up(weights.result, vectors, _TOKENS, row=1),
        *_four_unscaled(products.result, allowed, fill, vectors),
    )


def _four_weights(weights: Step) -> Step:
    return replace(
        weights,
        notes=Printed(
            "1.0 0 0 0; 0.3 0.7 0 0; 0.1 0.3 0.6 0; 1.0 0 0 0",
            _DECODER,
            "[1.0 0 0 0] [0.3 0.7 0 0] [0.1 0.3 0.6 0] [1.0 0 0 0]",
            "The second row printed fits the dot products as they are and the third the halved ones; "
            "the last row has three equal scores, so its weights are 1/3 each.",
        ),
    )


def _four_unscaled(products: Array, allowed: Array, fill: float, value: Array) -> tuple[Step, ...]:
    hidden = attention.masked(products, allowed, fill)
    weights = steps.weigh(hidden, _TOKENS, _TOKENS, row=2, allowed=allowed)
    return (
        replace(
            weights,
            title="Weights without scaling, for comparison",
            comment="Without the division by 2 the weights lie further apart.",
        ),
        replace(
            steps.sum_up(weights.result, value, _TOKENS, row=1),
            title="Output without scaling, for comparison",
        ),
    )


@worked(
    "two-routes-to-causal",
    "§5",
    "Two routes to causal weights",
    "Writing −∞ before the softmax, or zeroing the future after it and dividing each row "
    "by its sum, comes to the same.",
    given(
        "scores",
        "Scaled scores",
        [[1, 0, 1], [0, 1, 1], [1, 1, 2]],
        ("The", "Cat", "Sat"),
        ("The", "Cat", "Sat"),
        lowest=-30,
        highest=30,
    ),
)
def _two_routes(values: Values) -> tuple[Step, ...]:
    scores, tokens = values["scores"], ("The", "Cat", "Sat")
    allowed = attention.causal_mask(3)
    hidden = attention.masked(scores, allowed)
    first = steps.weigh(hidden, tokens, tokens, row=1, allowed=allowed)
    full = steps.weigh(scores, tokens, tokens, row=1)
    zeroed = _zeroed_after(full.result, allowed, tokens)
    return (
        replace(first, title="Route 1: −∞ in the future, then softmax"),
        replace(full, title="Route 2: softmax over everything first"),
        *zeroed,
        steps.difference(
            first.result,
            zeroed[-1].result,
            "Route 1 minus route 2",
            tokens,
            tokens,
            comment="The sum over all keys cancels, so both routes give the same weights.",
        ),
    )


def _zeroed_after(weights: Array, allowed: Array, tokens: tuple[str, ...]) -> tuple[Step, ...]:
    """The rest of route 2: the future goes after the softmax, and each row is divided by what is left."""
    zeroed, blocked = weights * allowed, allowed == 0
    sums = zeroed.sum(axis=1)
    again = zeroed / sums[:, None]
    return (
        Step(
            "Route 2: the future set to zero",
            r"a_{ij}\, M_{ij}",
            zeroed,
            rf"\text{{Cat: }} {latex.row(zeroed[1])}",
            tokens,
            tokens,
            "weight",
            blocked=blocked,
        ),
        Step(
            "Route 2: what is left of each row",
            r"\sum_j a_{ij}\, M_{ij}",
            sums,
            rf"\text{{Cat: }} {latex.total(zeroed[1])} = {latex.number(sums[1])}",
            columns=tokens,
        ),
        Step(
            "Route 2: each row divided by its sum",
            r"\frac{a_{ij}\, M_{ij}}{\sum_m a_{im}\, M_{im}}",
            again,
            rf"\text{{Cat: }} \frac{{{latex.row(zeroed[1])}}}{{{latex.number(sums[1])}}} = "
            rf"{latex.row(again[1])}",
            tokens,
            tokens,
            "weight",
            blocked=blocked,
        ),
    )
