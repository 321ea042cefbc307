"""All heads of one or several profiles as points of a plane, similar heads together: principal components
(Pearson 1901) of what the heads attend to."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from model.profile.every_head import by_distance, to_class
from model.profile.sums import SHARES
from model.profile.token_classes import CLASSES
from model.trace.arrays import Wide

if TYPE_CHECKING:
    from model.profile.corpus_profile import Profile

BANDS = (2, 5, 17, 65)  # tokens back at which a band begins; the last one has no end
ON = {  # what each share of a head's weight lies on
    "self": "the token itself",
    "previous": "the token before",
    "next": "the token after",
    "first": "the first token",
    "same": "the same token elsewhere",
    "induction": "what followed the same token",
    "punctuation": "punctuation",
    "delimiter": "special tokens and line breaks",
}
ON_CLASSES = {  # the shares have the others
    "space": "spaces",
    "number": "numbers",
    "start of a word": "first tokens of words",
    "rest of a word": "later tokens of words",
}
FEATURES = (
    *(f"weight on {ON[name]}" for name in SHARES),
    "entropy",
    "log of the distance",
    *(f"weight {first} to {end - 1} tokens back" for first, end in pairwise(BANDS)),
    f"weight {BANDS[-1]} or more tokens back",
    *(f"weight on {words}" for words in ON_CLASSES.values()),
)


@dataclass(frozen=True, eq=False)
class HeadPlane:
    """The plane in which the heads differ most."""

    places: tuple[Wide, ...]  # of each profile: (head, 2)
    shares: tuple[float, float]  # of the variance of all features
    loadings: Wide  # (2, feature): the axes
    standardised: tuple[Wide, ...]  # of each profile: (head, feature)


def features(profile: "Profile") -> Wide:
    """(head, feature): in the order of FEATURES; NaN where a head has no such number."""
    table = profile.heads
    with np.errstate(divide="ignore"):
        distance = np.log(table["distance"].to_numpy(float))
    distance[~np.isfinite(distance)] = np.nan
    weights, here = by_distance(profile), profile.sums.window - 1
    ends = [here + first for first in (*BANDS[1:], profile.sums.window)]
    bands = [weights[:, here + first : end].sum(1) for first, end in zip(BANDS, ends, strict=True)]
    classes = to_class(profile)[:, [CLASSES.index(name) for name in ON_CLASSES]]
    known = [*(table[name].to_numpy(float) for name in (*SHARES, "entropy")), distance, *bands]
    return np.column_stack([*known, classes])


def projected(profiles: Sequence["Profile"]) -> HeadPlane:
    """One plane for the heads of all profiles.

    Every feature is scaled to mean 0 and variance 1 over all heads, so that all weigh the same. A feature
    that a head lacks is set to the mean; one that is equal in all heads has no influence.
    """
    known = [features(profile) for profile in profiles]
    scaled = _standardised(np.concatenate(known))
    _, lengths, axes = np.linalg.svd(scaled, full_matrices=False)
    count = min(2, len(axes))
    loadings = np.zeros((2, len(FEATURES)))
    loadings[:count] = axes[:count]
    largest = loadings[[0, 1], np.abs(loadings).argmax(1)]
    loadings *= np.where(largest < 0, -1.0, 1.0)[:, None]  # an axis has no sign of its own
    variance = np.zeros(2)
    variance[:count] = lengths[:count] ** 2 / max(float((lengths**2).sum()), 1e-30)
    parts = np.split(scaled, np.cumsum([len(one) for one in known])[:-1])
    places = tuple(part @ loadings.T for part in parts)
    return HeadPlane(places, (float(variance[0]), float(variance[1])), loadings, tuple(parts))


def most_similar(ours: Wide, others: Wide) -> list[int]:
    """For each head of (head, feature) the head of the others whose features are nearest."""
    squares = (ours**2).sum(1)[:, None] + (others**2).sum(1) - 2 * ours @ others.T
    return [int(one) for one in squares.argmin(1)]


def _standardised(known: Wide) -> Wide:
    counts = np.maximum((~np.isnan(known)).sum(0), 1)
    centred = known - np.nansum(known, 0) / counts
    spread = np.sqrt(np.nansum(centred**2, 0) / counts)
    return np.nan_to_num(centred / np.where(spread > 1e-12, spread, np.inf))
