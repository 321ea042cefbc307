"""The app's own server without what stands around every page: menu, work bar, map, keys, styles, the way on.

`python -m tests.bench.frameless`. What is left of a page's run beside it is the page's own.
"""

from streamlit.web import cli

import viz.server.asgi
from viz.shell import frame, page
from viz.state import navigation


def nothing(*arguments: object, **named: object) -> None:
    """In place of a part of the frame."""


def take_away() -> None:
    """Before any page is drawn."""
    navigation.menu = navigation.path = frame.keys = nothing  # type: ignore[assignment]
    frame.Frame.draw_controls = frame.Frame.draw_map = nothing  # type: ignore[method-assign]
    frame.tour.invitation = nothing  # type: ignore[assignment]
    frame.STYLES = " "
    page.head_picker = nothing  # type: ignore[assignment]


if __name__ == "__main__":
    take_away()
    cli.main(["run", viz.server.asgi.__file__], prog_name="streamlit")
