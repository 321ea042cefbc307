"""One cell of attention in a line of text, from its score to its weight."""

import math
from collections.abc import Sequence

from model.nn.places import head_label
from model.trace.records import Attention
from model.trace.some_queries import of_query
from viz.notation.labels import token_label
from viz.notation.numbers import power_of_ten, signed

_LABEL = 14  # characters of a token
_DECIMALS = 4


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
    L1H7 · ·Tom → ·Hill · score 42.5195 · × 0.1768 = 7.5165 · weight 0.8861"""
    row = of_query(attention, query)
    score, scaled, capped, biased, masked, weight = (
        float(getattr(row, stage)(head)[0, key])
        for stage in ("scores", "scaled", "capped", "biased", "masked", "weights")
    )
    sink = float(row.sink_weights(head)[0])
    mask = row.mask_of(head)
    hidden = mask is not None and not mask[0, key]
    parts = [
        head_label((attention.name, head)),
        f"{token_label(queries[query], _LABEL)} → {token_label(keys[key], _LABEL)}",
        f"score {_written(score)}",
        f"× {_written(attention.scale)} = {_written(scaled)}",
        "" if attention.cap is None else f"capped {_written(capped)}",
        "" if attention.bias is None else f"with bias {_written(biased)}",
        f"masked: {_written(masked)}" if hidden else "",
        f"weight {_written(weight)}",
        "" if attention.sinks is None else f"sink {_written(sink)}",
    ]
    return " · ".join(filter(None, parts))


def _written(value: float) -> str:
    """Four decimals; a tiny or huge number in powers of ten."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if value and not 0.5 * 10**-_DECIMALS <= abs(value) < 1e6:
        return power_of_ten(value)
    return signed(f"{value:.{_DECIMALS}f}")
