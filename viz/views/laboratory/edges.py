"""Single edges, cut or set by hand; masks measured on the shown head; and masks and biases of distance."""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.distance_masks import Preview, alibi, chunked, slopes, windowed
from model.analysis.heads.statistics import distance
from model.analysis.softmax_experiments import MaskValueEffect, Precision, mask_value_effect, routes
from model.nn.places import head_label, layer_label
from model.nn.stages import STAGES
from model.trace.arrays import Array, Mask
from model.trace.blocks import of_query
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import plot
from viz.figures.cells import CLICKED, edges
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference, power_of_ten
from viz.shell.pictures import chart, look_for, of_all_pairs, table
from viz.state.intervention_words import MASK_VALUES, mask_value_name
from viz.state.look import Look, traced
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


ROUTES = (
    r"\text{softmax}(s + M)_{ij} = \frac{m_{ij}\, \text{softmax}(s)_{ij}}"
    r"{\sum_l m_{il}\, \text{softmax}(s)_{il}}"
)
MASK_VALUE = (
    r"w_{ij} = \frac{e^{\,\text{mask value}}}{\sum_l e^{\,\text{masked}_{il}}}"
    r"\qquad e^{-\infty} = 0, \quad e^{0} = 1"
)
ROOMY = 7  # up to so many rows and columns a cell has room for a power of ten
BEFORE, AFTER, APART = "Masked before", "Cut after", "Difference"


def _masked_head(seen: Look) -> tuple[Array, Mask]:
    """Raw scores of the shown head and a mask that leaves each row a key: the model's own, or a
    causal one where it hides nothing."""
    head = seen.head
    scores, own = seen.attention.scores(head), seen.attention.mask_of(head)
    if own is None or own.all() or not own.any(-1).all():
        st.caption(
            "This head's own mask hides nothing, or hides a whole row, so a causal mask is used "
            "here."
        )
        own = np.tri(*scores.shape, dtype=np.bool_)
    if any(stage.is_in(seen.attention) for stage in STAGES):
        st.caption("This head’s cap, bias and sink play no part here.")
    return scores, own


@of_all_pairs
def two_routes(seen: Look) -> None:
    """The future masked before the softmax, or cut away after it and the rows renormalized."""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        scores, mask = _masked_head(seen)
        factor = st.select_slider(
            "Scores times", (1, 2, 5, 10, 20, 50, 100), key="laboratory-stretch"
        )
        found = routes(scores * np.float32(seen.attention.scale * factor), mask)
        kind = one_of("Picture", (BEFORE, AFTER, APART), "laboratory-route", default=APART)
        st.latex(ROUTES)
        lost = int(found.lost.sum())
        st.markdown(
            f"Largest difference between the two routes: **{difference(found.difference)}**. "
            + (
                f"{lost} of {counted(len(mask), 'row')} {'is' if lost == 1 else 'are'} lost on "
                "the second one: in float32 all allowed weights of such a row became 0, and "
                "nothing is left to renormalize. The first route does not have this problem, which "
                "is why models use it."
                if lost
                else (
                    "They are equal up to rounding. Multiply the scores to see which one "
                    "breaks down."
                )
            )
        )
    apart = found.after - found.before
    drawn = {BEFORE: found.before, AFTER: found.after, APART: apart}[kind]
    queries, keys = seen.labels
    with picture:
        figure = heatmap(
            drawn,
            rows=Axis("query", queries),
            columns=Axis("key", keys),
            square=True,
            quantity="difference" if kind == APART else "weight",
            blocked=~mask,
            limit=max(float(np.abs(drawn).max()), 1e-7),
            words=_powers(drawn) if kind == APART else None,
        )
        if kind == APART:
            figure.data[-1].colorbar.tickformat = ".0e"
        chart(figure, f"laboratory-routes-{kind == APART}")
    columns = {
        "query": [str(at) for at in range(len(mask))],
        "largest difference": np.abs(apart).max(-1),
        "row lost": found.lost,
    }
    table(columns, "laboratory-routes", decimals=9)


def _powers(values: Array) -> list[list[str]]:
    """Very small numbers as words for the cells; nothing where there are too many for them."""
    if max(values.shape) > ROOMY:
        return []
    return [[power_of_ten(value, 1) for value in row] for row in values.tolist()]


@of_all_pairs
def mask_values_compared(seen: Look) -> None:
    """−∞, −1e9, −1e20 and 0, before and after scaling, in two precisions."""
    words, formula = st.columns([3, 2], gap="large")
    with formula:
        scores, mask = _masked_head(seen)
        precision: Precision = one_of("Computed in", ("float32", "float16"), "laboratory-precision")
        st.latex(MASK_VALUE)
    scale = seen.attention.scale
    found = [
        mask_value_effect(
            scores, mask, scale, mask_value, precision=precision, before_scaling=early
        )
        for mask_value in MASK_VALUES
        for early in (False, True)
    ]
    with words:
        look_for(
            "A mask value of 0 hides nothing, because e⁰ = 1. In float32 all large negative mask "
            "values give the same weights as −∞, whether they are set before or after scaling. "
            "They differ only in a row with every key masked: −∞ gives 0/0, a finite mask value "
            "gives a uniform row. float16 cannot represent −1e9."
        )
    st.dataframe(pd.DataFrame([_row(one) for one in found]), hide_index=True)
    st.caption(
        "Computed now by PyTorch on this head's scores. The app itself sets a row with every key "
        "masked to 0 and never divides 0 by 0."
    )


def _row(one: MaskValueEffect) -> dict[str, str]:
    refused = ", masked_fill refuses it" if one.refused else ""
    return {
        "mask value": mask_value_name(one.mask_value),
        "written": "before scaling" if one.before_scaling else "after scaling",
        f"as {one.precision}": f"{mask_value_name(one.stored)}{refused}",
        "largest weight on a masked key": f"{one.leaked:.4f}",
        "largest difference from −∞": difference(one.difference),
        "a row with every key masked": (
            "0/0, undefined" if one.empty is None else f"{one.empty:.4f} each"
        ),
    }


WINDOW, CHUNKS, ALIBI = "Window", "Chunks", "ALiBi"
FORMULAS = {
    "causal": r"m_{ij} = \begin{cases} 1 & 0 \le i - j < w \\ 0 & \text{else} \end{cases}",
    WINDOW: r"m_{ij} = \begin{cases} 1 & |i - j| \le \lfloor \tfrac{w - 1}{2} \rfloor \\ 0 & \text{else} "
    r"\end{cases}",
    CHUNKS: r"m_{ij} = \begin{cases} 1 & \lfloor i / w \rfloor = \lfloor j / w \rfloor \\ 0 & \text{else} "
    r"\end{cases}",
    ALIBI: r"\begin{aligned} s'_{ij} &= s_{ij} - m_h \cdot |i - j| \\ m_h &= 2^{-8 (h + 1) / H} "
    r"\end{aligned}",
}
_FIRST = 4  # the width at the start


@of_all_pairs
def distance_masks(seen: Look) -> None:
    """A mask or bias of distances, and the shown head's weights with it."""
    if seen.attention.kind == "cross":
        st.info(
            "Windows and biases of distances belong to self-attention: choose a layer of that kind."
        )
        return
    mask, weights, words = st.columns([3, 3, 2], gap="large")
    with words:
        kind = one_of("Mask", (WINDOW, CHUNKS, ALIBI), "laboratory-distances")
        found, said = (_biased if kind == ALIBI else _narrowed)(seen, kind)
        causal = kind == WINDOW and seen.attention.kind == "causal"
        st.latex(FORMULAS["causal" if causal else kind])
        look_for(said)
    with mask:
        _draw(seen, found, kind, weights=False)
    with weights:
        _draw(seen, found, kind, weights=True)
    st.caption(
        "Left: what joins the head's own mask and scores; hatched = masked. Right: the weights that "
        "follow from the head's scores of this run, as if this layer alone were changed."
    )
    table(
        {
            "query": [token_label(text) for text in seen.labels[0]],
            "keys that it reads": found.allowed.sum(-1),
            "own weight cut off": found.lost,
            "largest weight then": found.weights.max(-1),
        },
        f"laboratory-distances-{kind}",
    )


def _narrowed(seen: Look, kind: str) -> tuple[Preview, str]:
    """A window or chunks of a chosen width."""
    attention, most = seen.attention, seen.attention.key.shape[1]
    width = 1
    if most > 1:
        start = min(current().intervention.window or _FIRST, most)
        width = st.slider("Keys", 1, most, start, key=f"laboratory-width-{most}")
    found = (windowed if kind == WINDOW else chunked)(attention, seen.head, width)
    if kind == WINDOW:
        st.button(
            "Run the model with this window",
            key="laboratory-window-run",
            on_click=intervene,
            kwargs={"window": width},
            disabled=current().intervention.window == width,
        )
    most_lost = int(found.lost.argmax())
    row = plain(token_label(seen.labels[0][most_lost]))
    again = " What lies outside can still come in through earlier layers." * (kind == WINDOW)
    within = "a window" if kind == WINDOW else "chunks"
    return found, (
        f"Through {within} of {counted(width, 'token')} this head loses {found.lost.mean():.0%} of its "
        f"weight on average, most in the row of **{row}**: {found.lost[most_lost]:.0%}.{again}"
        if found.lost.max() > 0
        else f"All of this head's weight lies within {within} of {counted(width, 'token')}."
    )


def _biased(seen: Look, kind: str) -> tuple[Preview, str]:
    """ALiBi with the slope of a chosen head."""
    attention = seen.attention
    known = slopes(attention.heads)
    at = 0
    if len(known) > 1:
        at = st.select_slider(
            "Slope of head", range(len(known)), key=f"laboratory-slope-{len(known)}"
        )
    found = alibi(attention, seen.head, known[at])
    before, after = map(distance, (attention.weights(seen.head), found.weights))
    own = (
        " The model adds numbers of its own already; these come on top."
        if attention.bias is not None
        else ""
    )
    return found, (
        f"With slope {known[at]:.4g} a key at distance 4 loses {4 * known[at]:.3g} of its score. On average "
        f"this head looked {before:.2f} tokens away, and would look {after:.2f}.{own}"
    )


def _draw(seen: Look, found: Preview, kind: str, *, weights: bool) -> None:
    queries, keys = seen.labels
    drawn = found.weights if weights else found.added if kind == ALIBI else found.allowed
    figure = heatmap(
        drawn.astype(np.float32),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        square=True,
        quantity="weight" if weights else "score" if kind == ALIBI else None,
        blocked=~found.allowed,
        decimals=2 if weights or kind == ALIBI else 0,
    )
    chart(figure, f"laboratory-distances-{kind}-{weights}")
