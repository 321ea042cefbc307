"""What to write into a masked score, and a row with every key masked."""

from __future__ import annotations

import math

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, whole, worked

_KEYS = numbered("key", 4)
_WRITTEN = ("−∞ written", "−1e9 written", "−1e20 written", "0 written", "0 added")
_FILLS = (attention.HIDDEN, -1e9, -1e20, 0.0)


def _filled(scores: Array, mask: Array) -> Array:
    """The scores under each fill, (fill, key); the last row adds 0 instead."""
    return np.stack([*(attention.masked(scores, mask, fill) for fill in _FILLS), scores])


@worked(
    "fill-values",
    "§5",
    "What to write into a masked score",
    "A hidden score must become so small that e to it is 0. Zero itself is not small.",
    given("scores", "Scores (the last two chosen here)", [2.5, 1.3, 0.7, 1.9], _KEYS),
    whole("mask", "Mask", [1, 1, 0, 0], 0, 1, _KEYS),
    whole("d_k", "d_k", 4, 1, 512),
)
def _fill_values(values: Values) -> tuple[Step, ...]:
    scores, mask = values["scores"], values["mask"]
    if not mask.any():
        raise ValueError("The mask hides all 4 keys; leave at least 1 of them open.")
    filled = _filled(scores, mask)
    exponentials, weights = np.exp(filled), attention.softmax(filled)
    hidden = (mask == 0) & (exponentials == 0)
    return (
        Step(
            "Exponentials under each fill",
            r"e^{-\infty} = 0,\quad e^{-10^9} = 0,\quad e^0 = 1",
            exponentials,
            rf"e^{{{latex.number(scores[0])}}} = {latex.number(np.exp(scores[0]))}",
            _WRITTEN,
            _KEYS,
            comment="A fill of 0 hides nothing: e⁰ = 1, and adding 0 changes no score.",
            blocked=hidden,
        ),
        Step(
            "Weights with −∞",
            r"a = \mathrm{softmax}(\tilde s)",
            weights[0],
            rf"\mathrm{{softmax}}({latex.row(filled[0])}) = {latex.row(weights[0])}",
            columns=_KEYS,
            quantity="weight",
            blocked=mask == 0,
        ),
        Step(
            "Weights under each fill",
            r"a = \mathrm{softmax}(\tilde s)",
            weights,
            rf"\text{{0 written: }} {latex.softmax(filled[3], weights[3])}",
            _WRITTEN,
            _KEYS,
            "weight",
            comment="−∞, −1e9 and −1e20 give the same weights; 0 lets the hidden tokens in.",
            blocked=hidden,
        ),
        *_fill_and_scale(scores, mask, math.sqrt(float(values["d_k"]))),
    )


def _fill_and_scale(scores: Array, mask: Array, root: float) -> tuple[Step, ...]:
    before = attention.softmax(_filled(scores, mask) / root)
    filled = _filled(scores / root, mask)
    after = attention.softmax(filled)
    return (
        Step(
            "Filled before scaling, minus filled after it",
            r"\mathrm{softmax}\!\left(\frac{\mathrm{fill}(s)}{\sqrt{d_k}}\right) - "
            r"\mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)",
            before - after,
            rf"\sqrt{{d_k}} = {latex.number(root)}",
            _WRITTEN,
            _KEYS,
            comment="For −∞ the order makes no difference, for fills this large no visible one.",
        ),
        Step(
            "Weights with −∞, filled after scaling",
            r"a = \mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)",
            after[0],
            rf"\mathrm{{softmax}}({latex.row(filled[0])}) = "
            rf"{latex.row(after[0])}",
            columns=_KEYS,
            quantity="weight",
            blocked=mask == 0,
        ),
    )


@worked(
    "fully-masked-row",
    "§5",
    "A row with every key masked",
    "When nothing may be looked at, −1e9 gives a uniform row and −∞ gives 0/0. "
    "This app gives zeros.",
    given("scores", "Scores", [2.5, 1.3, 0.7], "key"),
    given("fill", "Fill for masked scores", -1e9, lowest=-1e20, highest=0),
)
def _fully_masked(values: Values) -> tuple[Step, ...]:
    scores, fill = values["scores"], float(values["fill"])
    nothing = np.zeros_like(scores)
    written = attention.masked(scores, nothing, fill)
    hidden = attention.masked(scores, nothing)
    uniform, added = attention.softmax(written), attention.softmax(scores + fill)
    blocked = nothing == 0
    keys = numbered("key", len(scores))
    return (
        Step(
            "Every score replaced by the fill",
            r"\tilde s_j = \text{fill}",
            written,
            rf"\tilde s = {latex.row(written)}",
            columns=keys,
            quantity="score",
            blocked=blocked,
        ),
        Step(
            "Weights: a uniform row",
            r"\frac{e^{f}}{n\, e^{f}} = \frac{1}{n}",
            uniform,
            rf"\frac{{1}}{{{len(scores)}}} = {latex.number(uniform[0])}",
            columns=keys,
            quantity="weight",
            comment="Equal scores give equal weights: the row looks at what it should not see.",
        ),
        Step(
            "The fill added instead of written",
            r"\mathrm{softmax}(s_j + \text{fill})",
            added,
            rf"\mathrm{{softmax}}({latex.row(scores)} + {latex.factor(fill)}) = {latex.row(added)}",
            columns=keys,
            quantity="weight",
            comment="Adding one number to every score leaves its differences, "
            "so nothing is hidden (as far as float64 keeps the differences).",
        ),
        *_no_key_open(hidden, keys),
    )


def _no_key_open(hidden: Array, keys: tuple[str, ...]) -> tuple[Step, ...]:
    exponentials = np.exp(hidden)
    blocked = exponentials == 0
    return (
        Step(
            "Exponentials with −∞",
            r"e^{-\infty} = 0",
            exponentials,
            rf"e^{{-\infty}} + e^{{-\infty}} + \ldots = {latex.number(exponentials.sum())}",
            columns=keys,
            blocked=blocked,
            comment="Their sum is 0, so plain arithmetic divides 0 by 0: NaN comes from here.",
        ),
        Step(
            "Weights with −∞, as this app defines them",
            r"a_j = 0\ \text{where no key is open}",
            attention.softmax(hidden),
            r"a = 0\ \text{instead of}\ \tfrac{0}{0}",
            columns=keys,
            quantity="weight",
            blocked=blocked,
            comment="A row with no open key looks at nothing: all weights and the output are 0.",
        ),
    )
