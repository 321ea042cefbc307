"""What the views of "All heads" share: the family of heads, the chosen head, maps and lists to click."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.analysis.heads.families import Family, families, family_of
from model.nn.places import Head
from viz.elements.one_of import choosable_table, one_of
from viz.elements.plot import plot
from viz.figures.head_tiles import Cell, head_map
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.notation.theme import QuantityName
from viz.saving.save import save_figure
from viz.shell.pictures import chart, readout_of
from viz.state.look import Look, labels_of
from viz.state.navigation import view_link
from viz.state.session import change_view, current, shown, write_link

LIST, MAP = "List", "Map"


def choose_family(seen: Look) -> Family:
    """The heads that are compared; a choice only where a model has several kinds. Another family opens on
    its first head."""
    known = families(seen.trace)
    names = [attention.name for attention in seen.trace.attention]
    if current().place not in names:
        open_head((names[0], 0))
    here = family_of(seen.trace, seen.trace.find(current().place))
    if len(known) > 1:
        st.segmented_control(
            "Heads of",
            known,
            required=True,
            format_func=lambda family: family.title,
            **shown("all-heads-family", here, lambda to: open_head(to.heads(seen.trace)[0])),
        )
    return here


def open_head(head: Head) -> None:
    change_view(replace(current(), place=head[0], head=head[1]))


def names_of(family: Family, seen: Look) -> list[str]:
    return [attention.name for attention in family.members(seen.trace)]


def cell_of(seen: Look, family: Family) -> Cell:
    """Where the chosen head stands among its family: layer and head, counted from 0."""
    return names_of(family, seen).index(current().place), current().head


def name_of(seen: Look, head: Head) -> str:
    return seen.trace.find(head[0]).place.head(head[1])


def clickable(figure: go.Figure, heads: Sequence[Head], key: str, alt: str) -> None:
    """A picture with the trace "heads": a click on a point opens that head."""
    view = current()
    fresh = f"{key}-{view.place}-{view.head}"  # nothing stays selected in a new picture
    plot(figure, fresh, alt=alt, clicked=lambda place: open_head(heads[place]))
    save_figure(lambda: figure, key)


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
    """values (head of the family,): one cell each, the chosen head's framed; a click opens a head.

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


def list_of_heads(
    seen: Look,
    heads: Sequence[Head],
    columns: Mapping[str, NDArray[np.float64]],
    key: str,
    *,
    head: str = "head",
    decimals: int = 3,
    helps: Mapping[str, str] | None = None,
) -> None:
    """A table with one row for each head: a click on a row opens it, one on a column's name sorts by it.

    head: name of the first column. helps: what the question mark of a column says.
    """
    frame = pd.DataFrame({head: [name_of(seen, one) for one in heads], **columns})
    choosable_table(
        frame,
        key,
        lambda row: open_head(heads[row]),
        decimals=decimals,
        helps=helps,
        height=min(36 * len(frame) + 40, 340),
        hide_index=True,
    )


@contextmanager
def beside_chosen_head(
    seen: Look, widths: tuple[int, int] = (3, 2), title: str = ""
) -> Iterator[DeltaGenerator]:
    """The column of a picture; the chosen head's weights stand to its right, below a place for words."""
    picture, one = st.columns(widths, gap="large")
    words = one.container()
    with picture:
        yield words
    with one:
        chosen_head(seen, title)


def chosen_head(seen: Look, title: str = "") -> None:
    """The chosen head's weights in a run, and a link to the explorer."""
    attention, head = seen.attention, seen.head
    queries, keys = labels_of(seen.trace, attention)
    figure = weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW)
    chart(headed(figure, title) if title else figure, f"all-heads-chosen-{attention.name}-{head}")
    readout_of(attention, head, queries, keys)
    view = replace(current(), show="", stage="weights")
    if seen.request.intervention.changes:
        view = replace(view, intervention=seen.request.intervention)
    view_link(
        "pages/attention.py",
        f"Open {name_of(seen, (attention.name, head))} in the explorer →",
        view,
    )
    write_link()
