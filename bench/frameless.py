"""The app's own server without what stands around every page: menu, work bar, map, keys, styles, the way on.

`python -m bench.frameless [--plain]`. What is left of a page's run is the page's own. --plain: as
Streamlit draws a page, with its own list of pages; sentence, example and model are chosen above it.
"""

import os
import sys

import streamlit as st
from streamlit.web import cli

import viz.server.asgi
from viz.shell import frame, page
from viz.state import navigation


def nothing(*arguments: object, **named: object) -> None:
    """In place of a part of the frame."""


def take_away(*, controls: bool) -> None:
    """Before any page is drawn. controls: the sentence, the examples and the choice of a model too."""
    navigation.menu = navigation.path = frame.keys = nothing  # type: ignore[assignment]
    frame.Frame.draw_map = nothing  # type: ignore[method-assign]
    if controls:
        frame.Frame.draw_controls = nothing  # type: ignore[method-assign]
    frame.tour.invitation = nothing  # type: ignore[assignment]
    frame.STYLES = "<style></style>"
    page.head_picker = nothing  # type: ignore[assignment]


def show_streamlits_menu() -> None:
    """In place of the app's own."""
    opened = st.navigation
    st.navigation = lambda pages, position: opened(pages, expanded=True)
    os.environ["STREAMLIT_CLIENT_SHOW_SIDEBAR_NAVIGATION"] = "true"


if __name__ == "__main__":
    is_plain = "--plain" in sys.argv
    take_away(controls=not is_plain)
    if is_plain:
        show_streamlits_menu()
    cli.main(["run", viz.server.asgi.__file__], prog_name="streamlit")
