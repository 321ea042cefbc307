"""Single edges, from one token to another: cut in all heads, or their weight in one head set by hand."""

from dataclasses import replace

import numpy as np
import streamlit as st

from model.nn.places import head_label, layer_label
from model.trace.arrays import Mask
from model.trace.some_queries import of_query
from viz.elements.one_of import one_listed
from viz.elements.plot import plot
from viz.figures.cells import CLICKED, edges
from viz.notation.labels import numbered_labels
from viz.state.held import traced
from viz.state.look import Look
from viz.state.session import current, intervene, set_intervention

LABEL = 18  # characters of a token on a button

Edges = frozenset[tuple[int, int]]  # (query, key)


def edges_editor(seen: Look) -> None:
    """Two lists of tokens and a button; for short texts also a grid to click."""
    queries, keys = seen.labels
    look = _allowed(seen)
    if len(seen.model.stacks()) > 1:
        st.caption(
            f"Edges are cut only in {layer_label(seen.place)}, the chosen layer, because the "
            "sub-layers of this model connect different tokens."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        query = _pick("Query token", queries, current().query)
        key = _pick("Key token", keys, current().key)
        cut, closed = (query, key) in current().intervention.blocked, not look[query, key]
        st.button(
            "Restore this edge" if cut else "Already masked" if closed else "Cut this edge",
            key="laboratory-edge",
            disabled=closed and not cut,
            on_click=lambda: toggle(seen, query, key),
        )
        chosen = st.button(
            "Cut the chosen cell",
            key="laboratory-cell",
            help="The cell that is chosen in the picture “Head by head”",
        )
        row = frozenset((query, int(key)) for key in np.flatnonzero(look[query]))
        st.button(
            "Cut the whole row",
            key="laboratory-row",
            on_click=lambda: _take(seen, current().intervention.blocked | row),
            help="Cuts every key that this token may attend to, so its row has none left",
        )
    if chosen:
        _toggle_chosen(seen, look)
    _weight(seen, query, key, closed=closed or cut)
    if max(len(queries), len(keys)) <= CLICKED:
        _grid(seen, queries, keys, look)


def _weight(seen: Look, query: int, key: int, *, closed: bool) -> None:
    """The weight of this edge in the shown head, to be set. closed: the mask hides the key."""
    here, weights = (seen.place, seen.head, query), current().intervention.weights
    of_row = {cell[3]: cell for cell in weights if cell[:3] == here}
    elsewhere = weights - set(of_row.values())
    others = frozenset(cell for cell in of_row.values() if cell[3] != key)
    most = max(1.0 - sum(cell[4] for cell in others), 0.0)
    now = float(of_query(seen.attention, query).weights(seen.head)[0, key])
    name = head_label(here[:2])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        wanted = st.number_input(
            f"Weight in {name}",
            0.0,
            most,
            min(round(now, 4), most),
            step=0.05,
            format="%.4f",
            width=160,
            disabled=closed,
            key=f"laboratory-weight-{hash((seen.request, *here, key))}",
        )
        st.button(
            "Set this weight",
            key="laboratory-weight-set",
            disabled=closed,
            on_click=lambda: intervene(weights=elsewhere | others | {(*here, key, wanted)}),
            help="The other weights of the row share what is left to 1, in their own proportions",
        )
        st.button(
            "All of the row to this key",
            key="laboratory-weight-all",
            disabled=closed,
            on_click=lambda: intervene(weights=elsewhere | {(*here, key, 1.0)}),
        )
        st.button(
            "Take back",
            key="laboratory-weight-back",
            disabled=not of_row,
            on_click=lambda: intervene(weights=elsewhere),
            help="This row has the model's own weights again",
        )


def _pick(label: str, tokens: list[str], start: int) -> int:
    """One position; it starts at the cell that is chosen in the picture."""
    key = f"laboratory-{label}-{start}-{len(tokens)}"
    return one_listed(label, numbered_labels(tokens, LABEL), key, first=min(start, len(tokens) - 1))


def toggle(seen: Look, query: int, key: int) -> None:
    """Cuts an edge, or mends it where it is cut."""
    _take(seen, current().intervention.blocked ^ {(query, key)})


def _toggle_chosen(seen: Look, look: Mask) -> None:
    """The cell that the reader has chosen in the explorer by now."""
    (queries, keys), view = seen.labels, current()
    if view.query >= len(queries) or view.key >= len(keys):
        return
    if not look[view.query, view.key] and (view.query, view.key) not in view.intervention.blocked:
        st.caption(f"{view.query} cannot attend to {view.key}: the mask already forbids it.")
        return
    toggle(seen, view.query, view.key)
    st.rerun()


def _take(seen: Look, blocked: Edges) -> None:
    """A model with two stacks must name the sub-layer in which edges are cut."""
    intervention = current().intervention
    only = intervention.only
    if len(seen.model.stacks()) > 1 and blocked:
        only = frozenset({seen.place}) if only is None else only | {seen.place}
    weights = frozenset(cell for cell in intervention.weights if cell[2:4] not in blocked)
    set_intervention(replace(intervention, blocked=blocked, only=only, weights=weights))


def _grid(seen: Look, queries: list[str], keys: list[str], look: Mask) -> None:
    cut = np.zeros((len(queries), len(keys)), bool)
    applies = seen.request.intervention.applies(seen.place)
    for query, key in current().intervention.blocked if applies else ():
        if query < len(queries) and key < len(keys):
            cut[query, key] = True

    def clicked(point: int) -> None:
        query, key = divmod(point, len(keys))
        if look[query, key] or cut[query, key]:
            toggle(seen, query, key)

    plot(
        edges(look, cut, queries=queries, keys=keys),
        f"laboratory-edges-{hash((seen.request, seen.place))}",
        clicked=clicked,
        width=min(30 * len(keys) + 140, 900),
    )
    st.caption(
        "Click a cell to cut its edge; click again to restore it. Grey cells are already masked."
    )


def _allowed(seen: Look) -> Mask:
    """Where a query may look in the shown head, the cuts aside."""
    intervention = seen.request.intervention
    uncut = replace(seen.request, intervention=replace(intervention, blocked=frozenset()))
    attention = seen.attention if not intervention.blocked else traced(uncut).find(seen.place)
    queries, keys = seen.labels
    mask = attention.mask_of(min(seen.head, attention.heads - 1))
    return np.ones((len(queries), len(keys)), bool) if mask is None else mask
