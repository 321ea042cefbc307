"""The laboratory's bench: what is changed now, the way back, and a switch for each kind of change."""

from pathlib import Path

import streamlit as st

from model.nn.intervention import Intervention
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.state.intervention_words import COUNTERFACTUAL, parts
from viz.state.look import Look
from viz.state.session import can_undo, current, set_intervention, undo
from viz.views.laboratory.editors import (
    EDITORS,
    LABEL,
    Editor,
    mask,
    positions,
    scaling,
    stages,
    window,
)

STYLE = Path(__file__).with_name("bench.css")
MASKED_ATTENTION = (
    r"\begin{aligned} \text{Attention}(Q, K, V) &= \text{softmax}\!\left(s\, QK^\top + M\right) V \\"
    r" s &= \tfrac{1}{\sqrt{d_k}} \end{aligned}"
)


def switches(seen: Look) -> None:
    """What is changed, the way back, and the switches, each with its state."""
    with st.container(key="laboratory-switches", gap="small"):
        _listed(seen)
        scaling(seen)
        stages(seen)
        mask(seen)
        window(seen)
        positions(seen)
        for name, editor in EDITORS.items():
            _behind(name, editor, seen)


def _behind(name: str, editor: Editor, seen: Look) -> None:
    """An editor behind its button, drawn while it is open, and beside the button its state."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # The button's words stay as they are: with other words it would be a new one, and closed.
        box = st.popover(name, key=f"laboratory-open-{name}", on_change="rerun", width=105)
        st.caption(editor.state(current().intervention), width="stretch")
    if box.open:
        with box, st.container(key=f"laboratory-editor-{name}"):
            for draw in editor.parts:
                draw(seen)


def _listed(seen: Look) -> None:
    """Each part of the intervention with a button that takes it back, then undo and reset."""
    intervention = current().intervention
    tokens = tuple(token_label(token.text, LABEL) for token in seen.trace.tokens)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Changed:**" if intervention.changes else "**Nothing is changed.**")
        for number, part in enumerate(parts(intervention, tokens)):
            st.button(
                f"{plain(part.words)} ✕",
                key=f"laboratory-part-{number}",
                help="Undo this change",
                on_click=set_intervention,
                args=(part.without,),
            )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Undo", key="laboratory-undo", disabled=not can_undo(), on_click=undo)
        st.button(
            "Reset",
            key="laboratory-reset",
            disabled=intervention == Intervention(),
            on_click=set_intervention,
            args=(Intervention(),),
        )
    with st.container():  # one place, whether there is something to say or not
        if intervention.changes:
            st.caption(COUNTERFACTUAL)
