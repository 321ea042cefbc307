"""One cell of attention in a line of text, from its score to its weight."""

import math
from collections.abc import Sequence

from model.nn.stages import SCORE_STAGES, SINKS
from model.trace.blocks import of_query
from model.trace.records import Attention
from viz.notation.labels import isolated, token_label
from viz.notation.numbers import power_of_ten, signed

_LABEL = 14  # characters of a token
_DECIMALS = 4
_DIGITS = 7  # of a float32, at least


def readout(
    attention: Attention,
    head: int,
    query: int,
    key: int,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
) -> str:
    """As the explorer says it below its picture:
    L1H7: ·Tom → ·Hill, score 42.5195 ÷ √32 = 7.5165, weight 0.8861"""
    row = of_query(attention, query)
    score, scaled, masked, weight = (
        float(getattr(row, stage)(head)[0, key])
        for stage in ("scores", "scaled", "masked", "weights")
    )
    sink = float(row.sink_weights(head)[0])
    mask = row.mask_of(head)
    hidden = mask is not None and not mask[0, key]
    parts = [
        f"{attention.place.head(head)}: "
        + isolated(f"{token_label(queries[query], _LABEL)} → {token_label(keys[key], _LABEL)}"),
        _score_and_scaled(attention, _written(score), _written(scaled)),
        *(
            f"{stage.readout} {_written(float(getattr(row, stage.name)(head)[0, key]))}"
            for stage in SCORE_STAGES
            if stage.is_in(attention)
        ),
        f"masked: {_written(masked)}" if hidden else "",
        f"weight {_written(weight)}",
        f"{SINKS.readout} {_written(sink)}" if SINKS.is_in(attention) else "",
    ]
    return ", ".join(filter(None, parts))


def _score_and_scaled(attention: Attention, score: str, scaled: str) -> str:
    """An equation, where the printed numbers are one; else both numbers by their names."""
    factor = _factor(attention)
    if not set("e∞") & set(score + scaled + factor):
        digits = len(scaled.partition(".")[2])
        given, made = _number(score), _number(scaled)
        by = attention.query.shape[-1] ** -0.5 if "√" in factor else _number(factor[2:])
        if f"{given * by:.{digits}f}" == f"{made:.{digits}f}":
            return f"score {score} {factor} = {scaled}"
    return f"score {score}, scaled ({factor}) {scaled}"


def _factor(attention: Attention) -> str:
    """What makes the scaled score."""
    width = attention.query.shape[-1]
    divides = math.isclose(attention.scale, width**-0.5, rel_tol=1e-6)
    if attention.scale == 1:
        return "× 1"
    return f"÷ √{width}" if divides else f"× {_written(attention.scale)}"


def _number(written: str) -> float:
    return float(written.replace("−", "-"))


def _written(value: float) -> str:
    """Four decimals, if float32 has them; a tiny or huge number in powers of ten."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if value and not 0.5 * 10**-_DECIMALS <= abs(value) < 1e6:
        return power_of_ten(value)
    return signed(f"{value:.{min(_DECIMALS, _DIGITS - len(str(int(abs(value)))))}f}")
