"""The one place where a mistake of ours is caught: written to the log, and told without its details.

Refusals are told where they arise. What arrives here nobody foresaw: the part of the page that broke
says so in a sentence, and the rest of the page and everybody else go on.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.errors import FragmentHandledException

from viz.notation.markdown import plain

OWN = "attention"  # the logger of the app's events
_DIGITS = 3  # bytes of a report's number


@contextmanager
def border() -> Iterator[None]:
    """Whatever breaks in the body ends it, is told in its place, and ends nothing else."""
    try:
        yield
    except FragmentHandledException:  # a fragment inside has told it
        return
    except Exception as error:
        tell(error)


def tell(error: Exception) -> bool:
    """Tells the visitor and the log that a part of the page broke. Returns True: it has been told.

    A refusal of the model, which has a class of its own, is told by its own sentence.
    """
    if _is_refusal(error):
        st.error(plain(str(error)))
        return True
    report = secrets.token_hex(_DIGITS)
    logging.getLogger(OWN).error("page broke", exc_info=error, extra={"facts": {"report": report}})
    with st.container(key=f"broken-{report}"):
        st.error(
            "This part of the page failed, and the mistake is ours. Your sentence and your choices "
            "are kept, and the rest works: try again, or choose something else. If it happens again, "
            f"tell whoever runs this app the number of this report: {report}."
        )
        st.button("Try again", key=f"try-again-{report}")
    return True


def _is_refusal(error: Exception) -> bool:
    """Whether it is a ValueError of a class of ours; a plain one may come from anywhere."""
    return isinstance(error, ValueError) and type(error).__module__.partition(".")[0] == "model"
