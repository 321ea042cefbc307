"""Figures: pure functions from arrays to a Plotly figure.

Scripts and notebooks find here, by name, those of a whole run (of_a_trace.py):
`figures.weights(trace, "decoder.1.self", 7)`. They are imported when one is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viz.figures.of_a_trace import (
        difference,
        heads,
        matrix,
        parts,
        statistic,
        token_vectors,
        weights,
    )

__all__ = ["difference", "heads", "matrix", "parts", "statistic", "token_vectors", "weights"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("viz.figures.of_a_trace"), name)
    raise AttributeError(f"module 'viz.figures' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
