"""Examples: sentences worth opening, each with the head to look at and what is to be seen."""

from itertools import groupby
from operator import attrgetter

import streamlit as st

from model.loading.registry import models
from viz.notation.markdown import plain
from viz.shell import page
from viz.state.examples import EXAMPLES
from viz.state.navigation import view_link

page.open_page("pages/examples.py")
by_model = sorted(EXAMPLES, key=lambda example: list(models).index(example.view.model))
for name, examples in groupby(by_model, attrgetter("view.model")):
    st.header(plain(models[name].title), anchor=False)
    st.caption(plain(models[name].about))
    for example in examples:
        with st.container(border=True, gap="small"):
            view_link("pages/attention.py", f"**{plain(example.title)}** →", example.view)
            st.text(f"“{example.view.text}”")
            st.caption(plain(example.look_for))
