"""Batch norm beside layer norm on a table of houses, and min–max scaling of pixels."""

from __future__ import annotations

import numpy as np

from model.arithmetic import normalization
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, worked
from model.worked.norms import epsilon_input
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_HOUSES = numbered("house", 3, start=1)
_FEATURES = ("size", "rooms")
_PIXELS = numbered("pixel", 4)


def _statistics(table: Array) -> Array:
    return np.concatenate([normalization.mean(table, 0), normalization.variance(table, 0)])


@worked(
    "houses",
    "§9",
    "Houses: batch norm and layer norm",
    "Batch norm normalizes each column over the samples, layer norm each row over its features.",
    given(
        "houses",
        "Houses",
        [[1200.0, 2.0], [1500.0, 3.0], [2000.0, 3.5]],
        _HOUSES,
        _FEATURES,
        lowest=-100_000,
        highest=100_000,
    ),
    given("prices", "Prices in lakh", [45, 70, 80], _HOUSES, lowest=0, highest=100_000),
    epsilon_input(),
)
def _houses(values: Values) -> tuple[Step, ...]:
    table, prices, epsilon = values["houses"], values["prices"], float(values["epsilon"])
    return (
        Step(
            "The table with its prices",
            r"[\,x,\ y\,]",
            np.column_stack([table, prices]),
            rf"\text{{house 1: }} {latex.row(table[0])} \to {latex.number(prices[0])}",
            _HOUSES,
            (*_FEATURES, "price in lakh"),
            notes=Printed(
                "1200 2 45; 1500 3 70; 2000 3.5 80",
                INTRODUCTION.at("Layer normalization"),
                "1200 2 45 L",
            ),
            comment="Only the features are normalized; the price is what is to be predicted.",
        ),
        *_without_padding(table, epsilon),
        *_with_padding(table, epsilon),
    )


def _without_padding(table: Array, epsilon: float) -> tuple[Step, ...]:
    columns = normalization.normalized(table, 0, epsilon=epsilon)
    rows = normalization.normalized(table, -1, epsilon=epsilon)
    statistics = _statistics(table)
    return (
        Step(
            "Mean and variance of each column",
            r"\mu_d,\ \sigma_d^2\ \text{over the houses}",
            statistics,
            rf"\text{{size: }} \frac{{{latex.total(table[:, 0])}}}{{3}} = "
            rf"{latex.number(statistics[0, 0])}",
            ("mean", "variance"),
            _FEATURES,
        ),
        Step(
            "Batch norm: each column",
            r"\frac{x_{nd} - \mu_d}{\sqrt{\sigma_d^2 + \epsilon}}",
            columns,
            rf"\frac{{{latex.number(table[0, 0])} - {latex.number(statistics[0, 0])}}}"
            rf"{{{latex.number(np.sqrt(statistics[1, 0] + epsilon))}}} = "
            rf"{latex.number(columns[0, 0])}",
            _HOUSES,
            _FEATURES,
            comment="A house's numbers depend on the other houses of the batch.",
        ),
        Step(
            "Layer norm: each row",
            r"\frac{x_{nd} - \mu_n}{\sqrt{\sigma_n^2 + \epsilon}}",
            rows,
            rf"\text{{house 1: }} {latex.row(rows[0])}",
            _HOUSES,
            _FEATURES,
            comment="Each row is normalized by itself: no sample touches another.",
        ),
    )


def _with_padding(table: Array, epsilon: float) -> tuple[Step, ...]:
    padded = np.concatenate([table, np.zeros((1, 2))])
    statistics = _statistics(padded)
    columns = normalization.normalized(padded, 0, epsilon=epsilon)
    rows = normalization.normalized(padded, -1, epsilon=epsilon)
    names = (*_HOUSES, "padding")
    return (
        Step(
            "Mean and variance of each column with a row of padding",
            r"\mu_d,\ \sigma_d^2\ \text{over all rows}",
            statistics,
            rf"\text{{size: }} \frac{{{latex.total(padded[:, 0])}}}{{4}} = "
            rf"{latex.number(statistics[0, 0])}",
            ("mean", "variance"),
            _FEATURES,
            comment="A padding row of zeros changes the statistics of batch norm.",
        ),
        Step(
            "Batch norm with the padding",
            r"\frac{x_{nd} - \mu_d}{\sqrt{\sigma_d^2 + \epsilon}}",
            columns,
            rf"\text{{house 1: }} {latex.row(columns[0])}",
            names,
            _FEATURES,
        ),
        Step(
            "Layer norm with the padding",
            r"\frac{x_{nd} - \mu_n}{\sqrt{\sigma_n^2 + \epsilon}}",
            rows,
            rf"\text{{house 1: }} {latex.row(rows[0])}",
            names,
            _FEATURES,
            comment="The houses' own rows stay as they were.",
        ),
    )


@worked(
    "pixels-min-max",
    "§9",
    "Pixels from 0–255 to 0–1",
    "Min–max scaling moves a known range onto 0 to 1. A z-score asks how far from the mean.",
    given("pixels", "Pixels (chosen here)", [0, 64, 128, 255], _PIXELS, lowest=0, highest=255),
    given("lowest", "Low end", 0, lowest=-1000, highest=1000),
    given("highest", "High end", 255, lowest=-1000, highest=1000),
)
def _pixels(values: Values) -> tuple[Step, ...]:
    pixels, lowest, highest = values["pixels"], float(values["lowest"]), float(values["highest"])
    if highest <= lowest:
        raise ValueError(f"The range must rise: {highest:g} is not above {lowest:g}.")
    scaled = normalization.min_max(pixels, lowest, highest)
    scores = normalization.normalized(pixels, epsilon=1e-12)
    return (
        Step(
            "Min–max scaling",
            r"\frac{x - x_{\min}}{x_{\max} - x_{\min}}",
            scaled,
            rf"\frac{{{latex.number(pixels[1])} - {latex.factor(lowest)}}}"
            rf"{{{latex.number(highest)} - {latex.factor(lowest)}}} = {latex.number(scaled[1])}",
            columns=_PIXELS,
            comment="The ends of the range become 0 and 1; nothing is centred.",
        ),
        Step(
            "z-scores, in contrast",
            r"\frac{x - \mu}{\sigma}",
            scores,
            rf"\frac{{{latex.number(pixels[1])} - {latex.number(pixels.mean())}}}"
            rf"{{{latex.number(pixels.std())}}} = {latex.number(scores[1])}",
            columns=_PIXELS,
            comment="Mean 0 and variance 1, with no fixed ends.",
        ),
    )
