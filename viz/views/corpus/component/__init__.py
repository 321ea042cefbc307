"""Map, table and card of all heads, and the examples of one: drawn in the browser.

A click is answered there. Python is told of it, and sends the examples of the chosen head.
"""

from collections.abc import Callable

import streamlit as st

from viz.explorer.bundle import BUNDLED

_CHOICE = ("profile", "head")
_SCRIPT = (BUNDLED / "corpus.js").read_text(encoding="utf-8")
_STYLE = (BUNDLED / "corpus.css").read_text(encoding="utf-8").replace("}", "}\n")
_map, _examples = (
    st.components.v2.component(
        f"corpus_{part}",
        html=f'<section class="corpus" data-part="{part}" data-ready="false"></section>',
        css=_STYLE,
        js=_SCRIPT,
    )
    for part in ("map", "examples")
)


def heads_map(block: bytes, chosen: Callable[[int, int], object]) -> None:
    """Draws map, table and card of `message`. chosen: takes the profile and the head that was clicked."""
    key = "corpus-map"

    def take() -> None:
        said = st.session_state[key].get("chosen")
        if isinstance(said, dict) and all(isinstance(said.get(one), int) for one in _CHOICE):
            chosen(*(said[one] for one in _CHOICE))

    _map(key=key, data=block, on_chosen_change=take)


def examples_list(block: bytes) -> None:
    """Draws the examples of `examples.message`."""
    _examples(key="corpus-examples", data=block)
