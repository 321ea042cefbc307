"""The three beats of a teaching page: the idea, by hand, on the visitor's own sentence."""

from collections.abc import Callable

import streamlit as st

from viz.elements.error_boundary import error_boundary
from viz.shell.frame import frame
from viz.tour import card as tour


def beats(*, idea: Callable[[], None], hand: Callable[[], None], live: Callable[[], None]) -> None:
    """The beats as tabs; the page opens on the live model. One is drawn at a time, in a frame of another page
    the live one alone."""
    if frame().is_embedded:
        with error_boundary():
            live()
        return
    names = ("The idea", "By hand", "On your sentence")
    with st.container(key="beats"):
        tabs = st.tabs(names, default=names[-1], on_change="rerun")
    for tab, beat in zip(tabs, (idea, hand, live), strict=True):
        if tab.open:
            with tab, error_boundary():
                if beat is not live:
                    tour.point_back(names[-1])
                if beat is idea:
                    st.caption(frame().page.line)
                beat()
