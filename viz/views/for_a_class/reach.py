"""Where a class finds the app, and how to begin where it cannot."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import streamlit as st

from model.system.addresses import is_loopback
from model.system.settings import settings
from viz.notation.words import sentences_of
from viz.saving.save import page_address

say = sentences_of("for_a_class.reach")

HOW_TO_SHARE = say("only_computer_open")


def class_address(page: str) -> str | None:
    """Where a class finds a page of this app, by its name; None where only this computer can reach it."""
    names = () if settings().is_local else st.get_option("server.allowedHosts")
    return reached_from_elsewhere(page_address(page), names)


def reached_from_elsewhere(opened: str, names: Sequence[str]) -> str | None:
    """An address by which others reach what is open at this one. names: those that the server admits beside
    it, from others; the first that is not this computer's own stands in its place."""
    address = urlsplit(opened)
    if not address.hostname:
        return None
    if not _is_own(address.hostname):
        return opened
    name = next((name for name in names if not _is_own(name) and "*" not in name), None)
    if name is None:
        return None
    port = "" if address.port is None else f":{address.port}"
    return address._replace(netloc=name + port).geturl()


def _is_own(host: str) -> bool:
    return is_loopback(host) or host in ("0.0.0.0", "[::]", "::")
