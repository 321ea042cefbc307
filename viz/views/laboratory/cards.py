"""Six changes to begin with, each with the question that it answers."""

import streamlit as st

from viz.notation.markdown import plain
from viz.shell.pictures import look_for
from viz.state.presets import PRESETS, Preset, preset_of
from viz.state.session import current, open_view, set_intervention


def cards() -> None:
    """One button a preset; below the one that is open, what to look for."""
    opened = preset_of(current())
    with st.container(key="laboratory-cards", gap="xsmall"):
        st.markdown("**Try one**")
        for number, preset in enumerate(PRESETS):
            st.button(
                f"**{preset.title}** {preset.question}",
                key=f"laboratory-card-{number}",
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
