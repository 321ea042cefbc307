"""Attention, step by step: one head from queries, keys and values to its output."""

import streamlit as st

from viz import shell
from viz.by_hand import by_hand
from viz.effect import effect_on_prediction
from viz.formulas import ATTENTION

shell.open_page("pages/attention.py")
seen = shell.look(switches=True)


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(
        """
Each token asks a question, its **query**. Each token offers a **key** to be found by, and a
**value** to hand over. The dot product of a query and a key is a **score**: how well the two match.

Scores are divided by √dₖ, because a sum of dₖ products grows with dₖ. A **mask** closes what a token
may not see, such as the future in a GPT. The softmax turns each row of scores into **weights** that
sum to 1. The **output** is the sum of the values, each times its weight.

It is a soft look-up: a dictionary whose keys match by degree.
"""
    )
    formula.latex(ATTENTION)


def live() -> None:
    shell.what_to_look_for()
    shell.explore(seen)
    effect_on_prediction(seen)


shell.beats(idea=idea, hand=lambda: by_hand("the-cat-sat"), live=live)
