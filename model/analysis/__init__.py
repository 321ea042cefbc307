"""Questions asked of traces: pure functions.

The names below are the public ones. They need torch, and are imported at first use.
"""

from typing import TYPE_CHECKING

from model.system.later import later

if TYPE_CHECKING:
    from model.analysis.attribution.patching import patch_map
    from model.analysis.attribution.score_parts import edge_values, score_parts
    from model.analysis.differences import first_difference, precision_by_layer
    from model.analysis.findings import scan
    from model.analysis.stream.stream import largest_numbers

__all__ = [
    "edge_values",
    "first_difference",
    "largest_numbers",
    "patch_map",
    "precision_by_layer",
    "scan",
    "score_parts",
]

__getattr__, __dir__ = later(
    __name__,
    {
        "edge_values": "attribution.score_parts",
        "first_difference": "differences",
        "largest_numbers": "stream.stream",
        "patch_map": "attribution.patching",
        "precision_by_layer": "differences",
        "scan": "findings",
        "score_parts": "attribution.score_parts",
    },
)
