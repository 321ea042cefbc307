"""All heads at once: the layer × head grid, and the chosen head beside it."""

from functools import lru_cache

import streamlit as st

from model.analysis.heads.ranking import STATISTICS, Scores, scores
from model.analysis.heads.statistics import Family, Tiles, tiles
from model.nn.places import Head
from model.serving.engine import Request
from viz.figures.head_tiles import head_grid
from viz.shell.pictures import checked, look_for, of_all_pairs, table
from viz.state.look import Look, traced
from viz.views.all_heads.choice import (
    beside_chosen_head,
    cell_of,
    choose_family,
    choose_label,
    clickable,
    labelled,
    name_of,
    names_of,
)

SHARES = tuple(one for one in STATISTICS if one.unit.startswith("weight"))  # comparable: 0 to 1


@lru_cache(maxsize=16)
def tiles_of(request: Request, family: Family) -> Tiles:
    return tiles(traced(request), family)


@lru_cache(maxsize=64)
def scores_of(request: Request, family: Family) -> Scores:
    return scores(traced(request), family)


@of_all_pairs
def grid(seen: Look) -> None:
    """Every head as a small tile; a click on a tile shows it large."""
    with beside_chosen_head(seen, (5, 3)):
        picture = st.container()
        family = choose_family(seen)
        found, known = tiles_of(seen.request, family), scores_of(seen.request, family)
        names = [name_of(seen, head) for head in known.heads]
        keys = len(family.members(seen.trace)[0].vectors[1])
        groups = keys if keys < found.weights.shape[1] else 0
        look_for(_look_for(seen, known))
        st.caption(f"{_how_to_read(found, groups)} Click a tile to enlarge it.")
        label, layers = labelled(seen, family), names_of(family, seen)
        marked = choose_label(seen, family, label) if label else []
        words = [
            f"{name}<br>{_role(known, head)}{label.words(head) if label else ''}"
            for name, head in zip(names, known.heads, strict=True)
        ]
        with picture:
            clickable(
                head_grid(
                    found,
                    chosen=cell_of(seen, family),
                    words=words,
                    groups=groups,
                    marked=[(layers.index(place), head) for place, head in marked],
                ),
                known.heads,
                "all-heads-grid",
                f"Grid of {len(known.heads)} heads; rows are layers, columns are heads.",
            )
    checked(seen)
    columns = {one.title: known.values[one.name] for one in SHARES if one.name in known.values}
    table({"head": names, **columns}, "all-heads-grid")


def _look_for(seen: Look, known: Scores) -> str:
    """The shapes that are worth finding, each with a head that may be called so on this text."""
    shapes = {
        "previous": "a line just below the diagonal is a previous-token head",
        "next": "a line just above the diagonal is a next-token head",
        "first": "a strong first column means that most tokens put their weight on the first one",
        "induction": "a head that attends to what followed the same token earlier is an induction head",
    }
    said = [
        f"{shape} ({name_of(seen, called[0][0])}: {called[0][1]:.2f})"
        for name, shape in shapes.items()
        if (called := known.called(name))
    ]
    if not said:
        return (
            "Compare the tiles: the heads of one layer read the same vectors, each in its own way."
        )
    sentence = "; ".join(said)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _role(known: Scores, head: Head) -> str:
    """What a head may be called on this text: of several names the one with the highest share."""
    place = known.heads.index(head)
    held = [
        one
        for one in SHARES
        if one.name in known.evidence and known.evidence[one.name][place].holds
    ]
    if not held:
        return "click to see it large"
    best = max(held, key=lambda one: known.values[one.name][place])
    return f"{best.title.lower()}: {known.values[best.name][place]:.2f}"


def _how_to_read(found: Tiles, groups: int) -> str:
    """groups: heads of keys and values, where heads share them."""
    queries, keys = found.block
    said = (
        "In each tile rows are queries and columns are keys. All tiles share one scale from 0 to "
        "1. Hatched cells are masked."
    )
    if max(queries, keys) > 1:
        said += (
            f" The text is long, so each cell shows the largest weight of a block of {queries} "
            f"queries × {keys} keys."
        )
    if groups:
        said += (
            f" Frames of one colour: heads that share one of the {groups} heads of keys and values. Their "
            "patterns differ all the same, because each has queries of its own."
        )
    return said
