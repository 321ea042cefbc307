"""All examples, under the model that they are for, each with a link that opens it."""

from itertools import groupby
from operator import attrgetter

import streamlit as st

from model.loading.registry import models
from viz.notation.markdown import plain
from viz.state.examples import EXAMPLES, Example
from viz.state.navigation import view_link
from viz.state.view import example_view


def example_list() -> None:
    """The examples by model, in their own order."""
    by_model = sorted(EXAMPLES, key=lambda example: list(models).index(example.model))
    for name, examples in groupby(by_model, attrgetter("model")):
        st.header(plain(models[name].title), anchor=False)
        st.caption(plain(models[name].about))
        for example in examples:
            _one(example)


def _one(example: Example) -> None:
    with st.container(border=True, gap="small"):
        view_link("pages/attention.py", f"**{plain(example.title)}** →", example_view(example))
        st.text(f"“{example.text}”")
        st.caption(plain(example.look_for))
