"""Whether the links that a class gets lead to this computer alone."""

from urllib.parse import urlsplit

import streamlit as st

from model.system.addresses import is_loopback
from viz.saving.save import page_address


def is_only_here(address: str) -> bool:
    """Whether an address with a host names this computer to itself, so that it opens on no other."""
    return is_loopback(urlsplit(address).hostname or "")


def warn_of_a_local_address() -> None:
    """Says, where the page was opened by an address of this computer alone, that its links open nowhere else,
    and how to start the app so that they do."""
    opened = page_address()
    if not is_only_here(opened):
        return
    host, port = urlsplit(opened).hostname, urlsplit(opened).port or 8501
    st.warning(
        f"**These links open on this computer only**: their address is {host}. For a class, start the app so "
        "that others reach it, with this computer's address in your network for ADDRESS, and open it at "
        f"`http://ADDRESS:{port}`:  \n"
        '`STREAMLIT_SERVER_ADDRESS=0.0.0.0 STREAMLIT_SERVER_ALLOWED_HOSTS="localhost ADDRESS" make run`'
    )
