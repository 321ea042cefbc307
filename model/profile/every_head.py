"""The numbers that `Profile` gives for one head, for all heads at once; NaN where there are none."""

from typing import TYPE_CHECKING

import numpy as np

from model.profile.sums import MAP, fields
from model.profile.token_classes import CLASSES
from model.trace.arrays import Wide

if TYPE_CHECKING:
    from model.profile.corpus_profile import Profile


def by_distance(profile: "Profile") -> Wide:
    """(head, 2 · window − 1): the mean weight of a row by query − key; NaN for attention across two texts."""
    weights = _number(profile, "by_offset")
    with np.errstate(invalid="ignore"):
        shares = weights / _number(profile, "rows")
    return np.where(weights.any(1, keepdims=True), shares, np.nan)


def mean_maps(profile: "Profile") -> Wide:
    """(head, 16, 16): NaN where no window is long enough."""
    with np.errstate(invalid="ignore"):
        maps = _number(profile, "map") / _number(profile, "map_windows")
    return maps.reshape(-1, MAP, MAP)


def by_class(profile: "Profile") -> Wide:
    """(head, class of the query, class of the key)."""
    sums = _number(profile, "classes").reshape(-1, len(CLASSES), len(CLASSES))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / _number(profile, "class_rows")[:, :, None])


def to_class(profile: "Profile") -> Wide:
    """(head, class of the key): the mean weight of a row on tokens of a class."""
    sums = _number(profile, "classes").reshape(-1, len(CLASSES), len(CLASSES)).sum(1)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / _number(profile, "rows"))


def _number(profile: "Profile", name: str) -> Wide:
    """(head, size)"""
    sums = profile.sums
    return np.asarray(sums.numbers[name] / 2.0 ** fields(sums.window)[name].bits)
