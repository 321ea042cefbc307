"""The visitor's sentence beside a profile: how large its weights are among all that the head gives."""

import numpy as np

from model.nn.places import Head
from model.profile.profile import Between, Profile
from model.trace.arrays import Array
from model.trace.records import Attention
from viz.notation.markdown import bold_token
from viz.state.look import Look, labels_of
from viz.state.session import current
from viz.views.corpus.message import name_of

Cell = tuple[int, int]


def beside_sentence(seen: Look, profile: Profile, head: Head) -> str:
    """Two sentences in Markdown: of the chosen cell, or of the strongest where another head is chosen, and of
    its row."""
    attention = seen.trace.find(head[0])
    weights = attention.weights(head[1])
    view = current()
    if (view.place, view.head) == head and _allowed(
        attention, head[1], weights.shape, (view.query, view.key)
    ):
        query, key, which = view.query, view.key, "the chosen cell"
    else:
        (query, key), which = strongest(weights, attention), "the strongest cell"
    weight, row = float(weights[query, key]), weights[query].astype(np.float64)
    queries, keys = labels_of(seen.trace, attention)
    entropy = max(
        0.0, -float((row[row > 0] * np.log(row[row > 0])).sum())
    )  # a sink counts for nothing
    smaller = percent(profile.percentile(head, weight))
    narrower = percent(profile.entropy_percentile(head, entropy))
    return (
        f"**In your sentence**, {which} of {name_of(head)} has the weight {weight:.2f} (query "
        f"{bold_token(queries[query])} → key {bold_token(keys[key])}): larger than **{smaller}** of the "
        f"weights that this head gives over the corpus. Its row has an entropy of {entropy:.2f} nats: more "
        f"than {narrower} of this head's rows."
    )


def strongest(weights: Array, attention: Attention) -> Cell:
    """The largest weight on another token than itself and the first, as the examples are found; the largest
    of all where there is none."""
    others = weights.copy()
    if attention.kind != "cross":
        others[:, 0] = 0
        np.fill_diagonal(others, 0)
    if not others.any():
        others = weights
    query, key = np.unravel_index(int(others.argmax()), others.shape)
    return int(query), int(key)


def percent(share: Between) -> str:
    """Rounded down, so that "100 %" means all: 0.9996 is "99.9 %"; "18.8 to 76.6 %" where the counts of a
    profile leave it open."""
    least, most = (np.floor(share[0] * 1000 + 1e-9), np.ceil(share[1] * 1000 - 1e-9))
    if share[0] == share[1]:
        return f"{least / 10:.1f} %"
    return f"{least / 10:.1f} to {most / 10:.1f} %"


def _allowed(attention: Attention, head: int, shape: tuple[int, ...], cell: Cell) -> bool:
    """Whether there is such a cell, and the head may look there."""
    if cell[0] >= shape[0] or cell[1] >= shape[1]:
        return False
    mask = attention.mask_of(head)
    return mask is None or bool(mask[cell])
