"""Masks and biases of distances, drawn for the sentence: windows, chunks and ALiBi."""

import numpy as np
import streamlit as st

from model.analysis.distance_masks import Preview, alibi, chunked, slopes, windowed
from model.analysis.heads.statistics import distance
from viz.elements.one_of import one_of
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.pictures import chart, look_for, of_all_pairs, table
from viz.state.look import Look
from viz.state.session import current, intervene

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
