"""Examples: sentences worth opening, each with the head to look at and what is to be seen."""

from itertools import groupby
from operator import attrgetter

import streamlit as st

from model.loading.registry import models
from viz.elements.error_boundary import error_boundary
from viz.notation.markdown import plain
from viz.shell import page
from viz.state.look import is_loaded
from viz.state.presets import EXAMPLES
from viz.state.session import current
from viz.views.examples.cards import STYLE, cards, found_examples, say_absent, thumbnails

page.open_page("pages/examples.py")
st.html(STYLE)
offered = [example for example in EXAMPLES if models.found(example.view.model) is not None]
listed = {example.view.model for example in offered}
opened = current().model
if opened not in listed and is_loaded(opened):
    st.header(plain(models.title(opened)), anchor=False)
    st.caption("The clearest head of each kind, found on a short sentence in the open model.")
    with error_boundary():
        found = found_examples(opened)
        cards(list(found), {example.title: rows for example, rows in found.items()})
# The open model's examples stand first.
by_model = sorted(offered, key=lambda example: example.view.model != opened)
for name, examples in groupby(by_model, attrgetter("view.model")):
    st.header(plain(models[name].title), anchor=False)
    st.caption(plain(models[name].about))
    say_absent(name)
    cards(list(examples), thumbnails())
