"""The laboratory's cards: a question each, which changes the visitor's own run, and beside it the sentence
that shows it best."""

import streamlit as st

from model.loading.registry import models
from model.nn.intervention import Intervention
from viz.notation.markdown import plain
from viz.shell.pictures import look_for
from viz.state.look import Look
from viz.state.presets import PATCH_KIND, PRESETS, Preset, preset_of
from viz.state.session import current, open_view, set_intervention
from viz.views.laboratory.editors import hides_nothing


def cards(look: Look) -> None:
    """One button a preset, which changes the open run; on each, a smaller one that opens the sentence which
    shows it best. Below them, what to look for in the one that is open."""
    view, stacks = current(), len(look.model.stacks())
    example = preset_of(view)
    with (
        st.expander("Try one", key="laboratory-presets"),
        st.container(key="laboratory-cards", gap="xsmall"),
    ):
        for number, preset in enumerate(PRESETS):
            change = preset.change_of(view, stacks=stacks)
            is_open = preset is example or (example is None and change == view.intervention)
            idle = nothing_to_change(change, look)
            with st.container(key=f"laboratory-card-{number}-both", gap=None):
                st.button(
                    f"**{preset.title}** {preset.question}",
                    key=f"laboratory-card-{number}",
                    type="primary" if is_open else "secondary",
                    width="stretch",
                    disabled=bool(idle) and not is_open,
                    help=idle or None,
                    on_click=set_intervention,
                    args=(change,),
                    kwargs={"moves_cell": True},
                )
                st.button(
                    f"on “{plain(' '.join(preset.view.text.split()[:2]))} …” →",
                    key=f"laboratory-card-{number}-example",
                    type="tertiary",
                    help=f"See it on “{plain(preset.view.text)}”, in {models[preset.view.model].short_title}",
                    on_click=open_preset,
                    args=(preset,),
                )
    with st.container():  # one place, whether there is something to say or not
        if example is not None and example in PRESETS:
            look_for(plain(example.look_for))


def nothing_to_change(change: Intervention, look: Look) -> str:
    """Why a preset changes nothing in the open model and sentence; "" where it changes something."""
    own, config = (look.baseline or look.trace).attention, look.model.config
    if change.scale is not None and all(one.scale == change.scale for one in own):
        return "This model does not divide its scores."
    if change.mask != "model" and all(one.kind != "causal" for one in own):
        return "This model hides no token."
    if not change.positions and (not config.has_positions or config.biases_positions):
        return "This model has no positions to switch off."
    if change.window is not None and hides_nothing(look, change.window):
        return "The window is as wide as this text."
    if not change.sinks and all(one.sinks is None for one in own):
        return "This model has no sinks."
    return ""


def open_preset(preset: Preset) -> None:
    """Opens the sentence and model that show a preset best; `undo` leads back to the visitor's own."""
    open_view(preset.view, undoable=True)
    if preset.put_in:
        st.session_state[PATCH_KIND] = preset.put_in
