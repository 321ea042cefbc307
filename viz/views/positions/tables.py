"""Positions of each kind: the table as a heatmap or as curves, and how alike positions are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.stream.positions import learned, likeness, rotary, rotary_likeness, sinusoidal
from model.code.script import saves, stem
from model.nn.config import PositionKind
from model.snippets.layers import positions
from model.trace.arrays import Array
from viz.elements.one_of import one_of
from viz.figures.curves import position_curves
from viz.figures.vectors import likeness_map, position_map
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import CURVES
from viz.shell.model_picker import offer_model
from viz.shell.pictures import chart, code_behind, look_for, table, without_sentence
from viz.state.look import Look
from viz.views.positions.formulas import (
    LIKENESS,
    ROTARY_LIKENESS,
    Kind,
    cell_in_numbers,
    table_formula,
)

NAMES: dict[Kind, str] = {"sinusoidal": "Sinusoidal", "learned": "Learned", "rotary": "Rotary"}
OWN: dict[PositionKind, str] = {
    "learned": "learned positions",
    "sinusoidal": "sinusoidal positions",
    "rotary": "rotary positions",
    "alibi": "no such vectors: ALiBi adds numbers to its scores",
    "buckets": "no such vectors: it adds numbers to its scores, by buckets of distances",
    "disentangled": "positions that enter its scores alone",
    "none": "no positions at all",
}
TABLE_LOOK: dict[Kind, str] = {
    "sinusoidal": (
        "The left columns change from one position to the next, the right ones hardly at all, "
        "like the fast and slow hands of a clock. Together they give every position its own "
        "row."
    ),
    "learned": (
        "This table was learned. Look for columns that change slowly from position to "
        "position, and for rows that differ from all others."
    ),
    "rotary": (
        "Nothing is added here. Each pair of numbers in a query or key is rotated by an angle "
        "that grows with the position: fast in the left columns, slowly in the right ones."
    ),
}
LIKENESS_LOOK: dict[Kind, str] = {
    "sinusoidal": (
        "Stripes along the diagonal: how similar two positions are depends only on their distance."
    ),
    "learned": (
        "Is there a band along the diagonal? Then the model has learned that neighbours are "
        "similar, although nothing told it that position 3 comes after position 2."
    ),
    "rotary": (
        "Stripes along the diagonal: the rotation between two positions depends only on their "
        "distance. Sinusoidal positions with the same base, as wide as the rotated part of a "
        "head, give the same picture."
    ),
}
LONGEST, FIRST_DRAWN, FEWEST = 256, 64, 8  # positions drawn
FIRST_COLUMNS = (0, 4, 10, 20)
SAME = 1e-2  # rounding of large angles stays below


@dataclass(frozen=True, eq=False)
class PositionTable:
    """One kind of positions at the live model's width."""

    kind: Kind
    values: Array  # (position, column): vectors; of rotary positions angles in radians
    own: bool  # whether these are the live model's positions

    @property
    def turned(self) -> bool:
        return self.kind == "rotary"

    @property
    def shown(self) -> Array:
        """(position, column): what is drawn; an angle as its cosine."""
        return np.cos(self.values) if self.turned else self.values

    @property
    def column(self) -> str:
        return "pair" if self.turned else "dimension"


def position_table(seen: Look) -> None:
    """The table of one kind, as a heatmap or as curves, with one cell in numbers."""
    opened = _opened(seen, TABLE_LOOK)
    if opened is None:
        return
    whole, picture, choices = opened
    with choices:
        st.latex(table_formula(whole.kind, seen.model.config))
        found = _cut(whole)
        columns = _drawn_columns(found)
        cell = _cell(seen, found)
    with picture:
        value = "cosine of the angle" if found.turned else "value"
        names = {"column_name": found.column, "value_name": value}
        if columns is None:
            figure = position_map(found.shown, **names)
        else:
            figure = position_curves(found.shown, columns, **names)
        chart(figure, "positions-drawn")
        st.caption(_said(seen, whole))
    _code(seen, found, whole, cell)
    named = {f"{found.column} {at}": values for at, values in enumerate(found.shown.T)}
    table(named, "positions-table", index="position")


def position_likeness(seen: Look) -> None:
    """How alike every two positions are."""
    opened = _opened(seen, LIKENESS_LOOK)
    if opened is None:
        return
    whole, picture, choices = opened
    with choices:
        st.latex(ROTARY_LIKENESS if whole.turned else LIKENESS)
        found = _cut(whole)
        if not whole.turned:
            st.caption("1 means the same direction, 0 a right angle, −1 opposite directions.")
    alike = (rotary_likeness if whole.turned else likeness)(found.values)
    with picture:
        chart(likeness_map(alike), "positions-likeness")
        st.caption(_said(seen, whole))
    table({str(at): row for at, row in enumerate(alike.T)}, "positions-likeness", index="position")


def _opened(
    seen: Look, looks: Mapping[Kind, str]
) -> tuple[PositionTable, DeltaGenerator, DeltaGenerator] | None:
    """The table of the chosen kind, and the places for its picture and for the choices beside it.

    None where this model has no such table, which is then said in place of the picture.
    """
    without_sentence()
    picture, choices = st.columns([3, 2], gap="large")
    above = choices.container()
    own = seen.model.config.positions
    kind: Kind = one_of(
        "Kind of positions",
        list(NAMES),
        f"positions-kind-{seen.model.name}",
        default=own if own in NAMES else "sinusoidal",
        named=NAMES.__getitem__,
        box=choices,
        quiet=True,
    )
    whole = _table(seen, kind)
    if whole is None:
        with picture:
            st.info(
                plain(
                    f"{seen.title} has {OWN[own]}. A learned table cannot be computed from a "
                    "formula; the model “Stories” has one."
                )
            )
            offer_model("stories")
        return None
    look_for(looks[kind], above)
    return whole, picture, choices


def _table(seen: Look, kind: Kind) -> PositionTable | None:
    """The table of a kind at this model's sizes; None for learned ones that it does not have."""
    config = seen.model.config
    if kind == "learned":
        values = learned(seen.model)
        return None if values is None else PositionTable(kind, values, config.positions == kind)
    if kind == "sinusoidal":
        formula = sinusoidal(config.n_ctx, config.d_model)
    else:
        formula = rotary(config.n_ctx, config.turned_width, config.rotary_base)
    # Models of the hub may turn a part of each head, stretch the angles, or order the columns otherwise.
    used = seen.trace.positions
    own = (
        config.positions == kind
        and used is not None
        and used.shape[-1] == formula.shape[-1]
        and bool(np.abs(formula[: len(used)] - used).max() < SAME)
    )
    return PositionTable(kind, formula, own)


def _cut(whole: PositionTable) -> PositionTable:
    """As many positions as are to be drawn."""
    longest = min(len(whole.values), LONGEST)
    fewest = min(FEWEST, longest)
    if fewest == longest:
        return whole
    count = st.slider(
        "Positions", fewest, longest, min(FIRST_DRAWN, longest), key=f"positions-count-{longest}"
    )
    return replace(whole, values=whole.values[:count])


def _drawn_columns(found: PositionTable) -> list[int] | None:
    """The columns drawn as curves; None for the heatmap of all."""
    drawn = one_of("Picture", ("Heatmap", "Curves"), "positions-draw")
    if drawn == "Heatmap":
        return None
    count = found.values.shape[1]
    chosen: list[int] = st.multiselect(
        f"{found.column.capitalize()}s",
        range(count),
        [column for column in FIRST_COLUMNS if column < count],
        max_selections=len(CURVES),
        key=f"positions-columns-{count}",
    )
    return chosen


def _cell(seen: Look, found: PositionTable) -> tuple[int, int]:
    """One cell of the table with the numbers it is made of: its position and column."""
    rows, columns = found.values.shape
    left, right = st.columns(2)
    position = left.number_input("Position", 0, rows - 1, 1, key=f"positions-row-{rows}")
    column = right.number_input(
        found.column.capitalize(), 0, columns - 1, 0, key=f"positions-column-{columns}"
    )
    config = seen.model.config
    st.latex(
        cell_in_numbers(
            found.kind,
            position,
            column,
            float(found.values[position, column]),
            width=config.turned_width if found.turned else config.d_model,
            base=config.rotary_base,
        )
    )
    return position, column


def _code(seen: Look, found: PositionTable, whole: PositionTable, cell: tuple[int, int]) -> None:
    """found: the positions that are drawn. whole: all of them."""
    config = seen.model.config
    code_behind(
        positions(
            "table" if found.kind == "learned" else found.kind,
            len(found.values),
            config.turned_width if found.turned else config.d_model,
            base=config.rotary_base,
        ),
        "positions",
        given={"table": f"{whole.values.shape}: the model's table of positions"},
        cell={"query": cell[0], "dimension": cell[1]},
        value=float(found.values[cell]),
        reads=_reads(seen) if found.kind == "learned" else (),
    )


def _reads(seen: Look) -> tuple[str, ...] | None:
    """The line of a script that reads the table of positions; None where no file has it by name."""
    name = "embedding.positions.weight"
    if not saves(seen.model, name):
        return None
    return (f'table = load("{stem(seen.model)}.safetensors", "{name}")[""]',)


def _said(seen: Look, whole: PositionTable) -> str:
    """Whose positions these are; where they are the model's, how far the table is from the pass."""
    config = seen.model.config
    width = config.turned_width if whole.turned else config.d_model
    used = seen.trace.positions
    if not whole.own or used is None:
        return plain(
            f"{seen.title} has {OWN[config.positions]}. This picture shows the formula, for "
            f"its {'head width' if whole.kind == 'rotary' else 'width'} of {width}."
        )
    largest = float(np.abs(whole.values[: len(used)] - used).max())
    return plain(
        f"These are the positions of {seen.title}. Check: over the {counted(len(used), 'token')} of "
        f"your sentence they differ from what the model used by at most {difference(largest)}."
    )
