"""The chosen cell, and the walk from it: to a head that wrote a part of its score, and back."""

from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from model.nn.places import Head
from model.trace.trace import Trace
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.state.look import Look, labels_of
from viz.state.session import change_view, control, current

_WALK = "walk-of-scores"  # session state: what was read, and the cells before the chosen one
_LISTED = 24  # characters of a token in a list


class Cell(NamedTuple):
    """A query and a key in one head."""

    place: str
    head: int
    query: int
    key: int


def chosen_cell(seen: Look) -> Cell:
    """The view's cell, or the nearest that this run has."""
    queries, keys = seen.labels
    clamped = current().selection.clamped(
        heads=seen.attention.heads, queries=len(queries), keys=len(keys)
    )
    change_view(current().at(clamped))
    return Cell(seen.place, clamped.head, clamped.query, clamped.key)


def choose_cell(seen: Look) -> None:
    """The query and the key as two lists."""
    for box, name, texts in zip(st.columns(2), ("query", "key"), seen.labels, strict=True):
        labels = numbered_labels(texts, _LISTED)
        with box:
            st.selectbox(
                name.capitalize(),
                range(len(labels)),
                format_func=labels.__getitem__,
                **control(name, "cell"),
            )


def named(trace: Trace, cell: Cell) -> str:
    """L1H7 · ·Tom → ·Hill"""
    queries, keys = labels_of(trace, trace.find(cell.place))
    tokens = f"{token_label(queries[cell.query], 14)} → {token_label(keys[cell.key], 14)}"
    head = part_name(f"{cell.place}.{cell.head}")
    return f"{head} · {tokens}"


def follow(seen: Look, head: Head, query: int) -> None:
    """Opens a head on its own cell: this query, and the key whose edge carries most to it."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    before = chosen_cell(seen)
    key = int(edge_values(seen.model, seen.trace, *head).carries_most[query])
    st.session_state[_WALK] = (_read(seen), (*_cells(seen), before))
    _open(Cell(*head, query, key))


def way_here(seen: Look) -> None:
    """The cells that led here, each a way back; nothing where the reader has not followed a part."""
    cells = _cells(seen)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="walk-of-scores"
    ):
        for number, cell in enumerate(cells):
            st.button(
                f"← {plain(named(seen.trace, cell))}",
                key=f"walk-{number}",
                on_click=_go_back,
                args=(seen, number),
            )
        st.markdown(f"**{plain(named(seen.trace, chosen_cell(seen)))}**", width="content")


def _go_back(seen: Look, number: int) -> None:
    cells = _cells(seen)
    st.session_state[_WALK] = (_read(seen), cells[:number])
    _open(cells[number])


def _cells(seen: Look) -> tuple[Cell, ...]:
    read, cells = st.session_state.get(_WALK, (None, ()))
    kept: tuple[Cell, ...] = cells if read == _read(seen) else ()
    return kept


def _read(seen: Look) -> tuple[str, str, str | None]:
    """What the model reads: cells of another text lead nowhere here."""
    return seen.request.model, seen.request.text, seen.request.target


def _open(cell: Cell) -> None:
    change_view(replace(current(), **cell._asdict()))
