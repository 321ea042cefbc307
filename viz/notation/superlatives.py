"""Who has the largest value, as printed: one, several that are equal, or all."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

NAMED = 3  # of several equal ones


def leaders(values: ArrayLike, *, decimals: int) -> tuple[int, ...]:
    """The positions of the largest values. Values that are printed alike count as equal."""
    printed = np.round(np.asarray(values, dtype=np.float64), decimals)
    return tuple(map(int, np.flatnonzero(printed == printed.max())))


def led_by(names: Sequence[str], values: ArrayLike, *, decimals: int) -> tuple[str, bool]:
    """Who has the largest value, in Markdown, and whether that is more than one."""
    places = leaders(values, decimals=decimals)
    if len(places) == len(names) > 1:
        return f"**all {len(names)} alike**", True
    if len(places) > NAMED:
        return f"**{len(places)} of {len(names)} alike**", True
    return " and ".join(f"**{names[place]}**" for place in places), len(places) > 1
