"""Figures: pure functions from arrays to a Plotly figure.

Scripts and notebooks find here, by name, those of a whole run (of_a_trace.py):
`figures.weights(trace, "decoder.1.self", 7)`. They are imported when one is first used.
"""

from typing import TYPE_CHECKING

from model.system.later import later

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

__getattr__, __dir__ = later(__name__, dict.fromkeys(__all__, "of_a_trace"))
