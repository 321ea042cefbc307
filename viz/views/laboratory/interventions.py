"""The laboratory's bench: what is changed now, the way back, and the editor of one kind of change."""

import streamlit as st

from model.nn.intervention import Intervention
from viz.elements.one_of import open_one
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.shell.pictures import look_for
from viz.state.examples import SentenceExample
from viz.state.intervention_words import COUNTERFACTUAL, parts
from viz.state.look import Look
from viz.state.presets import PRESETS, preset_of
from viz.state.session import can_undo, current, open_view, set_intervention, undo
from viz.views.laboratory.editors import EDITORS, LABEL

MASKED_ATTENTION = (
    r"\begin{aligned} \text{Attention}(Q, K, V) &= \text{softmax}\!\left(s\, QK^\top + M\right) V \\"
    r" s &= \tfrac{1}{\sqrt{d_k}} \end{aligned}"
)
_EDIT = "laboratory-edit"  # session state: which editor is open


def interventions(seen: Look) -> None:
    """What is changed, the way back, and the editor of one kind of change."""
    with st.container():
        listed, presets = st.columns([3, 1], vertical_alignment="center")
        with listed:
            _listed(seen)
        open_one(
            "Try a change",
            PRESETS,
            "laboratory-preset",
            named=lambda preset: preset.title,
            placeholder="Try a change",
            take=_open_preset,
            box=presets,
            quiet=True,
        )
        kind = st.segmented_control(
            "Change",
            list(EDITORS),
            default=None if current().intervention.changes else "Scaling",
            key=_EDIT,
            label_visibility="collapsed",
            required=True,
        )
        with st.container(key="laboratory-editor"):
            if kind is not None:
                EDITORS[kind](seen)


def what_to_see() -> None:
    """The sentence of the preset that is open; the box is there in any case."""
    with st.container():
        preset = preset_of(current())
        if preset is not None:
            look_for(plain(preset.look_for))


def _open_preset(preset: SentenceExample) -> None:
    set_intervention(preset.view.intervention)
    open_view(preset.view)
    st.session_state[_EDIT] = None


def _listed(seen: Look) -> None:
    """Each part of the intervention with a button that takes it back, then undo and reset."""
    intervention = current().intervention
    tokens = tuple(token_label(token.text, LABEL) for token in seen.trace.tokens)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if not intervention.changes:
            st.markdown("**Nothing is changed.**")
        for number, part in enumerate(parts(intervention, tokens)):
            st.button(
                f"{plain(part.words)} ✕",
                key=f"laboratory-part-{number}",
                help="Take this change back",
                on_click=set_intervention,
                args=(part.without,),
            )
        st.button("Undo", key="laboratory-undo", disabled=not can_undo(), on_click=undo)
        st.button(
            "Reset",
            key="laboratory-reset",
            disabled=intervention == Intervention(),
            on_click=set_intervention,
            args=(Intervention(),),
        )
        if intervention.changes:
            st.caption(COUNTERFACTUAL)
