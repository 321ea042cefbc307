"""What the screens of heads share: the family of heads, the chosen head beside a picture of all, and one
number of each head as a grid or as a list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from model.analysis.heads.statistics import Family, families, family_of
from model.nn.places import Head
from model.profile.shipped import profile_of
from viz.elements.one_of import one_of
from viz.figures.head_tiles import TileCell, head_bars, head_map
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.notation.head_labels import SHORT, given_labels, labels_by_head
from viz.notation.markdown import plain
from viz.notation.theme import QuantityName
from viz.shell.panel import Panel, Part, draw_panel
from viz.state.look import Look, labels_of
from viz.state.navigation import view_link
from viz.state.session import change_view, current, shown, write_link

GRID, LIST = "Grid", "List"
LISTED = 20  # heads of a list; the table has all
HeadWords = Callable[[float], str]


def choose_family(look: Look) -> Family:
    """The heads that are compared; a choice only where a model has several kinds. Another family opens on
    its first head."""
    known = families(look.trace)
    names = [attention.name for attention in look.trace.attention]
    if current().place not in names:
        open_head((names[0], 0))
    here = family_of(look.trace, look.trace.find(current().place))
    if len(known) > 1:
        st.selectbox(
            "Heads of",
            known,
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


def head_names(look: Look, heads: Iterable[Head]) -> list[str]:
    """The same of many heads: a family has hundreds."""
    before = {one.name: one.place.before_head for one in look.trace.attention}
    return [f"{before[layer]}H{head}" for layer, head in heads]


def jobs_of(look: Look, heads: Sequence[Head]) -> list[str]:
    """The first job of each head in a word, as a profile that ships has shown it; "" where none is known."""
    profile = profile_of(look.model)
    if profile is None:
        return [""] * len(heads)
    rows = given_labels(profile).drop_duplicates(["layer", "head"])
    first = zip(zip(rows["layer"], rows["head"], strict=True), rows["label"], strict=True)
    known = {head: SHORT[label] for head, label in first}
    return [known.get(head, "") for head in heads]


def evidence(look: Look, head: Head) -> Sequence[str]:
    """All jobs of a head, each with its numbers, in Markdown."""
    profile = profile_of(look.model)
    return () if profile is None else labels_by_head(profile).get(head, ())


def of_heads(
    panel: Panel,
    look: Look,
    family: Family,
    values: NDArray[np.float64],
    *,
    quantity: QuantityName,
    title: str,
    words: HeadWords,
    cell: tuple[int, int] | None = None,
) -> Panel:
    """The panel with one number of each head of the family as its picture, as a grid or as a list, and the
    chosen head to the right. NaN: a head without one.

    words: what hovering says of a value, after the head's name.
    """
    heads = family.heads(look.trace)
    jobs, names = jobs_of(look, heads), head_names(look, heads)
    hovered = [
        f"{name}<br>{words(float(value))}" for name, value in zip(names, values, strict=True)
    ]
    if one_of("Show as", (GRID, LIST), "all-heads-as", quiet=True) == GRID:
        figure = head_map(
            values.reshape(len(family.members(look.trace)), -1),
            quantity=quantity,
            title=title,
            chosen=cell_of(look, family),
            words=hovered,
            jobs=jobs,
        )
        return beside_chosen(panel, look, figure, heads, cell=cell)
    by = np.abs(values) if quantity == "difference" else values
    order = [at for at in np.argsort(-by, kind="stable").tolist() if not np.isnan(values[at])]
    rows = order[:LISTED]
    listed = [heads[at] for at in rows]
    chosen = (current().place, current().head)
    figure = head_bars(
        [f"{names[at]} {jobs[at]}".strip() for at in rows],
        values[rows].tolist(),
        quantity=quantity,
        title=title,
        words=[hovered[at] for at in rows],
        chosen=listed.index(chosen) if chosen in listed else None,
    )
    return beside_chosen(panel, look, figure, listed, f"{panel.chosen or ''}list-", cell)


def beside_chosen(
    panel: Panel,
    look: Look,
    figure: go.Figure,
    heads: Sequence[Head],
    chosen: object = None,
    cell: tuple[int, int] | None = None,
) -> Panel:
    """The panel with this picture, of which a click on a point opens one of the heads; and to the right the
    chosen head."""
    which = panel.chosen if chosen is None else chosen
    picture = replace(
        panel,
        look_for="",
        picture=figure,
        clicked=lambda place: open_head(heads[place]),
        chosen=f"{which or ''}{current().place}-{current().head}",
        beside=(),
    )
    return Panel(
        f"{panel.name}-and-head",
        look_for=panel.look_for,
        picture=partial(draw_panel, picture),
        beside=[*panel.beside, *chosen_head(look, cell=cell)],
    )


def chosen_head(look: Look, title: str = "", cell: tuple[int, int] | None = None) -> list[Part]:
    """The chosen head's weights in a run under its name and its jobs, and the way to all that is known of it.
    title: above the weights, in place of the head's name. cell: query and key that stand in a frame."""
    attention, head = look.attention, look.head
    queries, keys = labels_of(look.trace, attention)
    name = name_of(look, (attention.name, head))
    figure = weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW, cell=cell)
    view = replace(current(), show="", intervention=look.request.intervention)
    jobs = "; ".join(evidence(look, (attention.name, head)))
    parts: list[Part] = [f"**{name}**: {plain(jobs)}"] if jobs and not title else []
    picture = Panel(
        f"all-heads-chosen-{attention.name}-{head}", picture=headed(figure, title or name)
    )
    link = partial(view_link, "pages/head.py", f"All about {name} →", view)
    return [*parts, link, picture, write_link]


def table_of(look: Look, heads: Sequence[Head], columns: Mapping[str, object]) -> dict[str, object]:
    """A row for each head, with its name and its job."""
    jobs = jobs_of(look, heads)
    named: dict[str, object] = {"head": head_names(look, heads)}
    return named | ({"job": jobs} if any(jobs) else {}) | dict(columns)
