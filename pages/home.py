"""Explore: a sentence, a head, three switches, and what they change, on one screen."""

import streamlit as st

from viz.shell import page
from viz.shell.frame import frame
from viz.state.navigation import HOME, entry
from viz.tour.card import invitation
from viz.views.home.explore import explore
from viz.views.home.outcome import STYLE

page.open_page(HOME)
look = page.look(changed=True)
st.html(STYLE)
if not frame().is_embedded:
    with frame().bar:
        st.caption(entry(HOME).line, width="content")
        invitation("home")
explore(look)
