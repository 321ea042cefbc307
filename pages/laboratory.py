"""Laboratory: masks, scaling and other changes on the trained model, beside the unchanged run."""

from functools import partial

import streamlit as st

from viz.shell import page
from viz.shell.panel import Panel, PanelView
from viz.state.look import Look
from viz.state.presets import HEADS, NEXT, POSITIONS, ROWS, STREAM
from viz.tour.card import beside_questions
from viz.views.glossary.glossary import glossary_link
from viz.views.laboratory.cards import cards
from viz.views.laboratory.editors import MASKED_ATTENTION, STYLE, switches
from viz.views.laboratory.effects import (
    effect_row,
    every_position,
    next_token_effect,
    rows_effect,
    stream_effect,
)
from viz.views.worked.by_hand import by_hand

page.open_page("pages/laboratory.py")
look = page.look(changed=True, head=True)


def head_by_head(look: Look) -> Panel:
    return Panel("head-by-head", picture=partial(page.explore, look))


VIEWS: dict[str, PanelView] = {
    HEADS: head_by_head,
    NEXT: next_token_effect,
    POSITIONS: every_position,
    ROWS: rows_effect,
    STREAM: stream_effect,
}

OPENING = (
    "Every part of attention is there for a reason. Take one away, and see what this model loses."
)


def idea() -> None:
    words, formula = st.columns(2, gap="medium")
    words.markdown(
        f"""
Every part of attention is there for a reason. Take one away, and see what is lost:

- **Scaling** divides the scores by √dₖ. Without it the {glossary_link("weight", "weights")} pile
  up on single tokens.
- The **{glossary_link("mask")}** hides the future. Without it a GPT can read the answer.
- **Padding** fills up short texts. No token may attend to it.
- **Positions** tell the order. Without them, and without a mask, attention sees only a
  bag of words.
- **Heads** share the work. Some can be spared, others cannot.
- **{glossary_link("Dropout")}** belongs to training only. Here you can see what it does.

The model was trained with all its parts. If you take one away, you see what this model loses, not how a
model trained without it would behave. Such a run is called a **counterfactual**.
"""
    )
    formula.latex(MASKED_ATTENTION)
    if not look.model.config.masks_future:
        formula.caption("This model is an encoder: unless you change its mask, it adds no M.")


def bench() -> None:
    look.model.require_run()
    st.html(STYLE)
    with st.container(key="laboratory-bench"):
        left, right = st.columns([1, 3], gap="medium")
        with left:
            switches(look)
            cards(look)
        with right:
            effect_row(look)
            page.views(VIEWS, look)


def live() -> None:
    beside_questions("laboratory", look, bench)


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("variance-of-a-dot-product", "padding-mask", "sliding-windows"),
    live=live,
)
