"""Explore: a sentence, a head, three switches, and what they change, on one screen."""

import streamlit as st

from viz.shell import page
from viz.state.navigation import page_link
from viz.tour.card import invitation
from viz.views.home.explore import explore, real_model
from viz.views.home.outcome import STYLE

page.open_page("pages/home.py")
look = page.look(changed=True)
st.html(STYLE)
explore(look)
real_model()
page_link("pages/attention.py", "See how these weights come about →")
invitation("home")
