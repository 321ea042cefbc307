"""One editor for each kind of change: every field of an intervention has its control here."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from model.intervention import LARGEST_FILL, LARGEST_SCALE
from viz.axes import token_label
from viz.choices import MASK_NAMES, MASKS_OF_SHAPE
from viz.laboratory.active import fill_name, layer_name
from viz.laboratory.edges import edges_editor
from viz.markdown import plain
from viz.session import current, set_change
from viz.shell import Look

CLICKED_TOKENS = 64  # up to so many tokens are buttons; more are a list
OWN, NOT_SCALED, CHOSEN = "the model's own", "not scaled: × 1", "a factor"
FILLS = (-math.inf, -1e9, -1e20, 0.0)
_TOKEN = 18  # characters of a token on a button


def _name(words: str) -> None:
    """What a row of choices is about, in front of it."""
    st.markdown(words, width="content")


def _changed(**fields: object) -> None:
    set_change(replace(current().change, **fields))  # type: ignore[arg-type]


def _shown(key: str, value: object) -> str:
    """The key of a widget that shows this value now."""
    st.session_state[key] = value
    return key


def _scaling(seen: Look) -> None:
    change, own = current().change, 1 / math.sqrt(seen.attention.query.shape[-1])
    names = {None: OWN, 1.0: NOT_SCALED}

    def take_kind() -> None:
        factors = {OWN: None, NOT_SCALED: 1.0, CHOSEN: 2 * own}
        _changed(scale=factors[st.session_state["laboratory-scaling"]])

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        _name("Scores are multiplied by")
        st.radio(
            "Scores are multiplied by",
            (OWN, NOT_SCALED, CHOSEN),
            format_func=lambda name: f"{name}, 1/√dₖ = {own:.4g}" if name == OWN else name,
            horizontal=True,
            label_visibility="collapsed",
            key=_shown("laboratory-scaling", names.get(change.scale, CHOSEN)),
            on_change=take_kind,
            width="content",
        )
        if change.scale not in names:
            st.number_input(
                "Factor",
                label_visibility="collapsed",
                min_value=-LARGEST_SCALE,
                max_value=LARGEST_SCALE,
                step=0.1,
                format="%g",
                key=_shown("laboratory-factor", change.scale),
                on_change=lambda: _changed(scale=st.session_state["laboratory-factor"]),
                width=160,
            )


def _mask(seen: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        _name("Mask")
        st.radio(
            "Mask",
            MASKS_OF_SHAPE[seen.model.config.shape],
            format_func=MASK_NAMES.__getitem__,
            horizontal=True,
            label_visibility="collapsed",
            key=_shown("laboratory-mask", current().change.mask),
            on_change=lambda: _changed(mask=st.session_state["laboratory-mask"]),
        )


def _padding(seen: Look) -> None:
    _several(
        "Treated as padding: no token may look at these",
        range(len(seen.trace.tokens)),
        chosen=sorted(current().change.hidden),
        name=lambda at: f"{at} {plain(token_label(seen.trace.tokens[at].text, _TOKEN))}",
        key="laboratory-hidden",
        take=lambda members: _changed(hidden=frozenset(members)),
    )


def _several(
    label: str,
    options: Sequence[object],
    *,
    chosen: Sequence[object],
    name: Callable[..., str],
    key: str,
    take: Callable[[Sequence[object]], None],
) -> None:
    """Several of some options, as buttons to press; as a list where they are too many."""
    key = f"{key}-{len(options)}"
    _shown(key, [option for option in chosen if option in options])

    def taken() -> None:
        take(st.session_state[key])

    if len(options) <= CLICKED_TOKENS:
        st.pills(label, options, selection_mode="multi", format_func=name, key=key, on_change=taken)
    else:
        st.multiselect(label, options, format_func=name, key=key, on_change=taken)


def _filling(seen: Look) -> None:
    fill = current().change.fill
    own = "a number"

    def take_kind() -> None:
        kind = st.session_state["laboratory-fill"]
        _changed(fill=-1.0 if kind == own else kind)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        _name("A masked score becomes, after scaling,")
        st.radio(
            "A masked score becomes",
            (*FILLS, own),
            format_func=lambda kind: kind if isinstance(kind, str) else fill_name(kind),
            horizontal=True,
            label_visibility="collapsed",
            key=_shown("laboratory-fill", fill if fill in FILLS else own),
            on_change=take_kind,
            width="content",
        )
        if fill not in FILLS:
            st.number_input(
                "Number",
                label_visibility="collapsed",
                min_value=-LARGEST_FILL,
                max_value=LARGEST_FILL,
                step=1.0,
                format="%g",
                key=_shown("laboratory-fill-number", fill),
                on_change=lambda: _changed(fill=st.session_state["laboratory-fill-number"]),
                width=160,
            )
    if all(attention.mask is None for attention in seen.trace.attention):
        st.caption("Nothing is masked in this run, so the fill is not used. Mask something first.")


def _positions(seen: Look) -> None:
    st.toggle(
        "Positions",
        key=_shown("laboratory-positions", current().change.positions),
        on_change=lambda: _changed(positions=st.session_state["laboratory-positions"]),
        help="Off: added positions are zero, rotary angles are zero.",
    )
    if seen.model.config.positions == "none":
        st.caption("This model has no positions: switching them off changes nothing.")


def _heads(seen: Look) -> None:
    place, ablated = seen.place, current().change.ablated
    others = frozenset(member for member in ablated if member[0] != place)
    heads = range(seen.attention.heads)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            _several(
                f"Heads of {layer_name(place)} whose output is zero (another layer: in the list “Layer”)",
                heads,
                chosen=seen.attention.ablated,
                name=lambda head: f"{layer_name(place)}H{head}",
                key=f"laboratory-heads-{place}",
                take=lambda members: _changed(ablated=others | {(place, head) for head in members}),
            )
        whole = others | {(place, head) for head in heads}
        st.button(
            "The whole layer",
            key="laboratory-layer",
            disabled=whole == ablated,
            on_click=lambda: _changed(ablated=whole),
        )


def _dropout(seen: Look) -> None:
    change = current().change
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.slider(
            "Dropout on the weights: each becomes 0 with this probability, the rest is divided",
            min_value=0.0,
            max_value=0.9,
            step=0.05,
            key=_shown("laboratory-dropout", min(change.dropout, 0.9)),
            on_change=lambda: _changed(dropout=st.session_state["laboratory-dropout"]),
            width=480,
        )
        st.number_input(
            "Seed",
            min_value=0,
            max_value=999_999_999,
            step=1,
            key=_shown("laboratory-seed", change.seed),
            on_change=lambda: _changed(seed=int(st.session_state["laboratory-seed"])),
            width=160,
        )
    if change.dropout:
        _what_dropped(seen)


def _what_dropped(seen: Look) -> None:
    """What dropout did to the shown head's weights in this draw."""
    weights, dropped = seen.attention.weights(seen.head), seen.attention.dropped(seen.head)
    seen_weights = weights > 0
    if np.array_equal(weights, dropped):
        st.caption(f"{layer_name(seen.place)} is not among the sub-layers that are changed.")
        return
    gone, sums = int((dropped[seen_weights] == 0).sum()), dropped.sum(-1)
    st.caption(
        f"In {layer_name(seen.place)}H{seen.head} {gone} of {int(seen_weights.sum())} weights became 0 "
        f"in this draw; the rows now sum to {sums.min():.3f} up to {sums.max():.3f}, not to 1. The "
        "picture shows the weights before dropout, and the output after it."
    )


def _where(seen: Look) -> None:
    names = seen.model.attention_names
    needed = bool(current().change.blocked) and len(seen.model.stacks()) > 1

    def take(members: Sequence[object]) -> None:
        only = frozenset(str(member) for member in members)
        if needed and not only:
            return
        _changed(only=only or None)

    _several(
        "Only in these sub-layers (none chosen: in all)",
        names,
        chosen=sorted(current().change.only or ()),
        name=layer_name,
        key="laboratory-only",
        take=take,
    )
    st.caption("Positions and heads that are off hold for the whole model in any case.")


EDITORS: dict[str, Callable[[Look], None]] = {
    "Scaling": _scaling,
    "Mask": _mask,
    "Padding": _padding,
    "Edges": edges_editor,
    "Fill": _filling,
    "Positions": _positions,
    "Heads": _heads,
    "Dropout": _dropout,
    "Where": _where,
}
