"""Why one score is what it is: the sum of what each part of the query makes with each part of the key."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.attribution.score_parts import FEW, Group, grouped, summed
from model.analysis.heads.labels import allowed_cells
from model.nn.places import head_named
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.blocks import of_query
from viz.elements.one_of import one_of
from viz.elements.plot import plot
from viz.figures import head_tiles as figures
from viz.notation.labels import plotly_words, token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.notation.numbers import agreeing, difference, signed
from viz.saving.save import save_figure
from viz.shell.frame import frame
from viz.shell.pictures import look_for, readout_of, table
from viz.state.look import Look, loaded, traced
from viz.views.attention.edges import Cell, choose_cell, chosen_cell, follow, way_here
from viz.views.attention.score_words import how_a_score_adds_up

if TYPE_CHECKING:
    from model.analysis.attribution.score_parts import ScoreParts

SCORE, ABOVE = "The score", "Above the row's mean"
LISTED = 8  # pairs of parts with a way on
TABLED = 200
_LAYERS = "layers-of-scores"  # session state: a cell, and the layers of it that are opened


@lru_cache(maxsize=8)  # of 12 layers of 12 heads each is 350 kB
def _parts(request: Request, cell: Cell) -> "ScoreParts":
    from model.analysis import score_parts  # imports torch: pages are drawn first

    return score_parts(loaded(request.model), traced(request), *cell)


@dataclass(frozen=True)
class _Sum:
    """The sum that is shown: the score, or how far it lies above the mean of its row."""

    values: Wide  # (query part, key part)
    recorded: float
    is_above: bool

    @property
    def order(self) -> list[tuple[int, int]]:
        """The pairs of parts, the largest first, whatever their sign."""
        flat = np.argsort(-np.abs(self.values), axis=None, kind="stable")
        return [divmod(int(at), self.values.shape[1]) for at in flat]


def why_this_score(seen: Look) -> None:
    """The chosen cell's score as a sum, drawn and ranked; a part leads to the head that wrote it."""
    cell = chosen_cell(seen)
    frame().follow_head()
    try:
        parts = _parts(seen.request, cell)
    except ValueError as refusal:
        st.info(plain(str(refusal)))
        choose_cell(seen)
        return
    picture, beside = st.columns([3, 2], gap="large")
    with picture:
        drawn = st.container()
    with beside:
        way_here(seen)
        said = st.container()
        choose_cell(seen)
        shown = one_of("Picture", (SCORE, ABOVE), "why-of", quiet=True)
    sum_ = _sum_of(seen, cell, parts, is_above=shown == ABOVE)
    with drawn:
        _draw(seen, cell, parts, sum_)
    with said:
        _say_largest(seen, cell, parts, sum_)
    with beside:
        _rank(seen, cell, parts, sum_)
    readout_of(seen.attention, cell.head, *seen.labels)
    _check(parts, sum_)
    how_a_score_adds_up(seen)
    _table(seen, parts, sum_)


def _sum_of(seen: Look, cell: Cell, parts: "ScoreParts", *, is_above: bool) -> _Sum:
    if not is_above:
        return _Sum(parts.values, parts.recorded, is_above=False)
    attention = of_query(seen.attention, cell.query)
    allowed = allowed_cells(attention, cell.head)[0]
    row = attention.scores(cell.head)[0, allowed].astype(np.float64)
    mean = float(row.mean()) if row.size else 0.0
    return _Sum(parts.above_mean, parts.recorded - mean, is_above=True)


def _draw(seen: Look, cell: Cell, parts: "ScoreParts", sum_: _Sum) -> None:
    """The map of all pairs; of many parts those of a layer are one until it is clicked."""
    layers = _opened(cell)
    rows, columns = (
        grouped(of, layer)
        for of, layer in zip((parts.query_parts, parts.key_parts), layers, strict=True)
    )
    down, along = _names(seen, parts.query_parts, rows), _names(seen, parts.key_parts, columns)
    values = summed(sum_.values, rows, columns)
    hovered = [
        f"{plotly_words(down[row])} × {plotly_words(along[column])}<br>{signed(f'{value:+.4f}')}"
        for (row, column), value in np.ndenumerate(values)
    ]
    queries, keys = seen.labels
    figure = figures.score_parts(
        values,
        query=queries[cell.query],
        key=keys[cell.key],
        query_parts=down,
        key_parts=along,
        words=hovered,
    )

    def click(number: int) -> None:
        row, column = divmod(number, len(columns))
        _click(seen, cell, parts, (rows[row], columns[column]))

    key = f"why-{'-'.join(map(str, (*cell, *layers)))}"
    alt = f"{len(down)} parts of the query by {len(along)} parts of the key."
    plot(figure, f"{key}-{sum_.is_above}", alt=alt, clicked=click)
    save_figure(lambda: figure, "why")
    if max(len(parts.query_parts), len(parts.key_parts)) > FEW:
        _say_layers(any(layer is not None for layer in layers))


def _say_layers(are_opened: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            "All parts of a layer are one cell. Click it to open the layer.", width="content"
        )
        if are_opened:
            st.button("Close the layers", key="why-close", on_click=_close, type="tertiary")


def _close() -> None:
    st.session_state.pop(_LAYERS, None)


def _opened(cell: Cell) -> tuple[int | None, int | None]:
    """The opened layer of the query's parts, and that of the key's."""
    of, layers = st.session_state.get(_LAYERS, (None, (None, None)))
    opened: tuple[int | None, int | None] = layers if of == cell else (None, None)
    return opened


def _click(seen: Look, cell: Cell, parts: "ScoreParts", groups: tuple[Group, Group]) -> None:
    """Opens the layers of a cell; a cell of single parts leads to the key's head, else to the query's."""
    before = _opened(cell)
    if any(group.layer is not None for group in groups):
        layers = [
            old if group.layer is None else group.layer
            for group, old in zip(groups, before, strict=True)
        ]
        st.session_state[_LAYERS] = (cell, tuple(layers))
        return
    (query,), (key,) = (group.members for group in groups)
    ways = ((parts.key_parts[key], cell.key), (parts.query_parts[query], cell.query))
    for part, token in ways:
        if (head := head_named(part)) is not None:
            follow(seen, head, token)
            return


def _names(seen: Look, parts: Sequence[str], groups: Sequence[Group]) -> list[str]:
    return [
        part_name(parts[group.members[0]], short=True)
        if group.layer is None
        else f"layer {group.layer}"
        for group in groups
    ]


def _say_largest(seen: Look, cell: Cell, parts: "ScoreParts", sum_: _Sum) -> None:
    """What adds most, and how much of the whole the largest parts are together."""
    row, column = map(int, np.unravel_index(sum_.values.argmax(), sum_.values.shape))
    most = float(sum_.values[row, column])
    queries, keys = ([plain(token_label(text)) for text in texts] for texts in seen.labels)
    whole = (
        f"the score lies {_number(sum_.recorded)} above the mean of its row"
        if sum_.is_above and sum_.recorded >= 0
        else f"the score lies {_number(-sum_.recorded)} below the mean of its row"
        if sum_.is_above
        else f"the score is {_number(sum_.recorded)}"
    )
    if most <= 0:
        look_for(f"No pair of parts raises it: {whole}.")
        return
    written, read = (
        _written(seen, part, token)
        for part, token in (
            (parts.query_parts[row], queries[cell.query]),
            (parts.key_parts[column], keys[cell.key]),
        )
    )
    look_for(
        f"{whole[0].upper()}{whole[1:]}. The pair that adds most, **{_number(most)}**, is {written}, in the "
        f"query, times {read}, in the key."
    )


def _written(seen: Look, part: str, token: str) -> str:
    """A part in words. token: as Markdown may show it."""
    name = plain(part_name(part))
    if part == "bias":
        return f"the **{name}**"
    if "." not in part:
        return f"the **{name}** of **{token}**"
    return f"what **{name}** wrote at **{token}**"


def _rank(seen: Look, cell: Cell, parts: "ScoreParts", sum_: _Sum) -> None:
    """The largest pairs; each head in them is a way to its own cell."""
    st.caption(
        "What each pair adds: a part of the query × a part of the key. Click a head to "
        "see its own attention."
    )
    with st.container(gap=None, key="why-parts"):
        for rank, (row, column) in enumerate(sum_.order[:LISTED]):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown(f"**{signed(f'{sum_.values[row, column]:+.2f}')}**", width=64)
                _way_on(seen, parts.query_parts[row], cell.query, f"why-query-{rank}")
                st.markdown("×", width="content")
                _way_on(seen, parts.key_parts[column], cell.key, f"why-key-{rank}")


def _way_on(seen: Look, part: str, token: int, key: str) -> None:
    """A part's name; where it is a head, a button that opens it on its own cell."""
    name = plain(part_name(part))
    head = head_named(part)
    if head is None:
        st.markdown(name, width="content")
        return
    st.button(
        f":primary[{name} →]",
        key=key,
        type="tertiary",
        help=f"Opens {name} where it wrote this part, at position {token}.",
        on_click=follow,
        args=(seen, head, token),
    )


def _check(parts: "ScoreParts", sum_: _Sum) -> None:
    total = float(sum_.values.sum())
    added, recorded = agreeing(total, sum_.recorded)
    what = (
        "the model's own score lies above the mean of its row by" if sum_.is_above
        else "the model's own score is"
    )  # fmt: skip
    st.caption(
        f"Check: all {sum_.values.size:,} parts add up to {added}; {what} "
        f"{recorded}, a difference of {difference(abs(total - sum_.recorded))}."
    )


def _table(seen: Look, parts: "ScoreParts", sum_: _Sum) -> None:
    order = sum_.order[:TABLED]
    table(
        {
            "query": [part_name(parts.query_parts[row]) for row, _ in order],
            "key": [part_name(parts.key_parts[column]) for _, column in order],
            "adds": [sum_.values[pair] for pair in order],
        },
        f"why-{sum_.is_above}",
    )


def _number(value: float) -> str:
    return signed(f"{value:.2f}")
