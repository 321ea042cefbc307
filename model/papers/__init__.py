"""Results of papers about attention, asked of a model: what each paper found, the same number computed now,
and whether the two agree.

The names below are the public ones. They need torch, and are imported at first use.
"""

from typing import TYPE_CHECKING

from model.system.later import later

if TYPE_CHECKING:
    from model.papers.asking import results, running

__all__ = ["results", "running"]

__getattr__, __dir__ = later(__name__, dict.fromkeys(__all__, "asking"))
