"""A view as data: `Panel` is what it shows, and here is the one place where panels are drawn.

A view is a function that first asks for its controls, which stand in one row above the picture, and then
returns the panel they ask for. It opens no containers: where a thing stands is decided here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.snippets import STYLES, Snippet, Style, lone_script
from model.snippets.script import TRACE_FILE
from model.trace.unproven import NotShownError
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_of
from viz.elements.plot import held_place, plot
from viz.notation.csv_safe import sheltered_table
from viz.notation.numbers import difference
from viz.notation.words import sentences_of
from viz.saving.save import save_figure
from viz.shell.pictures import lines_of, look_for, script_of

if TYPE_CHECKING:
    import pandas as pd

say = sentences_of("shell.panel")

TABLE_CELLS = 200_000  # of a table: a few megabytes


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
class Check:
    """A comparison of the numbers with what the model itself computed.

    Args:
        words: what is compared, and how far apart the two are, in Markdown.
        result: the largest difference; or what was compared, counted in a few words.
    """

    words: str
    result: float | str


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture, for screen readers and for copying.

    Args:
        columns: by name, each as long as the table.
        index: what a row's number counts.
        decimals: of numbers that are not whole.
        formats: of columns that have other digits than `decimals`.
    """

    columns: "pd.DataFrame | Mapping[str, object]"
    index: str | None = None
    decimals: int = 4
    formats: Mapping[str, str] | None = None

    def draw(self, name: str) -> None:
        """name: of its panel."""
        import pandas as pd  # takes 0.3 seconds: pages are drawn first

        frame = pd.DataFrame(self.columns)
        if self.index is not None:
            frame = frame.rename_axis(self.index)
        numbers, formats = frame.select_dtypes("number"), self.formats or {}
        shown = {
            str(column): st.column_config.NumberColumn(
                format="%d" if whole else formats.get(str(column), f"%.{self.decimals}f")
            )
            for column, whole in (numbers.isna() | (numbers % 1 == 0)).all().items()
        }
        if (rows := max(1, TABLE_CELLS // max(1, frame.shape[1]))) < len(frame):
            st.caption(say("first_rows", rows=rows, frame=len(frame)))
            frame = frame[:rows]
        st.dataframe(sheltered_table(frame), key=f"table-{name}", column_config=shown)


_FILES = re.compile(r'load\("([^"]+)"')


@dataclass(frozen=True)
class Code:
    """The code behind the picture's number, in the style that the reader chooses, and as a script.

    Args:
        snippets: the lines, by style.
        given: what the lines read, with its shape or origin.
        cell: the indices of the chosen number.
        value: that number, as the page shows it.
        reads: the lines of a script that read the given arrays from files; None where no file holds them.
    """

    snippets: Mapping[Style, Snippet]
    given: Mapping[str, str]
    cell: Mapping[str, int]
    value: float
    reads: Sequence[str] | None

    def draw(self, name: str) -> None:
        """name: of its panel."""
        style = one_of(
            "Style", list(self.snippets), f"code-style-{name}", named=STYLES.__getitem__, quiet=True
        )
        lines_of(self.snippets[style], given=self.given, cell=self.cell, value=self.value)
        if self.reads is not None:
            script = lone_script(self.snippets[style], self.reads, self.cell)
            needs = ["PyTorch"] + [
                f"{file} ({say('whole_trace') if file == TRACE_FILE else say('page_code')})"
                for file in dict.fromkeys(_FILES.findall(script))
            ]
            words = say("needs_prints_number", needs=" and ".join(needs))
            script_of(script, words)


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
        saved: makes the figure that is saved, where the picture is none.
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
    check: Check | None = None
    saved: Callable[[], go.Figure] | None = None


Part = (
    str | Formula | Caption | Columns | Panel | Callable[[], object]
)  # a function draws what is no text
PanelView = Callable[..., Panel]
PLACE = "place-of-view"  # hatched by viz/shell/style.css where it has no picture


def draw_view(
    view: PanelView,
    *arguments: object,
    beside: DeltaGenerator | None = None,
    said: DeltaGenerator | None = None,
) -> None:
    """The view's controls in one row, and below them its panel. beside: a row in which they stand too, where
    there is room. said: where it says what to look for, instead of above the controls."""
    said = said or st.container()
    row = (beside or st).container(
        horizontal=True,
        vertical_alignment="bottom",
        gap="small",
        width="content",
        key=None if beside is None else "controls-of-view",
    )
    below = _Below(st.container())
    token = _below_row.set(below)
    try:
        with error_boundary():
            with row:
                panel = view(*arguments)
            if panel.picture is None and below.brings_picture:
                panel = replace(panel, picture=partial(st.html, '<div class="held"></div>'))
            if panel.look_for:
                with said:
                    look_for(panel.look_for)
                panel = replace(panel, look_for="")
            # What stood here goes part by part: the whole holds the place of its picture.
            has_place = beside is not None and panel.picture is not None
            with st.container(key=PLACE if has_place else None):
                draw_panel(panel)
    finally:
        _below_row.reset(token)


@dataclass
class _Below:
    """The row below the controls of a view."""

    row: DeltaGenerator
    brings_picture: bool = False


_below_row: ContextVar[_Below] = ContextVar("below_row")


@contextmanager
def below_controls() -> Iterator[None]:
    """Between the row of controls and the picture: for what a view draws before it knows its panel, such as
    the progress of passes in the background."""
    with _below_row.get().row:
        yield


def hold_place() -> None:
    """Holds the place of a picture that comes later, where the view has none yet."""
    _below_row.get().brings_picture = True


@contextmanager
def refusals() -> Iterator[None]:
    """Where the model's side refuses what is chosen: its sentence stands in the picture's place."""
    try:
        yield
    except ValueError as refusal:
        raise NotShownError(*refusal.args) from refusal


def draw_panel(panel: Panel) -> None:
    """Picture and words; above the picture its check and, at the right, all that can be had of it."""
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


def _draw_words(panel: Panel) -> None:
    if panel.look_for:
        look_for(panel.look_for)
    _draw_parts(panel.beside)


def _draw_picture(panel: Panel) -> None:
    figure, saved = panel.picture, panel.saved
    if isinstance(figure, go.Figure):
        saved = partial(go.Figure, figure)
    if panel.check or saved or panel.code or panel.table:
        _draw_above(panel.name, panel.check, saved, panel.code, panel.table)
    if isinstance(figure, go.Figure):
        key = panel.name if panel.chosen is None else f"{panel.name}-{panel.chosen}"
        with held_place(key, figure):
            plot(figure, key, alt=panel.alt, clicked=panel.clicked)
    elif figure is not None:
        _draw_parts([figure])


@st.fragment
def _draw_above(
    name: str,
    check: Check | None,
    saved: Callable[[], go.Figure] | None,
    code: Code | None,
    table: Table | None,
) -> None:
    """The result of the check; at the right ⋯, with its words, the picture to save, code and table.

    All but the words is drawn when it is opened. An open page keeps the arguments: they hold no trace.
    """
    parts = {"check": check, "save": saved, "code": code, "table": table}
    label = f"More: {', '.join(part for part, given in parts.items() if given is not None)}"
    with st.container(
        horizontal=True,
        horizontal_alignment="right",
        vertical_alignment="center",
        gap="small",
        key=f"above-{name}",
    ):
        if check is not None:
            result = check.result
            if not isinstance(result, str):
                result = f"largest difference {difference(result)}"
            st.caption(f"✓ {result}", width="content")
        more = st.popover(
            label,
            type="tertiary",
            icon=":material/more_horiz:",
            key=f"more-{name}",
            on_change="rerun",
        )
    with more:
        if check is not None:
            st.caption(check.words)
        if not more.open:
            return
        if saved is not None:
            save_figure(saved, name)
        if code is not None:
            st.markdown(say("code_behind"))
            code.draw(name)
        if table is not None:
            st.markdown(say("numbers_table"))
            table.draw(name)


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
