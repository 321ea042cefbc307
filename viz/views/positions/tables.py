"""Positions of each kind: the table as a heatmap or as curves, and how alike positions are."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.stream.positions import learned, rotary_similarity, similarity
from model.code.script import saves, stem
from model.nn.positions import TABLES, InPairs, TableLaw
from model.snippets.layers import positions
from model.trace.arrays import Array, read_only
from model.trace.unproven import NotShownError
from model.worked.equality import settled
from viz.elements.one_of import keep_within, one_listed
from viz.figures.chart import frame
from viz.figures.curves import position_curves
from viz.figures.vectors import likeness_map, position_map
from viz.notation.markdown import plain
from viz.notation.theme import MASKED
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Table
from viz.state.look import Look

say = sentences_of("positions.tables")

DRAWN = 64  # positions
COLUMNS = (0, 4, 10, 20)  # drawn as curves, with the chosen one
PICTURES = ("Heatmap", "Curves")
BAND = 0.1  # by so much neighbours must be more alike than positions far apart
SAME = 1e-2  # rounding of large angles stays below


@dataclass(frozen=True, eq=False)
class PositionTable:
    """One kind of positions at the live model's width."""

    law: TableLaw
    values: Array  # (position, column): vectors; of rotary positions angles in radians
    own: bool  # whether these are the live model's positions


def position_table(look: Look) -> Panel:
    """The table of one kind, as a heatmap or, of a formula, as curves, with one cell in numbers."""
    whole = _choose_table(look)
    law, config, values = whole.law, look.model.config, whole.values[:DRAWN]
    (rows, width), shown = values.shape, law.shown(values)
    names = {"column_name": law.column, "value_name": law.value}
    as_curves = isinstance(law, InPairs) and one_listed("Picture", PICTURES, "positions-draw") == 1
    keys = f"positions-row-{rows}", f"positions-column-{width}"
    keep_within(keys[0], rows, 1)
    keep_within(keys[1], width)
    position, column = (int(st.session_state[key]) for key in keys)
    words, used = law.look, look.trace.positions
    if as_curves:
        columns = dict.fromkeys([column, *(one for one in COLUMNS if one < width)])
        figure = position_curves(shown, list(columns), **names)
    else:
        figure = position_map(shown, **names)
        if whole.own and used is not None and len(used) < rows:
            frame(figure, (-0.5, width - 0.5, -0.5, len(used) - 0.5), MASKED)
            words += say("framed_sentence", used=len(used))
    made_for, value = law.width(config), float(values[position, column])
    cell = law.cell(position, column, value, made_for, config.rotary_base)
    return Panel(
        "positions-drawn",
        look_for=words,
        picture=figure,
        beside=[
            Formula(law.formula(config)),
            partial(_choose_cell, (law.column.capitalize(), width), rows, keys),
            Formula(settled(cell)),
            _whose(look, whole),
        ],
        check=_check(look, whole),
        code=Code(
            positions(law.code, rows, made_for, base=config.rotary_base),
            given={"table": say("model_table_positions", values=whole.values.shape)},
            cell={"query": position, "dimension": column},
            value=value,
            reads=() if isinstance(law, InPairs) else _reads(look),
        ),
        table=Table(
            {f"{law.column} {at}": values for at, values in enumerate(shown.T)}, index="position"
        ),
    )


def _choose_cell(columns: tuple[str, int], rows: int, keys: tuple[str, str]) -> None:
    """Beside the formula: whose numbers it holds. columns: their name, and how many there are. keys: of both
    numbers in the session state."""
    one, other = st.columns(2)
    one.number_input("Position", 0, rows - 1, key=keys[0])
    other.number_input(columns[0], 0, columns[1] - 1, key=keys[1])


def position_likeness(look: Look) -> Panel:
    """How alike every two positions are."""
    whole = _choose_table(look)
    law, values = whole.law, whole.values[:DRAWN]
    alike = (rotary_similarity if law.turns else similarity)(values)
    scale = say("1_means_same_direction")
    return Panel(
        "positions-likeness",
        look_for=_band(alike),
        picture=likeness_map(alike),
        beside=[
            Formula(law.similarity),
            *([] if law.turns else [Caption(scale)]),
            _whose(look, whole),
        ],
        check=_check(look, whole),
        table=Table({str(at): row for at, row in enumerate(alike.T)}, index="position"),
    )


def _band(alike: Array) -> str:
    """Whether positions are the more alike the nearer they are."""
    half = len(alike) // 2
    if half < 2:
        return say("longer_table_show")
    near, far = (float(np.diagonal(alike, apart).mean()) for apart in (1, half))
    words = say("neighbours_mean_likeness", near=near, half=half, far=far)
    if near - far > BAND:
        return say("band_along_diagonal", words=words)
    return say("band_along_diagonal_vectors", words=words, half=half)


def _choose_table(look: Look) -> PositionTable:
    """The table of the chosen kind at this model's sizes: at first the model's own, where it has one."""
    config, table = look.model.config, learned(look.model)
    kinds = sorted(TABLES, key=lambda kind: kind != config.positions)
    if table is None:
        kinds = [kind for kind in kinds if isinstance(TABLES[kind], InPairs)]
    titles = [TABLES[kind].title for kind in kinds]
    kind = kinds[one_listed("Kind of positions", titles, f"positions-kind-{look.model.name}")]
    law, used = TABLES[kind], look.trace.positions
    if not isinstance(law, InPairs):
        if table is None:
            raise NotShownError(f"{look.title} has no table of learned positions.")
        return PositionTable(law, table, config.positions == kind)
    formula = law.rows(config.n_ctx, law.width(config), config.rotary_base)
    # Models of the hub may turn a part of each head, stretch the angles, or order the columns otherwise.
    is_own = (
        config.positions == kind
        and used is not None
        and used.shape[-1] == formula.shape[-1]
        and bool(np.abs(formula[: len(used)] - used).max() < SAME)
    )
    return PositionTable(law, read_only(formula.astype(np.float32)), is_own)


def _reads(look: Look) -> tuple[str, ...] | None:
    """The line of a script that reads the table of positions; None where no file has it by name."""
    name = "embedding.positions.weight"
    if not saves(look.model, name):
        return None
    return (f'table = load("{stem(look.model)}.safetensors", "{name}")[""]',)


def _whose(look: Look, whole: PositionTable) -> Caption:
    """Whose positions these are."""
    config, law = look.model.config, whole.law
    words = say("positions", look=look.title)
    if not whole.own or look.trace.positions is None:
        words = say(
            "picture_shows_formula",
            look=look.title,
            position_law=config.position_law.words,
            of_width=law.of_width,
            width=law.width(config),
        )
    return Caption(plain(words))


def _check(look: Look, whole: PositionTable) -> Check | None:
    """How far the table is from the pass, where it is the model's."""
    used = look.trace.positions
    if not whole.own or used is None:
        return None
    largest = float(np.abs(whole.values[: len(used)] - used).max())
    return Check(
        say("check_over_sentence", used=len(used), largest=largest),
        largest,
    )
