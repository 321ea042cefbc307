"""Home: what this is, one sentence, one picture, the way on."""

import streamlit as st

from viz.figures.heatmap import weights_of_head
from viz.shell import page, pictures
from viz.state.navigation import page_link
from viz.tour.card import invitation
from viz.views.home.pipeline import pipeline

page.open_page("pages/home.py")
seen = page.look()
picture, words = st.columns([3, 2], gap="large", vertical_alignment="center")
with picture:
    queries, keys = seen.labels
    pictures.chart(weights_of_head(seen.attention, seen.head, queries=queries, keys=keys), "home")
with words:
    page.what_to_look_for()
    st.markdown(
        "Each row is a token that looks, each column a token that is looked at; every row sums to 1. "
        "A recurrent network reads words in turn. Attention lets each token look at all the others "
        "at once, so the same word gets a different vector in each sentence."
    )
    page_link("pages/attention.py", "See how these weights come about →")
    invitation("home")
pipeline(seen)
pictures.checked(seen)
