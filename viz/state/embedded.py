"""The view for a frame in a page of another site: the open page without menu, its picture first.

`embed=true` in the address asks for it, Streamlit's own parameter. The browser keeps it while pages change.
The server never finds it among the parameters, so every link that is written opens the whole app.
"""

import html
from collections.abc import Mapping

import streamlit as st

from viz.state.link import address

PARAMETER = {"embed": "true"}
PIXELS = 500  # of a frame's height: the picture of a sentence fits


def is_embedded() -> bool:
    """Whether this page stands in a frame."""
    return bool(st.context.is_embedded)


def frame_line(page: str, parameters: Mapping[str, str], title: str) -> str:
    """The line of HTML that shows a page in a frame. page: its whole address, without parameters."""
    source = html.escape(address(page, {**parameters, **PARAMETER}))
    return (
        f'<iframe src="{source}" title="{html.escape(title)}" width="100%" height="{PIXELS}" '
        'style="border: 0" loading="lazy" allow="clipboard-write; fullscreen"></iframe>'
    )
