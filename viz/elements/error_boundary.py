"""The error boundary: an error that nobody foresaw is logged, and the rest of the page goes on.

Refusals are shown where they arise; only what is left arrives here.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.errors import FragmentHandledException

from model import __name__ as MODEL
from model.trace.unproven import NotShownError
from viz.notation.markdown import plain
from viz.notation.words import sentences_of

say = sentences_of("elements.error_boundary")

OWN = "attention"  # the logger of the app's events


@contextmanager
def error_boundary() -> Iterator[None]:
    """Shows a message in place of a part of the page that breaks."""
    try:
        yield
    except FragmentHandledException:  # a fragment inside has shown its own message
        return
    except Exception as error:
        tell(error)


def tell(error: Exception) -> bool:
    """Logs an error and shows a message without its details; True, for it has been handled. A refusal of the
    model, which has a class of its own, is shown by its own sentence."""
    if isinstance(error, NotShownError):
        st.info(plain(str(error)))
        return True
    if isinstance(error, ValueError) and type(error).__module__.startswith(f"{MODEL}."):
        st.error(plain(str(error)))
        return True
    report = secrets.token_hex(3)
    logging.getLogger(OWN).error("page broke", exc_info=error, extra={"facts": {"report": report}})
    with st.container(key=f"broken-{report}"):
        st.error(say("part_page_failed", report=report))
        st.button("Try again", key=f"try-again-{report}")
    return True
