"""The choice of one sub-layer of the model."""

from collections.abc import Sequence

import streamlit as st

from viz.notation.names import sublayer_name
from viz.state.look import Look


def one_sublayer(label: str, names: Sequence[str], seen: Look, key: str) -> str:
    """A list of sub-layers under the names that readers know; the chosen one's own name. names: at least
    one."""
    stacks = len(seen.trace.stacks)
    chosen: str = st.selectbox(
        label, names, format_func=lambda name: sublayer_name(name, stacks=stacks), key=key
    )
    return chosen
