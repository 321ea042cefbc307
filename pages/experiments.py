"""Experiments: cards with a question each. One opens in the same place: the guess, the picture that moves to
the answer on the visitor's own sentence, and the verdict; or a view with controls."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from viz.elements.error_boundary import error_boundary
from viz.shell import page
from viz.shell.frame import frame
from viz.shell.panel import PanelView, draw_view
from viz.shell.request import still_asked
from viz.state.look import Look
from viz.state.session import change_view, current, opens_with, write_link
from viz.views.experiments.asking import ALL, asked, or_said, question
from viz.views.experiments.claims import tried
from viz.views.experiments.dropout import dropout_view
from viz.views.experiments.experiments import FILE, Experiment, cards, named
from viz.views.experiments.gradient import gradient_view
from viz.views.experiments.gru import gru
from viz.views.experiments.padded_batch import padded_pair
from viz.views.experiments.patch import patch
from viz.views.experiments.steer import steer

# The views with controls: on the visitor's run, and on texts of their own.
with_head = partial(page.look, head=True)
RUNS: dict[str, tuple[PanelView, Callable[[], Look]]] = {
    "Patch": (patch, partial(page.look, changed=True, head=True)),
    "Steer": (steer, with_head),
    "Padded batch": (padded_pair, with_head),
    "Dropout": (dropout_view, partial(page.look, full=True, head=True)),
}
OTHERS: dict[str, PanelView] = {"Gradient": gradient_view, "GRU": gru, "Claims": tried}


@st.fragment
@error_boundary()
def opened(one: Experiment, view: PanelView, *looks: Look) -> None:
    """The question, and below it what answers it. A click in it leaves the rest of the page alone."""
    if not all(map(still_asked, looks)):
        st.rerun()
    with st.container(key="experiment"):
        question(one)
        said = st.container(key="look-for")
        row = st.container(
            horizontal=True, vertical_alignment="bottom", gap="small", key="controls"
        )
        draw_view(or_said(view), *looks, beside=row, said=said)
    write_link()
    frame().follow_head()


page.open_page(FILE)
opens_with(ALL)
one = named(current().show)
if one is None:
    change_view(replace(current(), show=ALL))
    with st.container(key="experiments"):
        st.html(cards())
    write_link()
elif one.show in OTHERS:
    opened(one, OTHERS[one.show])
else:
    view, run = RUNS.get(one.show, (partial(asked, one), with_head))
    opened(one, view, run())
