"""Home: what this is, one sentence, one picture, the way on."""

import streamlit as st

from viz.shell import page, pictures
from viz.shell.panel import draw_panel
from viz.state.navigation import page_link
from viz.tour.card import invitation
from viz.views.home.hero import hero, pipeline, real_model

page.open_page("pages/home.py")
look = page.look(head=True)
draw_panel(hero(look))
real_model()
page.what_to_look_for()
sums = "that, with the sink's, sum to 1" if look.attention.sinks is not None else "that sum to 1"
st.markdown(
    "Each token spreads its attention over itself and the other tokens that it may attend to, in "
    f"weights {sums}. A recurrent network reads one word after another. Attention lets each token read "
    "all of them at once. So the same word gets a different vector in each sentence."
)
with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    page_link("pages/attention.py", "See how these weights come about →")
    invitation("home")
pipeline(look)
pictures.checked(look)
