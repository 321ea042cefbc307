"""Changes to begin with, each with the question that it answers."""

from collections.abc import Sequence

import streamlit as st

from viz.notation.markdown import plain
from viz.shell.pictures import look_for
from viz.state.presets import PATCH_KIND, PRESETS, Preset, preset_of
from viz.state.session import current, open_view, set_intervention


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
