"""What the views of "All heads" share: the family of heads, the chosen head, and clicks on heads."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.analysis.heads.families import Family, Head, families, family_of, head_label
from viz.elements.plot import plot
from viz.figures.head_marks import Cell
from viz.figures.heatmap import NARROW, weights_of_head
from viz.saving.save import save_figure
from viz.shell import pictures
from viz.shell.controls import choose_head, choose_layer
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import change_view, current, write_link

FAMILY = "all-heads-family"


def choose_family(seen: Look) -> Family:
    """The heads that are looked at: asked only where a model has several kinds.

    The chosen layer belongs to them: it is the view's, and another family opens on its first one.
    """
    known = families(seen.trace)
    names = [attention.name for attention in seen.trace.attention]
    if current().place not in names:
        change_view(replace(current(), place=names[0], head=0))
    here = family_of(seen.trace.find(current().place))
    if len(known) > 1:
        st.session_state[FAMILY] = here
        st.segmented_control(
            "Heads of",
            known,
            required=True,
            format_func=lambda family: family.title,
            key=FAMILY,
            on_change=lambda: _open_family(seen, st.session_state[FAMILY]),
        )
    return here


def _open_family(seen: Look, family: Family) -> None:
    open_head(family.heads(seen.trace)[0])


def open_head(head: Head) -> None:
    """Makes this the chosen head of the view."""
    change_view(replace(current(), place=head[0], head=head[1]))


def opened() -> Head:
    """The chosen head."""
    return current().place, current().head


def cell_of(seen: Look, family: Family) -> Cell:
    """Where the chosen head stands among its family: layer and head, counted from 0."""
    names = [attention.name for attention in family.members(seen.trace)]
    return names.index(current().place), current().head


def name_of(seen: Look, head: Head) -> str:
    """L1H3, with the kind of attention before it where the model has several."""
    if len(families(seen.trace)) == 1:
        return head_label(head)
    family = family_of(seen.trace.find(head[0]))
    return f"{'cross' if family.cross else family.stack} {head_label(head)}"


def clickable(figure: go.Figure, heads: Sequence[Head], key: str, alt: str) -> None:
    """A picture with the trace "heads": a click on a point opens that head."""
    fresh = f"{key}-{'-'.join(map(str, opened()))}"  # nothing stays selected in a new picture
    plot(figure, fresh, alt=alt, clicked=partial(_take_mark, fresh, tuple(heads)))
    save_figure(figure, key)


def _take_mark(key: str, heads: tuple[Head, ...]) -> None:
    points = st.session_state[key].selection.points
    if points:
        open_head(heads[int(points[0]["point_index"])])


def listed(
    frame: pd.DataFrame, heads: Sequence[Head], key: str, decimals: int = 3, /, **columns: str
) -> None:
    """A table with one row a head: a click on a column's name sorts it, one on a row opens it.

    columns: what each column's question mark says.
    """
    numbers = frame.select_dtypes("number").columns
    formats = {
        name: st.column_config.NumberColumn(format=f"%.{decimals}f", help=columns.get(name))
        for name in numbers
    }
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        height=min(36 * len(frame) + 40, 460),
        column_config=formats,
        on_select=partial(_take_row, key, tuple(heads)),
        selection_mode="single-row",
    )


def _take_row(key: str, heads: tuple[Head, ...]) -> None:
    rows = st.session_state[key].selection.rows
    if rows:
        open_head(heads[int(rows[0])])


def chosen_head(seen: Look, family: Family) -> None:
    """The chosen head's weights, and the way to the explorer."""
    boxes = st.columns(2)
    with boxes[0]:
        choose_layer([attention.name for attention in family.members(seen.trace)])
    attention = seen.trace.find(current().place)
    with boxes[1]:
        head = choose_head(attention.heads)
    queries = [token.text for token in family.queries(seen.trace)]
    keys = [token.text for token in family.keys(seen.trace)]
    pictures.chart(
        weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW),
        f"all-heads-chosen-{attention.name}-{head}",
    )
    label = name_of(seen, (attention.name, head))
    view_link(
        "pages/attention.py",
        f"Open {label} in the explorer →",
        replace(current(), show="", stage="weights"),
    )
    write_link()
