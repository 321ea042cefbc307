"""Questions asked of traces: pure functions.

The names below are the public ones. They need torch, and are imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.analysis.attribution.patching import patch_map
    from model.analysis.attribution.score_parts import edge_values, score_parts

__all__ = ["edge_values", "patch_map", "score_parts"]

_LATER = {"edge_values": "score_parts", "patch_map": "patching", "score_parts": "score_parts"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.attribution.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
