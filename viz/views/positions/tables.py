"""Positions of each kind: the table as a heatmap or as curves, and how alike positions are."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.stream.positions import learned, likeness, rotary_likeness
from model.code.script import saves, stem
from model.nn.positions import TABLES, InPairs, PositionKind, TableLaw
from model.snippets.layers import positions
from model.trace.arrays import Array, read_only
from model.worked.equality import settled
from viz.elements.one_of import one_of
from viz.figures.curves import position_curves
from viz.figures.vectors import likeness_map, position_map
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference
from viz.notation.theme import CURVES
from viz.shell.model_picker import offer_model
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Table
from viz.shell.pictures import without_sentence
from viz.state.look import Look

LONGEST, FIRST_DRAWN, FEWEST = 256, 64, 8  # positions drawn
FIRST_COLUMNS = (0, 4, 10, 20)
SAME = 1e-2  # rounding of large angles stays below


@dataclass(frozen=True, eq=False)
class PositionTable:
    """One kind of positions at the live model's width."""

    law: TableLaw
    values: Array  # (position, column): vectors; of rotary positions angles in radians
    own: bool  # whether these are the live model's positions


def position_table(look: Look) -> Panel:
    """The table of one kind, as a heatmap or as curves, with one cell in numbers."""
    whole = _choose_table(look)
    if whole is None:
        return _missing(look)
    law, config, table = whole.law, look.model.config, _cut(whole)
    columns = _drawn_columns(table)
    (rows, width), shown = table.values.shape, law.shown(table.values)
    position = int(st.number_input("Position", 0, rows - 1, 1, key=f"positions-row-{rows}"))
    column = int(
        st.number_input(law.column.capitalize(), 0, width - 1, 0, key=f"positions-column-{width}")
    )
    names = {"column_name": law.column, "value_name": law.value}
    if columns is None:
        figure = position_map(shown, **names)
    else:
        figure = position_curves(shown, columns, **names)
    made_for, value = law.width(config), float(table.values[position, column])
    cell = law.cell(position, column, value, made_for, config.rotary_base)
    is_computed = isinstance(law, InPairs)
    return Panel(
        "positions-drawn",
        look_for=law.look,
        picture=figure,
        beside=[Formula(law.formula(config)), Formula(settled(cell)), _whose(look, whole)],
        check=_check(look, whole),
        code=Code(
            positions(law.code, rows, made_for, base=config.rotary_base),
            given={"table": f"{whole.values.shape}: the model's table of positions"},
            cell={"query": position, "dimension": column},
            value=value,
            reads=() if is_computed else _reads(look),
        ),
        table=Table(
            {f"{law.column} {at}": values for at, values in enumerate(shown.T)}, index="position"
        ),
    )


def position_likeness(look: Look) -> Panel:
    """How alike every two positions are."""
    whole = _choose_table(look)
    if whole is None:
        return _missing(look)
    law, table = whole.law, _cut(whole)
    alike = (rotary_likeness if law.turns else likeness)(table.values)
    scale = "1 means the same direction, 0 a right angle, −1 opposite directions."
    return Panel(
        "positions-likeness",
        look_for=law.alike,
        picture=likeness_map(alike),
        beside=[
            Formula(law.likeness),
            *([] if law.turns else [Caption(scale)]),
            _whose(look, whole),
        ],
        check=_check(look, whole),
        table=Table({str(at): row for at, row in enumerate(alike.T)}, index="position"),
    )


def _choose_table(look: Look) -> PositionTable | None:
    """The table of the chosen kind at this model's sizes; None for learned ones that it does not have."""
    without_sentence()
    config = look.model.config
    own = config.positions if config.positions in TABLES else next(iter(TABLES))
    kind: PositionKind = one_of(
        "Kind of positions",
        list(TABLES),
        f"positions-kind-{look.model.name}",
        default=own,
        named=lambda kind: TABLES[kind].title,
    )
    law, used = TABLES[kind], look.trace.positions
    if not isinstance(law, InPairs):
        values = learned(look.model)
        return None if values is None else PositionTable(law, values, config.positions == kind)
    formula = law.rows(config.n_ctx, law.width(config), config.rotary_base)
    # Models of the hub may turn a part of each head, stretch the angles, or order the columns otherwise.
    is_own = (
        config.positions == kind
        and used is not None
        and used.shape[-1] == formula.shape[-1]
        and bool(np.abs(formula[: len(used)] - used).max() < SAME)
    )
    return PositionTable(law, read_only(formula.astype(np.float32)), is_own)


def _missing(look: Look) -> Panel:
    """What stands in place of a table that this model does not have."""
    words = (
        f"{look.title} has {look.model.config.position_law.words}. A learned table cannot be computed from "
        "a formula; the model “Stories” has one."
    )
    return Panel(
        "positions-missing",
        below=[partial(st.info, plain(words)), partial(offer_model, "stories")],
    )


def _cut(whole: PositionTable) -> PositionTable:
    """As many positions as are to be drawn."""
    longest = min(len(whole.values), LONGEST)
    fewest = min(FEWEST, longest)
    if fewest == longest:
        return whole
    first = min(FIRST_DRAWN, longest)
    key = f"positions-count-{longest}"
    count = st.slider("Positions", fewest, longest, first, key=key, width=200)
    return replace(whole, values=whole.values[:count])


def _drawn_columns(table: PositionTable) -> list[int] | None:
    """The columns drawn as curves; None for the heatmap of all."""
    drawn = one_of("Picture", ("Heatmap", "Curves"), "positions-draw")
    if drawn == "Heatmap":
        return None
    count = table.values.shape[1]
    chosen: list[int] = st.multiselect(
        f"{table.law.column.capitalize()}s",
        range(count),
        [column for column in FIRST_COLUMNS if column < count],
        max_selections=len(CURVES),
        key=f"positions-columns-{count}",
        width=300,
    )
    return chosen


def _reads(look: Look) -> tuple[str, ...] | None:
    """The line of a script that reads the table of positions; None where no file has it by name."""
    name = "embedding.positions.weight"
    if not saves(look.model, name):
        return None
    return (f'table = load("{stem(look.model)}.safetensors", "{name}")[""]',)


def _whose(look: Look, whole: PositionTable) -> Caption:
    """Whose positions these are."""
    config, law = look.model.config, whole.law
    words = f"These are the positions of {look.title}."
    if not whole.own or look.trace.positions is None:
        words = (
            f"{look.title} has {config.position_law.words}. This picture shows the formula, for "
            f"its {law.of_width} of {law.width(config)}."
        )
    return Caption(plain(words))


def _check(look: Look, whole: PositionTable) -> Check | None:
    """How far the table is from the pass, where it is the model's."""
    used = look.trace.positions
    if not whole.own or used is None:
        return None
    largest = float(np.abs(whole.values[: len(used)] - used).max())
    return Check(
        f"Check: over the {counted(len(used), 'token')} of your sentence these positions differ from what "
        f"the model used by at most {difference(largest)}.",
        largest,
    )
