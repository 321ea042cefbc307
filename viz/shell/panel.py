"""A view as data: `Panel` is what it shows, and here is the one place where panels are drawn.

A view is a function that first asks for its controls, which stand in one row above the picture, and then
returns the panel they ask for. It opens no containers: where a thing stands is decided here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.snippets import Snippet, Style
from model.trace.unproven import NotShownError
from viz.elements.error_boundary import error_boundary
from viz.elements.plot import plot
from viz.saving.save import save_figure
from viz.shell.pictures import code_behind, look_for, table


@dataclass(frozen=True)
class Formula:
    """LaTeX."""

    latex: str


@dataclass(frozen=True)
class Caption:
    """A remark in small print, in Markdown."""

    words: str


@dataclass(frozen=True)
class Columns:
    """Parts side by side."""

    parts: "Sequence[Part]"


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture. index: what a row's number counts. formats: of columns that have other
    digits than `decimals`."""

    columns: pd.DataFrame | Mapping[str, object]
    index: str | None = None
    decimals: int = 4
    formats: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Code:
    """The code behind the picture's number: see `code_behind`."""

    snippets: Mapping[Style, Snippet]
    given: Mapping[str, str]
    cell: Mapping[str, int]
    value: float
    reads: Sequence[str] | None


@dataclass(frozen=True)
class Panel:
    """What a view shows.

    Args:
        name: of its picture, table and files; two panels of a page have two names.
        look_for: what there is to see in the picture, in Markdown.
        picture: a figure, which can be saved; panels side by side; or what draws another kind of picture.
        clicked: is told the number of a clicked point of the figure.
        chosen: what is chosen in the figure, where clicks choose: for another choice it is drawn anew.
        alt: what the figure shows, in words; empty: the figure's own words.
        beside: Markdown, formulas and remarks to the right of the picture, under `look_for`.
        below: the same under the picture, over its whole width; and more panels.
        check: the comparison that the numbers passed, with its largest difference.
    """

    name: str
    look_for: str = ""
    picture: "go.Figure | Columns | Callable[[], object] | None" = None
    clicked: Callable[[int], None] | None = None
    chosen: object = None
    alt: str = ""
    beside: "Sequence[Part]" = ()
    below: "Sequence[Part]" = ()
    table: Table | None = None
    code: Code | None = None
    check: str = ""


Part = (
    str | Formula | Caption | Columns | Panel | Callable[[], object]
)  # a function draws what is no text
PanelView = Callable[..., Panel | None]  # None: it has drawn all of it by itself


def draw_view(view: PanelView, *arguments: object, beside: DeltaGenerator | None = None) -> None:
    """The view's controls in one row, and below them its panel. beside: a row in which they stand too, where
    there is room."""
    is_data = getattr(view, "__annotations__", {}).get("return") is Panel
    place, key = (st, None) if beside is None or not is_data else (beside, "controls-of-view")
    row = place.container(
        horizontal=is_data,
        vertical_alignment="bottom",
        gap="small",
        width="content" if is_data else "stretch",
        key=key,
    )
    below = _below_row.set(st.container())
    try:
        with error_boundary():
            with row:
                panel = view(*arguments)
            if panel is not None:
                draw_panel(panel)
    finally:
        _below_row.reset(below)


_below_row: ContextVar[DeltaGenerator] = ContextVar("below_row")


@contextmanager
def below_controls() -> Iterator[None]:
    """Between the row of controls and the picture: for what a view draws before it knows its panel, such as
    the progress of passes in the background."""
    with _below_row.get():
        yield


@contextmanager
def refusals() -> Iterator[None]:
    """Where the model's side refuses what is chosen: its sentence stands in the picture's place."""
    try:
        yield
    except ValueError as refusal:
        raise NotShownError(*refusal.args) from refusal


def draw_panel(panel: Panel) -> None:
    """Picture and words, and below them check, code and table."""
    if panel.picture is not None and panel.beside:
        picture, words = st.columns([3, 2], gap="large")
        with picture:
            _draw_picture(panel)
        with words:
            _draw_words(panel)
    else:
        _draw_words(panel)
        _draw_picture(panel)
    _draw_parts(panel.below)
    if panel.check:
        st.caption(panel.check)
    if (code := panel.code) is not None:
        code_behind(
            code.snippets,
            panel.name,
            given=code.given,
            cell=code.cell,
            value=code.value,
            reads=code.reads,
        )
    if (numbers := panel.table) is not None:
        table(
            numbers.columns,
            panel.name,
            index=numbers.index,
            decimals=numbers.decimals,
            formats=numbers.formats,
        )


def _draw_words(panel: Panel) -> None:
    if panel.look_for:
        look_for(panel.look_for)
    _draw_parts(panel.beside)


def _draw_picture(panel: Panel) -> None:
    figure = panel.picture
    if isinstance(figure, go.Figure):
        key = panel.name if panel.chosen is None else f"{panel.name}-{panel.chosen}"
        plot(figure, key, alt=panel.alt, clicked=panel.clicked)
        save_figure(lambda: figure, panel.name)
    elif figure is not None:
        _draw_parts([figure])


def _draw_parts(parts: "Sequence[Part]") -> None:
    for part in parts:
        match part:
            case str():
                st.markdown(part)
            case Formula(latex):
                st.latex(latex)
            case Caption(words):
                st.caption(words)
            case Columns(parts):
                for column, one in zip(st.columns(len(parts), gap="large"), parts, strict=True):
                    with column:
                        _draw_parts([one])
            case Panel():
                draw_panel(part)
            case _:
                part()
