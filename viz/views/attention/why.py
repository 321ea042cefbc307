"""Why one score is what it is: the sum of what each part of the query makes with each part of the key, and
the way from a part to the head that wrote it."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.heads.labels import allowed_cells
from model.nn.places import Head, head_named
from model.nn.stages import SCORE_STAGES, SINKS, STAGES
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.blocks import of_query
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.bars import part_bars
from viz.figures.chart import CLICKED, STEADY
from viz.notation.head_formulas import SCORE_PARTS
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.notation.numbers import agreeing, signed
from viz.notation.words import sentences_of
from viz.shell.panel import Check, Formula, Panel, Table, refusals
from viz.state.look import Look, labels_of, loaded, traced
from viz.state.session import change_view, current
from viz.views.attention.edges import ScoreCell, cell_of
from viz.views.attention.projected import sum_of_products

if TYPE_CHECKING:
    from model.analysis.attribution.score_parts import ScoreParts

say = sentences_of("attention.why")

SCORE, ABOVE, PRODUCTS = "The score", say("above_row_mean"), "A sum of products"
BARS = 12  # pairs of parts that are drawn, and those with a way on
TABLED = 200
_WALK = "walk-of-scores"  # session state: what was read, and the cells before the chosen one


@lru_cache(maxsize=8)  # of 12 layers of 12 heads each is 350 kB
def _parts(request: Request, cell: ScoreCell) -> "ScoreParts":
    from model.analysis import score_parts  # imports torch: pages are drawn first

    return score_parts(loaded(request.model), traced(request), *cell)


@dataclass(frozen=True)
class _Sum:
    """The sum that is shown: the score of a cell, or how far it lies above the mean of its row."""

    cell: ScoreCell
    parts: "ScoreParts"
    values: Wide  # (query part, key part)
    recorded: float
    is_above: bool

    @property
    def order(self) -> list[tuple[int, int]]:
        """The pairs of parts, the largest first, whatever their sign."""
        flat = np.argsort(-np.abs(self.values), axis=None, kind="stable")
        return [divmod(int(at), self.values.shape[1]) for at in flat]


def why_this_score(look: Look) -> Panel:
    """The chosen cell's score as a sum, drawn and ranked; a part leads to the head that wrote it."""
    shown = one_of("Why", (SCORE, ABOVE, PRODUCTS), "why-of", quiet=True)
    if shown == PRODUCTS:
        return sum_of_products(look)
    cell = cell_of(look)
    with refusals():
        parts = _parts(look.request, cell)
    sum_ = _Sum(cell, parts, parts.values, parts.recorded, is_above=False)
    if shown == ABOVE:
        attention = of_query(look.attention, cell.query)
        allowed = allowed_cells(attention, cell.head)[0]
        row = attention.scores(cell.head)[0, allowed].astype(np.float64)
        mean = float(row.mean()) if row.size else 0.0
        sum_ = _Sum(cell, parts, parts.above_mean, parts.recorded - mean, is_above=True)
    total, order = float(sum_.values.sum()), sum_.order
    added, recorded = agreeing(total, sum_.recorded)
    lies = say("lies_above_mean") if sum_.is_above else " is"
    listed, rest = order[:BARS], order[BARS:]
    bars = {_pair(parts, pair): float(sum_.values[pair]) for pair in listed}
    if rest:
        bars[f"the other {len(rest):,} pairs"] = float(sum(sum_.values[pair] for pair in rest))
    figure = part_bars(
        list(bars),
        list(bars.values()),
        title=say("part_query_part"),
    )
    figure.update_traces(STEADY).update_layout(CLICKED)

    def click(number: int) -> None:
        if number < len(listed):
            _open(look, sum_, listed[number])

    return Panel(
        "why",
        look_for=_what_adds_most(look, sum_),
        picture=figure,
        clicked=click,
        chosen=f"{'-'.join(map(str, cell))}-{sum_.is_above}",
        below=[
            partial(_ways, look, sum_, listed),
            partial(_way_back, look),
            Formula(SCORE_PARTS),
            _why_parts_add_up(look),
        ],
        check=Check(
            say(
                "check_parts_add",
                values=sum_.values.size,
                added=added,
                lies=lies,
                recorded=recorded,
                total=abs(total - sum_.recorded),
            ),
            abs(total - sum_.recorded),
        ),
        table=Table(
            {
                "query": [part_name(parts.query_parts[row]) for row, _ in order[:TABLED]],
                "key": [part_name(parts.key_parts[column]) for _, column in order[:TABLED]],
                "adds": [sum_.values[pair] for pair in order[:TABLED]],
            }
        ),
    )


def _pair(parts: "ScoreParts", pair: tuple[int, int]) -> str:
    """L0H1 × L0H2"""
    row, column = pair
    names = parts.query_parts[row], parts.key_parts[column]
    return " × ".join(part_name(name, short=True) for name in names)


def _open(look: Look, sum_: _Sum, pair: tuple[int, int]) -> None:
    """Leads to the head that wrote a pair's key, else to the one that wrote its query."""
    parts, cell, (row, column) = sum_.parts, sum_.cell, pair
    ways = ((parts.key_parts[column], cell.key), (parts.query_parts[row], cell.query))
    for part, token in ways:
        if (head := head_named(part)) is not None:
            _follow(look, cell, head, token)
            return


def _what_adds_most(look: Look, sum_: _Sum) -> str:
    """What adds most, and how much of the whole the largest parts are together."""
    cell, parts, above = sum_.cell, sum_.parts, sum_.recorded >= 0
    row, column = map(int, np.unravel_index(sum_.values.argmax(), sum_.values.shape))
    most = float(sum_.values[row, column])
    whole = (
        say(
            "score_lies_mean",
            number=_number(abs(sum_.recorded)),
            choice="above" if above else "below",
        )
        if sum_.is_above
        else f"the score is {_number(sum_.recorded)}"
    )
    if most <= 0:
        return say("pair_parts_raises", whole=whole)
    queries, keys = ([plain(token_label(text)) for text in texts] for texts in look.labels)
    return say(
        "pair_adds_most_query",
        upper=whole[0].upper(),
        whole=whole[1:],
        number=_number(most),
        written=_written(parts.query_parts[row], queries[cell.query]),
        column_written=_written(parts.key_parts[column], keys[cell.key]),
    )


def _written(part: str, token: str) -> str:
    """A part in words. token: as Markdown may show it."""
    name = plain(part_name(part))
    if part == "bias":
        return f"the **{name}**"
    if "." not in part:
        return f"the **{name}** of **{token}**"
    return f"what **{name}** wrote at **{token}**"


WAYS = 4  # heads that wrote most of a score


def _ways(look: Look, sum_: _Sum, listed: list[tuple[int, int]]) -> None:
    """The heads that wrote the largest parts, each a way to its own cell."""
    parts, cell = sum_.parts, sum_.cell
    sides = (parts.query_parts, cell.query), (parts.key_parts, cell.key)
    written = dict.fromkeys(
        (head, token)
        for pair in listed
        for (names, token), at in zip(sides, pair, strict=True)
        if (head := head_named(names[at])) is not None
    )
    if not written:
        return
    tokens = (
        [token_label(text, 14) for text in look.labels[0]],
        [token_label(text, 14) for text in look.labels[1]],
    )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="ways-of-scores"
    ):
        st.markdown("Who wrote it:", width="content")
        for number, (head, token) in enumerate(list(written)[:WAYS]):
            name = plain(part_name(f"{head[0]}.{head[1]}"))
            labels = tokens[0] if token == cell.query else tokens[1]
            st.button(
                f"{name} at {plain(labels[token])} →",
                key=f"why-head-{number}",
                type="tertiary",
                help=say("opens_wrote_part", name=name),
                on_click=_follow,
                args=(look, cell, head, token),
            )


def _number(value: float) -> str:
    return signed(f"{value:.2f}")


# The walk: from a cell to the head that wrote a part of its score, and back.


def _follow(look: Look, before: ScoreCell, head: Head, query: int) -> None:
    """Opens a head on its own cell: this query, and the key whose edge carries most to it."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    key = int(edge_values(look.model, look.trace, *head).carries_most[query])
    _walk(look, (*_walked(look), before), ScoreCell(*head, query, key))


def _walk(look: Look, before: tuple[ScoreCell, ...], to: ScoreCell) -> None:
    st.session_state[_WALK] = (_read(look), before)
    change_view(replace(current(), **to._asdict()))


def _walked(look: Look) -> tuple[ScoreCell, ...]:
    """The cells that led here; none where the reader has not followed a part."""
    read, cells = st.session_state.get(_WALK, (None, ()))
    mine: tuple[ScoreCell, ...] = cells if read == _read(look) else ()
    return mine


def _read(look: Look) -> tuple[str, str, str | None]:
    """What the model reads: cells of another text lead nowhere here."""
    return look.request.model, look.request.text, look.request.target


def _way_back(look: Look) -> None:
    """The cells that led here, each a way back."""
    cells = _walked(look)
    if not cells:
        return
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="walk-of-scores"
    ):
        for number, cell in enumerate(cells):
            st.button(
                f"← {plain(_named(look.trace, cell))}",
                key=f"walk-{number}",
                type="tertiary",
                on_click=_walk,
                args=(look, cells[:number], cell),
            )


def _named(trace: Trace, cell: ScoreCell) -> str:
    """L1H7: ·Tom → ·Hill"""
    queries, keys = labels_of(trace, trace.find(cell.place))
    tokens = f"{token_label(queries[cell.query], 14)} → {token_label(keys[cell.key], 14)}"
    return f"{part_name(f'{cell.place}.{cell.head}')}: {tokens}"


def _why_parts_add_up(look: Look) -> str:
    turned = say("rotary_positions_rotate") if look.attention.projection.turned else ""
    return say(
        "token_vector_sum",
        taken=look.model.config.norm_law.taken,
        turned=turned,
        after=_after(look.attention),
    )


def _after(attention: Attention) -> str:
    """What becomes of the score, and what its row's mean is for."""
    later = [stage for stage in SCORE_STAGES if stage.is_in(attention)]
    steps = [say("multiplies_score_scale"), *(one.does(one.of(attention)) for one in later)]
    of_row = say("row_head_sink") if SINKS.is_in(attention) else "the row"
    words = say("model_takes_softmax", steps=", ".join(steps), of_row=of_row)
    for stage in STAGES:
        if stage.note and stage.is_in(attention):
            return f"{words} {stage.note}"
    return say("number_added_scores", words=words)
