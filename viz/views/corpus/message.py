"""What the browser gets of one or two profiles: every head's place on the map, its row and its card. Pure.

Numbers are sent as float32, NaN where a head has none. The mean maps are pictures, not numbers to read: each
cell is a byte, of its map's largest weight.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from model.nn.places import head_label
from model.profile.battery import KINDS
from model.profile.corpus_profile import Profile
from model.profile.every_head import by_class, by_distance, mean_maps
from model.profile.projection import FEATURES, HeadPlane, most_similar, projected
from model.profile.token_classes import CLASSES
from model.trace.arrays import Wide
from viz.explorer.packing import Json, packed
from viz.notation.theme import HEADS, MASKED, QUANTITIES

NO_LABEL = 255
SINGLE = 16  # tokens: nearer distances have a point of their own on the curve
BINS_ABOVE = 24  # points for all the others
NAMED_BY_AXIS = 3  # features
LABEL_COLOURS = {kind.title: colour for kind, colour in zip(KINDS, HEADS, strict=False)}
THEME: Json = {
    "quantities": {name: asdict(QUANTITIES[name]) for name in ("weight", "query", "key")},
    "masked": MASKED,
}


@dataclass(frozen=True)
class Column:
    """A number of every head: its title, what it means, and its decimals."""

    name: str
    title: str
    meaning: str
    decimals: int = 2


COLUMNS = (
    Column("self", "itself", "mean weight on the token itself"),
    Column("previous", "before", "mean weight on the token before"),
    Column("next", "after", "mean weight on the token after"),
    Column("first", "first", "mean weight on the first token of the window"),
    Column("same", "same", "mean weight on other occurrences of the same token"),
    Column(
        "induction", "induction", "mean weight on what followed an earlier occurrence of the token"
    ),
    Column("punctuation", "marks", "mean weight on punctuation"),
    Column("delimiter", "special", "mean weight on special tokens and line breaks"),
    Column("entropy", "entropy", "mean entropy of a row, in nats"),
    Column("distance", "distance", "mean distance from query to key by weight, in tokens", 1),
    Column("carried", "carried", "mean sum of weight times the length of the value through W_O"),
    Column("effect", "effect", "mean direct effect on the logit of the token that comes next"),
)


@dataclass(frozen=True)
class Label:
    """What a head may be called, and what that was found on."""

    title: str
    evidence: str
    note: str = ""  # where it does not do what its name says


@dataclass(frozen=True, eq=False)
class ShownProfile:
    """A profile on the page, under a title that no other on the page has."""

    title: str
    profile: Profile
    labels: tuple[Label | None, ...]  # of each head, where it has one


def message(shown: Sequence[ShownProfile], start: int) -> bytes:
    """Everything that map, table and card are drawn from. start: the head of the first profile that is
    chosen at first."""
    plane = projected([one.profile for one in shown])
    labels = names_of_labels(shown)
    words = {
        "columns": [asdict(column) for column in COLUMNS],
        "labels": [{"name": name, "colour": LABEL_COLOURS[name]} for name in labels],
        "axes": axes_in_words(plane),
        "classes": list(CLASSES),
        "start": start,
        "profiles": [_of_profile(one, plane.places[at], labels) for at, one in enumerate(shown)],
        "partners": _partners(shown, plane),
        "theme": THEME,
    }
    block = packed(words)
    return packed({**words, "key": hashlib.sha256(block).hexdigest()[:16]})


def names_of_labels(shown: Sequence[ShownProfile]) -> list[str]:
    """The labels of all heads, the commonest first."""
    counts = Counter(label.title for one in shown for label in one.labels if label is not None)
    return sorted(counts, key=lambda name: (-counts[name], name))


def axes_in_words(plane: HeadPlane) -> list[Json]:
    """For each axis its share of the variance, and the features that move a head along it most."""
    axes = []
    for share, loadings in zip(plane.shares, plane.loadings, strict=True):
        order = np.argsort(-np.abs(loadings), kind="stable")[:NAMED_BY_AXIS]
        words = []
        for at in order:  # how the heads differ along a feature
            more, feature = bool(loadings[at] > 0), FEATURES[at]
            if feature == "log of the distance":
                words.append("longer distances" if more else "shorter distances")
            else:
                words.append(f"{'more' if more else 'less'} {feature}")
        axes.append({"share": share, "words": ", ".join(words) if share else "nothing"})
    return axes


def curve(profile: Profile) -> tuple[list[tuple[int, int]], Wide]:
    """The distances of each point, from the first to the last, and (head, point): the mean weight of a row at
    one of these distances. Negative distances are there only where some head looks ahead."""
    weights, here = by_distance(profile), profile.sums.window - 1
    steps = np.geomspace(SINGLE, max(here, SINGLE) + 1, BINS_ABOVE + 1).round().astype(int)
    edges = sorted({*range(min(SINGLE, here) + 1), *(int(one) for one in steps if one <= here + 1)})
    back = [(first, end - 1) for first, end in zip(edges, [*edges[1:], here + 1], strict=True)]
    back = [(first, last) for first, last in back if first <= last]
    ahead = [(-last, -first) for first, last in reversed(back) if first > 0]
    looks_ahead = bool(np.nansum(weights[:, :here]) > 0)
    bins = [*(ahead if looks_ahead else []), *back]
    points = [weights[:, here + first : here + last + 1].mean(1) for first, last in bins]
    return bins, np.column_stack(points)


def _of_profile(one: ShownProfile, places: Wide, labels: Sequence[str]) -> Json:
    profile = one.profile
    table, (bins, points) = profile.heads, curve(profile)
    maps = mean_maps(profile)
    most = maps.reshape(len(maps), -1).max(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(maps / most[:, None, None])
    numbers = {label: at for at, label in enumerate(labels)}
    known = [NO_LABEL if label is None else numbers[label.title] for label in one.labels]
    return {
        "title": one.title,
        "names": [head_label(head) for head in profile.sums.heads],
        "places": _floats(places),
        "columns": {column.name: _floats(table[column.name].to_numpy(float)) for column in COLUMNS},
        "labels": np.array(known, np.uint8),
        "evidence": {
            at: label.evidence for at, label in enumerate(one.labels) if label is not None
        },
        "notes": {at: label.note for at, label in enumerate(one.labels) if label and label.note},
        "bins": [list(bin_) for bin_ in bins],
        "curves": _floats(points),
        "maps": np.rint(shares * 255).astype(np.uint8),  # of each map's largest weight
        "most": _floats(most),
        "classes": _floats(by_class(profile)),
    }


def _partners(shown: Sequence[ShownProfile], plane: HeadPlane) -> list[list[int]]:
    """For each head the one of the other profile that is shown beside it: the same head, or where the models
    have other heads the most similar one. Nothing for one profile."""
    if len(shown) < 2:
        return []
    one, other = (each.profile.sums.heads for each in shown)
    if one == other:
        return [list(range(len(one)))] * 2
    ours, theirs = plane.standardised
    return [most_similar(ours, theirs), most_similar(theirs, ours)]


def _floats(numbers: Wide) -> NDArray[np.float32]:
    return np.ascontiguousarray(numbers, "<f4")
