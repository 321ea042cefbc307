"""Results of papers about attention, asked of a model: what each paper found, the same number computed now,
and whether the two agree.

The names below are the public ones. They need torch, and are imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.papers.asking import results, running

__all__ = ["results", "running"]

_LATER = {name: "model.papers.asking" for name in __all__}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
