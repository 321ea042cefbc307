"""Attention, step by step: one head from queries, keys and values to its output."""

from functools import partial

import streamlit as st

from viz.notation.formulas import ATTENTION, ATTENTION_WITHOUT_MASK
from viz.shell import page
from viz.shell.panel import Panel, PanelView
from viz.state.look import Look
from viz.tour.card import beside_questions
from viz.views.attention.edges import edges
from viz.views.attention.projected import sum_of_products
from viz.views.attention.why import why_this_score
from viz.views.glossary.glossary import glossary_link
from viz.views.laboratory.effects import effect_on_prediction
from viz.views.worked.by_hand import by_hand

page.open_page("pages/attention.py")
look = page.look(changed=True, head=True)


def step_by_step(look: Look) -> Panel:
    """The explorer, and below it what a change does to the prediction."""
    return Panel(
        "step-by-step",
        picture=partial(page.explore, look, layers=True),
        below=[partial(effect_on_prediction, look)],
    )


VIEWS: dict[str, PanelView] = {
    "Step by step": step_by_step,
    "Why this score?": why_this_score,
    "A sum of products": sum_of_products,
    "What does it carry?": edges,
}

OPENING = (
    "Each token asks with a **query**, and each offers a **key** to be found by and a **value** "
    "to pass on. The softmax turns the scores of a query into **weights** that sum to 1, and the "
    "output is the values' sum, each times its weight."
)


def idea() -> None:
    words, formula = st.columns(2, gap="medium")
    words.markdown(
        f"""
Each token asks a question, its **{glossary_link("query")}**. Each token offers a
**{glossary_link("key")}** to be found by, and a **{glossary_link("value")}** to pass on. The dot
product of a query and a key is a **{glossary_link("score")}**: how well the two match.

Scores are {glossary_link("scaled score", "divided by √dₖ")}, because a sum of dₖ products grows
with dₖ. A **{glossary_link("mask")}** hides what a token may not see, such as the future in a
{glossary_link("GPT")}. The {glossary_link("softmax")} turns each row of scores into
**{glossary_link("weight", "weights")}** that sum to 1. The **{glossary_link("output")}** is the sum
of the values, each times its weight.

This is a soft look-up: a dictionary in which every key matches to some degree.
"""
    )
    masked = look.model.config.masks_future
    formula.latex(ATTENTION if masked else ATTENTION_WITHOUT_MASK)
    if not masked:
        formula.caption(
            "This model is an encoder: every token may attend to every other, so it adds no M."
        )


def live() -> None:
    beside_questions("attention", look, lambda: page.compare(look, VIEWS))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("the-cat-sat", "softmax-or-plain-shares", "separate-queries-and-keys"),
    live=live,
)
