"""Explore: a sentence, a head, three switches, and what they change, on one screen."""

from importlib import import_module

import streamlit as st

from viz.shell.frame import frame, open_page
from viz.state.navigation import HOME, entry
from viz.tour.card import invitation
from viz.views.home.opening import is_recorded, opening
from viz.views.home.outcome import STYLE

open_page(HOME)
look = None
if is_recorded():
    frame().draw_controls()
    st.empty()  # the place that `look` holds
else:
    import_module("torch")  # the server may be importing it
    from viz.shell import page

    look = page.look(changed=True)
st.html(STYLE)
if not frame().is_embedded:
    with frame().bar:
        st.caption(entry(HOME).line, width="content")
        invitation("home")
if look is None:
    opening()
else:
    from viz.views.home.explore import explore

    explore(look)
