"""What training is, in a few sentences, with the curves of a real one."""

import pandas as pd
import streamlit as st

from model.training.checkpoints import shipped_course
from viz.figures.training_curves import Curve, training_curves
from viz.shell.pictures import chart, table
from viz.views.glossary.glossary import glossary_link
from viz.views.training.formulas import LOSS, STEP

SHOWN = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "repeat_accuracy": "second half of lists foretold",
}


def idea() -> None:
    """The idea beat of the page."""
    words, picture = st.columns(2, gap="large")
    with words:
        st.markdown(
            f"""
A model starts as random numbers. It reads a text and gives each possible next token a
{glossary_link("probability")}. The **{glossary_link("cross-entropy loss", "loss")}** is the mean of
−ln p over the tokens that really came: 0 for a prophet, ln V for a model that gives all V tokens
the same.
"""
        )
        st.latex(LOSS)
        st.markdown(
            """
Back-propagation gives the slope of the loss for every weight θ: its **gradient**. One **step** moves
every weight a little against its slope; η is the learning rate. Then the next batch of texts comes,
and so on. The models here use AdamW, which gives each weight a rate of its own.
"""
        )
        st.latex(STEP)
        st.markdown(
            f"""
A **{glossary_link("checkpoint")}** is a copy of all weights at one step. Laid one after another,
checkpoints show when a head finds its job.

That need not go evenly. Here the loss stays high for 300 steps. Then a
{glossary_link("previous-token head")} in layer 0 and an {glossary_link("induction head")} in layer 1
form together, and the loss drops: a **phase change**. Nobody told the model to build these heads.
They make the next token easier to foretell.
"""
        )
    with picture:
        _curves()


def _curves() -> None:
    history = shipped_course("induction").history
    steps = [int(record["step"]) for record in history]
    losses = Curve(steps[1:], [record["loss"] for record in history if "loss" in record])
    scores = {
        name: Curve(steps, [record[score] for record in history]) for score, name in SHOWN.items()
    }
    st.markdown("**The induction model's training: a plain, a drop, a plain**")
    chart(training_curves({"loss": losses}, scores), "training-idea")
    st.caption("Each loss is the mean of the 100 steps before it. Scores: on new lists said twice.")
    columns = {"step": steps, "loss": [None, *losses.values]}
    table(pd.DataFrame(columns | {name: line.values for name, line in scores.items()}), "idea")
