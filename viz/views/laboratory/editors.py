"""The switches and editors of an intervention: every field of it has a control here; and the cards to begin
with."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import streamlit as st

from model.nn.intervention import LARGEST_MASK_VALUE, LARGEST_SCALE, MASKS, Intervention
from model.nn.places import head_label, layer_label
from model.nn.stages import STAGES
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, signed
from viz.shell.pictures import look_for
from viz.state.intervention_words import MASK_VALUES, mask_value_name, masks_for
from viz.state.look import Look
from viz.state.presets import PATCH_KIND, PRESETS, Preset, preset_of
from viz.state.session import (
    Control,
    current,
    intervene,
    open_view,
    set_intervention,
    shown,
    switch,
)
from viz.views.laboratory.edges import LABEL, edges_editor

CLICKED = 64  # up to so many options are buttons; more are a list


def field(name: str) -> Control:
    """The widget that shows a field of the intervention and sets it."""
    value = getattr(current().intervention, name)
    return switch(f"laboratory-{name}", value, lambda value: intervene(**{name: value}))


def value_or_number(
    name: str,
    words: str,
    named: Mapping[str, float | None],
    *,
    other: tuple[str, float],
    number: tuple[str, float, float],
) -> None:
    """One field of the intervention: one of some named values, or any number.

    other: what a number is called, and the first one. number: its label, bound and step.
    """
    value = getattr(current().intervention, name)
    names = {each: kind for kind, each in named.items()}
    label, bound, step = number

    def take_kind(kind: str) -> None:
        intervene(**{name: named.get(kind, other[1])})

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.radio(
            words,
            (*named, other[0]),
            horizontal=True,
            width="content",
            **switch(f"laboratory-{name}", names.get(value, other[0]), take_kind),
        )
        if value not in names:
            st.number_input(
                label,
                label_visibility="collapsed",
                min_value=-bound,
                max_value=bound,
                step=step,
                format="%g",
                width=160,
                **switch(
                    f"laboratory-{name}-number", value, lambda number: intervene(**{name: number})
                ),
            )


def several(
    label: str,
    options: Sequence[object],
    *,
    chosen: Sequence[object],
    name: Callable[..., str],
    key: str,
    take: Callable[[Sequence[object]], None],
) -> None:
    """Several of some options, as buttons to press; as a list where they are too many."""
    present = [option for option in chosen if option in options]
    control = shown(f"{key}-{len(options)}", present, take)
    if len(options) <= CLICKED:
        st.pills(label, options, selection_mode="multi", format_func=name, **control)
    else:
        st.multiselect(label, options, format_func=name, **control)


LARGEST = 999_999_999  # a link holds no larger whole number


def scaling(seen: Look) -> None:
    """Whether scores are multiplied by the model's own factor."""
    own = (seen.baseline or seen.trace).find(seen.place).scale
    st.toggle(
        f"Scale the scores: × {signed(f'{own:.4g}')}",
        **switch(
            "laboratory-divided",
            current().intervention.scale is None,
            lambda divided: intervene(scale=None if divided else 1.0),
        ),
    )


def stages(seen: Look) -> None:
    """A switch for each stage that the model has, or that a link has switched off."""
    own = (seen.baseline or seen.trace).attention
    for stage in STAGES:
        values = [stage.of(one) for one in own if stage.is_in(one)]
        if values:
            st.toggle(stage.switch(values), **field(stage.field))
        elif not stage.of(current().intervention):
            st.caption(f"This model has no {stage.field}: without it nothing changes.")


def mask(seen: Look) -> None:
    """Who may look at whom."""
    st.selectbox(
        "Mask",
        masks_for(seen.model),
        format_func=lambda name: MASKS[name].title_for(seen.model.config.shape),
        **field("mask"),
    )


def window(seen: Look) -> None:
    """How many keys a query may read at most, and where that hides nothing."""
    st.number_input(
        "Window: keys that a query reads",
        value=None,
        min_value=1,
        max_value=LARGEST,
        step=1,
        placeholder="no window",
        help="At most so many keys, itself included: in a causal layer the last ones, elsewhere as many "
        "before it as after it.",
        **field("window"),
    )
    with st.container():  # one place, whether there is something to say or not
        own = [one.window for one in (seen.baseline or seen.trace).attention]
        if widths := sorted({width for width in own if width}):
            keys, layers = " and ".join(map(str, widths)), len(own) - own.count(None)
            st.caption(
                f"The model’s own window: {keys} keys, in {layers} of {len(own)} sub-layers."
            )
        changed = seen.request.intervention.window
        if changed and changed == current().intervention.window and _hides_nothing(seen, changed):
            st.caption("This window is as wide as the text: it hides nothing.")


def _hides_nothing(seen: Look, width: int) -> bool:
    """Whether a window reaches over the whole text in every layer."""
    attentions = [one for one in seen.trace.attention if one.kind != "cross"]
    choice = seen.request.intervention.mask
    looks_back = choice == "causal" or (
        choice == "model" and all(one.kind == "causal" for one in attentions)
    )
    reach = width if looks_back else (width + 1) // 2
    return reach >= max(one.sizes[2] for one in attentions)


def positions(seen: Look) -> None:
    """Whether the model is told the positions."""
    off = "Off: added positions or rotary angles are zero."
    biases = seen.model.config.biases_positions
    changes_nothing = biases and current().intervention.positions
    st.toggle("Positions", help=off, disabled=changes_nothing, **field("positions"))
    with st.container():  # one place, whether there is something to say or not
        if not seen.model.config.has_positions:
            st.caption("This model has no positions: switching them off changes nothing.")
        elif biases:
            st.caption(
                "This model has its positions in its biases: use the switch “Bias, added to the scores”."
            )


def _factor(seen: Look) -> None:
    ours = (seen.baseline or seen.trace).find(seen.place)
    own, width = ours.scale, ours.query.shape[-1]
    divides = math.isclose(own, 1 / math.sqrt(width), rel_tol=1e-6)
    value_or_number(
        "scale",
        "Scores are multiplied by",
        {
            f"the model's own, {'1/√dₖ = ' if divides else ''}{own:.4g}": None,
            "not scaled: × 1": 1.0,
        },
        other=("a factor", 2 * own),
        number=("Factor", LARGEST_SCALE, 0.1),
    )


def _mask_value(seen: Look) -> None:
    value_or_number(
        "fill",
        "Mask value: what a masked score is set to, after scaling",
        {mask_value_name(mask_value): mask_value for mask_value in MASK_VALUES},
        other=("a number", -1.0),
        number=("Number", LARGEST_MASK_VALUE, 1.0),
    )
    if all(attention.mask is None for attention in seen.trace.attention):
        st.caption(
            "Nothing is masked in this run, so the mask value has no effect. Mask something first."
        )


def _padding(seen: Look) -> None:
    several(
        "Treated as padding: no token may attend to these",
        range(len(seen.trace.tokens)),
        chosen=sorted(current().intervention.hidden),
        name=lambda at: f"{at} {plain(token_label(seen.trace.tokens[at].text, LABEL))}",
        key="laboratory-hidden",
        take=lambda members: intervene(hidden=frozenset(members)),
    )


def _heads(seen: Look) -> None:
    place, ablated = seen.place, current().intervention.ablated
    others = frozenset(member for member in ablated if member[0] != place)
    heads = range(seen.attention.heads)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            several(
                f"Heads of {layer_label(place)} whose output is set to zero",
                heads,
                chosen=seen.attention.ablated,
                name=lambda head: head_label((place, head)),
                key=f"laboratory-heads-{place}",
                take=lambda members: intervene(
                    ablated=others | {(place, head) for head in members}
                ),
            )
        whole = others | {(place, head) for head in heads}
        st.button(
            "The whole layer",
            key="laboratory-layer",
            disabled=whole == ablated,
            on_click=lambda: intervene(ablated=whole),
        )


def _dropout(seen: Look) -> None:
    intervention = current().intervention
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.slider(
            "Dropout: each weight becomes 0 with probability p, the others are divided by 1 − p",
            min_value=0.0,
            max_value=0.9,
            step=0.05,
            width=320,
            **switch(
                "laboratory-dropout",
                min(intervention.dropout, 0.9),
                lambda rate: intervene(dropout=rate),
            ),
        )
        st.number_input("Seed", 0, LARGEST, step=1, width=160, **field("seed"))
    if intervention.dropout:
        _what_dropped(seen)


def _what_dropped(seen: Look) -> None:
    """What dropout did to the shown head's weights in this draw."""
    weights, dropped = seen.attention.weights(seen.head), seen.attention.dropped(seen.head)
    seen_weights = weights > 0
    if np.array_equal(weights, dropped):
        st.caption(f"{layer_label(seen.place)} is not one of the changed sub-layers.")
        return
    gone, sums = int((dropped[seen_weights] == 0).sum()), dropped.sum(-1)
    st.caption(
        f"In {head_label((seen.place, seen.head))} {gone} of "
        f"{counted(int(seen_weights.sum()), 'weight')} became 0 in this draw. The sums of the rows "
        f"now run from {sums.min():.3f} to {sums.max():.3f} instead of 1. The picture shows the "
        "weights before dropout and the output after it."
    )


def _where(seen: Look) -> None:
    names = seen.model.attention_names
    needed = bool(current().intervention.blocked) and len(seen.model.stacks()) > 1

    def take(members: Sequence[object]) -> None:
        only = frozenset(str(member) for member in members)
        if needed and not only:
            return
        intervene(only=only or None)

    several(
        "Only in these sub-layers (none chosen means all)",
        names,
        chosen=sorted(current().intervention.only or ()),
        name=layer_label,
        key="laboratory-only",
        take=take,
    )
    st.caption("Switching off positions or heads always applies to the whole model.")


class Editor(NamedTuple):
    """What stands behind a button, and the state of it in a word or two."""

    state: Callable[[Intervention], str]
    parts: tuple[Callable[[Look], None], ...]


def _heads_state(intervention: Intervention) -> str:
    return f"{len(intervention.ablated)} off" if intervention.ablated else "all on"


def _padding_state(intervention: Intervention) -> str:
    return counted(len(intervention.hidden), "token")


def _edges_state(intervention: Intervention) -> str:
    cut = f"{len(intervention.blocked)} cut" if intervention.blocked else "none cut"
    return f"{cut}, {len(intervention.weights)} set" if intervention.weights else cut


def _rest_state(intervention: Intervention) -> str:
    """What is changed of factor, mask value, dropout and place."""
    changed = {
        "factor": intervention.scale not in (None, 1.0),
        "mask value": intervention.fill != -math.inf,
        "dropout": intervention.dropout > 0,
        "where": intervention.only is not None,
    }
    return ", ".join(name for name, is_changed in changed.items() if is_changed) or "unchanged"


EDITORS = {
    "Heads": Editor(_heads_state, (_heads,)),
    "Padding": Editor(_padding_state, (_padding,)),
    "Edges": Editor(_edges_state, (edges_editor,)),
    "More": Editor(_rest_state, (_factor, _mask_value, _dropout, _where)),
}


def cards(
    presets: Sequence[Preset] = PRESETS, title: str = "Try one", name: str = "laboratory-card"
) -> None:
    """One button a preset; below the one that is open, what to look for. name: what keys begin with."""
    opened = preset_of(current())
    with st.container(key=f"{name}s", gap="xsmall"):
        st.markdown(f"**{title}**")
        for number, preset in enumerate(presets):
            st.button(
                f"**{preset.title}** {preset.question}",
                key=f"{name}-{number}",
                type="primary" if preset is opened else "secondary",
                width="stretch",
                on_click=_open,
                args=(preset,),
            )
            with st.container():  # one place, whether there is something to say or not
                if preset is opened:
                    look_for(plain(preset.look_for))


def _open(preset: Preset) -> None:
    set_intervention(preset.view.intervention)
    open_view(preset.view)
    if preset.put_in:
        st.session_state[PATCH_KIND] = preset.put_in
