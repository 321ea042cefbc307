"""What the views of "All heads" share: the family of heads, the chosen head, maps and lists of heads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from model.analysis.heads.statistics import Family, families, family_of
from model.nn.places import Head
from viz.elements.one_of import choosable_table, one_of
from viz.figures.head_tiles import TileCell, head_map
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.notation.theme import QuantityName
from viz.shell.panel import Panel, Part, draw_panel
from viz.shell.pictures import look_for, readout_of
from viz.state.look import Look, labels_of
from viz.state.navigation import HOME, view_link
from viz.state.session import change_view, current, shown, write_link

LIST, MAP = "List", "Map"


def choose_family(look: Look) -> Family:
    """The heads that are compared; a choice only where a model has several kinds. Another family opens on
    its first head."""
    known = families(look.trace)
    names = [attention.name for attention in look.trace.attention]
    if current().place not in names:
        open_head((names[0], 0))
    here = family_of(look.trace, look.trace.find(current().place))
    if len(known) > 1:
        st.segmented_control(
            "Heads of",
            known,
            required=True,
            format_func=lambda family: family.title,
            **shown("all-heads-family", here, lambda to: open_head(to.heads(look.trace)[0])),
        )
    return here


def open_head(head: Head) -> None:
    change_view(replace(current(), place=head[0], head=head[1]))


def names_of(family: Family, look: Look) -> list[str]:
    return [attention.name for attention in family.members(look.trace)]


def cell_of(look: Look, family: Family) -> TileCell:
    """Where the chosen head stands among its family: layer and head, counted from 0."""
    return names_of(family, look).index(current().place), current().head


def name_of(look: Look, head: Head) -> str:
    return look.trace.find(head[0]).place.head(head[1])


def map_or_list(view: str, *, first: str = MAP) -> str:
    """MAP or LIST, as it was chosen in one of the views; `first` is what it opens on."""
    ways = (MAP, LIST) if first == MAP else (LIST, MAP)
    return one_of("Show as", ways, f"all-heads-{view}-as")


def of_heads(panel: Panel, look: Look, heads: Sequence[Head], title: str = "") -> Panel:
    """The panel with its words under the picture, and to the right the chosen head's weights.

    Args:
        heads: one for each point of the picture, which a click opens; none where nothing is to be clicked.
        title: of the weights.
    """
    words: list[Part] = [partial(look_for, panel.look_for)] if panel.look_for else []
    picture = replace(
        panel,
        look_for="",
        beside=(),
        clicked=(lambda place: open_head(heads[place])) if heads else None,
        chosen=f"{panel.chosen or ''}{current().place}-{current().head}",
        below=[*words, *panel.beside, *panel.below],
    )
    return Panel(
        panel.name,
        picture=partial(draw_panel, picture),
        beside=[chosen_head(look, title)],
    )


def map_of_heads(
    look: Look,
    family: Family,
    values: NDArray[np.float64],
    *,
    quantity: QuantityName,
    title: str,
    words: Callable[[float], str],
    decimals: int = 2,
) -> go.Figure:
    """values (head of the family,): one cell each, the chosen head's framed.

    words: what hovering says of a value, after the head's name.
    """
    return head_map(
        values.reshape(len(family.members(look.trace)), -1),
        quantity=quantity,
        title=title,
        chosen=cell_of(look, family),
        words=[
            f"{name_of(look, head)}<br>{words(float(value))}"
            for head, value in zip(family.heads(look.trace), values, strict=True)
        ],
        decimals=decimals,
    )


def list_of_heads(
    look: Look,
    heads: Sequence[Head],
    columns: Mapping[str, NDArray[np.float64]],
    key: str,
    *,
    head: str = "head",
    decimals: int = 3,
    helps: Mapping[str, str] | None = None,
) -> Callable[[], None]:
    """A table with one row for each head: a click on a row opens it, one on a column's name sorts by it.

    head: name of the first column. helps: what the question mark of a column says.
    """
    frame = pd.DataFrame({head: [name_of(look, one) for one in heads], **columns})
    return partial(
        choosable_table,
        frame,
        key,
        lambda row: open_head(heads[row]),
        decimals=decimals,
        helps=helps,
        height=min(36 * len(frame) + 40, 340),
        hide_index=True,
    )


def chosen_head(look: Look, title: str = "") -> Panel:
    """The chosen head's weights in a run, and a link to the explorer."""
    attention, head = look.attention, look.head
    queries, keys = labels_of(look.trace, attention)
    figure = weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW)
    view = replace(current(), show="", stage="weights")
    if look.request.intervention.changes:
        view = replace(view, intervention=look.request.intervention)
    label = f"Open {name_of(look, (attention.name, head))} in the explorer →"
    return Panel(
        f"all-heads-chosen-{attention.name}-{head}",
        picture=headed(figure, title) if title else figure,
        below=[
            partial(readout_of, attention, head, queries, keys),
            partial(view_link, HOME, label, view),
            write_link,
        ],
    )
