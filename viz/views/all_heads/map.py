"""One number for each head, as a map of layers and heads, and the choice between map and list."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.families import Family
from viz.elements.one_of import one_of
from viz.figures.head_map import head_map
from viz.notation.theme import QuantityName
from viz.state.look import Look
from viz.views.all_heads.choice import cell_of, clickable, name_of

LIST, MAP = "List", "Map"


def map_or_list(view: str, *, first: str = MAP) -> str:
    """MAP or LIST, as it was chosen in one of the views; `first` is what it opens on."""
    ways = (MAP, LIST) if first == MAP else (LIST, MAP)
    return one_of("Show as", ways, f"all-heads-{view}-as", quiet=True)


def map_of_heads(
    seen: Look,
    family: Family,
    values: NDArray[np.float64],
    *,
    quantity: QuantityName,
    title: str,
    words: Callable[[float], str],
    key: str,
    alt: str,
    decimals: int = 2,
) -> None:
    """values (head of the family,): a cell each, the chosen head's framed; a click opens a head.

    words: what hovering says of a value, after the head's name.
    """
    heads = family.heads(seen.trace)
    figure = head_map(
        values.reshape(len(family.members(seen.trace)), -1),
        quantity=quantity,
        title=title,
        chosen=cell_of(seen, family),
        words=[
            f"{name_of(seen, head)}<br>{words(float(value))}"
            for head, value in zip(heads, values, strict=True)
        ],
        decimals=decimals,
    )
    clickable(figure, heads, key, alt)
